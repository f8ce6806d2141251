# Two loads, one store, then a store to an unmapped address between more.
	.globl _start
	.data
x:	.quad 0, 0
	.text
_start:
	mov $8, %rdx
	mov x(%rip), %rax
	mov x+8(%rip), %rcx
	mov %rax, x+8(%rip)
	mov %rax, (%rdx)
	mov x(%rip), %rax
	mov %rax, x+8(%rip)
	ud2
