# Tests of bits: four of registers, which touch no memory, one of memory.
	.globl _start
_start:
	bt	%rsi, %rdx
	bts	%esi, %edx
	btr	%r9, %r10
	btc	%r9w, %r10w
	mov	$1, %esi
	bts	%rsi, x(%rip)
	mov	$60, %eax		# exit
	xor	%edi, %edi
	syscall
	.data
x:	.quad 1
