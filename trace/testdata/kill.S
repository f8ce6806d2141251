# 100,000 turns of a load, a store and a load; then writes its pid to standard
# output and waits to be killed.
	.globl _start
	.data
x:	.quad 0, 0
pid:	.long 0
	.text
_start:
	mov $100000, %ebx
1:	mov x(%rip), %rax
	mov %rax, x+8(%rip)
	mov x+8(%rip), %rax
	dec %ebx
	jnz 1b
	mov $39, %eax		# getpid
	syscall
	mov %eax, pid(%rip)
	mov $1, %eax		# write
	mov $1, %edi
	lea pid(%rip), %rsi
	mov $4, %edx
	syscall
2:	mov $34, %eax		# pause
	syscall
	jmp 2b
