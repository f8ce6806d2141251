# A loop of a load and a store that runs off the end of a page: FROM bytes of it are
# passed over. An engine may see several turns as one stretch of code.
	.globl _start
	.data
	.balign 64
x:	.quad 0
	.text
_start:
	mov $9, %eax		# mmap
	xor %edi, %edi
	mov $8192, %esi
	mov $3, %edx		# readable, writable
	mov $0x22, %r10d	# private, anonymous
	mov $-1, %r8
	xor %r9d, %r9d
	syscall
	mov %rax, %rbx
	lea 4096(%rax), %rdi
	mov $11, %eax		# munmap the second page
	mov $4096, %esi
	syscall
	lea x(%rip), %rdi
	add $FROM, %rbx
	mov $100000, %ecx
1:	mov (%rbx), %rax
	mov %rax, (%rdi)
	add $8, %rbx
	dec %ecx
	jnz 1b
	ud2
