# 100,000 turns of a load, a store and a load, then SIGKILL to itself.
	.globl _start
	.data
x:	.quad 0, 0
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
	mov %eax, %edi
	mov $9, %esi
	mov $62, %eax		# kill
	syscall
	ud2
