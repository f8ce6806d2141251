# A gather and masked moves with elements 0 and 2 of 4, then an 80-bit number.
	.globl _start
	.data
	.balign 64
table:	.fill 64, 8, 5
index:	.quad 0, 1, 2, 3	# table+512
mask:	.quad -1, 0, -1, 0	# table+544
	.text
_start:
	vmovdqu index(%rip), %ymm1
	vmovdqu mask(%rip), %ymm2
	lea table(%rip), %rsi
	vpgatherqq %ymm2, (%rsi,%ymm1,8), %ymm0
	vmovdqu mask(%rip), %ymm2
	vpmaskmovq (%rsi), %ymm2, %ymm3
	vpmaskmovq %ymm3, %ymm2, 64(%rsi)
	fldt table(%rip)
	fstpt table+16(%rip)
	mov $231, %eax
	xor %edi, %edi
	syscall
