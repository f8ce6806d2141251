# A loop whose accesses can be counted by hand, with no C library.
# Each turn, in this order (L load, S store, of how many bytes):
#   L8 words        dead: %rax is overwritten unread
#   L8 words+8
#   S4 words+16
#   L8 S8 words+24  add to memory
#   L4 S4 words+32  lock add
#   L8 S8 words+40  lock cmpxchg that succeeds
#   L8 S8 words+40  lock cmpxchg that fails
#   L4 S4 words+48  xchg
#   S8 stack        push
#   S8 stack        call
#   L8 stack        ret
#   L8 stack        pop
#   L16 words       movdqu across two words
#   S8 line+60      straddles two lines
#   L1 S1 four times, rep movsb
# 26 accesses, 14 loads of them before the rep, 4 more in it.
	.globl _start
	.data
	.balign 64
words:	.quad 1, 2, 3, 4, 5, 6, 7, 8
line:	.fill 128
	.text
_start:
	mov $1000, %r12
1:
	mov words(%rip), %rax
	mov words+8(%rip), %rax
	mov %eax, words+16(%rip)
	addq $1, words+24(%rip)
	lock addl $1, words+32(%rip)
	mov $6, %eax
	lock cmpxchg %rax, words+40(%rip)
	mov $99, %eax
	lock cmpxchg %rcx, words+40(%rip)
	xchg %ecx, words+48(%rip)
	push %rbx
	call 2f
	pop %rbx
	movdqu words(%rip), %xmm0
	movq %xmm0, line+60(%rip)
	lea words(%rip), %rsi
	lea line(%rip), %rdi
	mov $4, %ecx
	rep movsb
	dec %r12
	jnz 1b
	mov $231, %eax
	xor %edi, %edi
	syscall
2:	ret
