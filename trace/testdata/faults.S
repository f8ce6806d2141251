# 200,000 turns, each of which faults and is helped on by a signal handler
# that moves the pointer: more words than the buffers hold. Each turn:
#   L8 x, L8 x+8; S8 to address 8 faults: it does not happen
#   S8 the register in the saved context, L8 the return address, in the handler
#   S8 x+16, L8 x+16
# The handler's frame itself is written by the kernel.
	.globl _start
	.data
	.balign 64
x:	.quad 1, 2, 3, 4
act:	.quad handler, 0x44000004, restore, 0	# SA_SIGINFO|SA_RESTORER|SA_NODEFER
	.text
_start:
	mov $13, %eax		# rt_sigaction
	mov $11, %edi		# SIGSEGV
	lea act(%rip), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	mov $200000, %ebx
1:	mov $8, %r13d
	mov x(%rip), %rax
	mov x+8(%rip), %rcx
	mov %rax, (%r13)
	mov x+16(%rip), %rcx
	dec %ebx
	jnz 1b
	mov $231, %eax
	xor %edi, %edi
	syscall
handler:
	lea x+16(%rip), %rax
	mov %rax, 80(%rdx)	# uc_mcontext: r13
	ret
restore:
	mov $15, %eax		# rt_sigreturn
	syscall
