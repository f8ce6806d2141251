# One load; then the stack goes away, and the push cannot happen.
	.globl _start
_start:
	mov	x(%rip), %rax
	mov	%rsp, %rdi
	and	$-4096, %rdi
	sub	$0x10000, %rdi
	mov	$0x20000, %esi
	mov	$11, %eax		# munmap
	syscall
	push	%rax
	mov	x(%rip), %rax
	ud2
	.data
x:	.quad 1
