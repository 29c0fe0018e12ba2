<probe_empty>:
	adrp	x0, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x0, [x0]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x0]
	and	w1, w1, #0xff
	cbnz	w1, <probe_empty+0x1c>
	ret
	ldr	w0, [x2, #8]
	tbnz	w1, #1, <probe_empty+0x7c>
	mrs	x3, tpidr_el0
	add	x3, x3, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x3, x3, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x5, [x3]
	add	x4, x5, #0x8
	ldr	x7, [x4]
	mov	x2, #0x1                   	// #1
	str	x2, [x4]
	ldr	x2, [x5]
	and	x2, x2, #0xfffffffffffffff8
	add	x8, x2, #0x8
	mrs	x6, cntvct_el0
	cmp	x7, x8
	b.cc	<probe_empty+0x78>  // b.lo, b.ul, b.last
	ldr	x1, [x3, #16]
	mov	w0, w0
	orr	x6, x0, x6, lsl #16
	str	x6, [x1, x2]
	stlr	x8, [x5]
	str	x7, [x4]
	ret
	str	x7, [x4]
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x9c

<probe_u32>:
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x1, #11]
	and	w1, w1, #0xff
	cbnz	w1, <probe_u32+0x1c>
	ret
	ldr	w2, [x2, #8]
	mov	w0, w0
	add	w3, w2, #0xb
	tbnz	w1, #1, <probe_u32+0x88>
	mrs	x4, tpidr_el0
	add	x4, x4, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x4, x4, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x6, [x4]
	add	x5, x6, #0x8
	ldr	x8, [x5]
	mov	x2, #0x1                   	// #1
	str	x2, [x5]
	ldr	x2, [x6]
	and	x2, x2, #0xfffffffffffffff8
	add	x9, x2, #0x14
	mrs	x7, cntvct_el0
	cmp	x8, x9
	b.cc	<probe_u32+0x84>  // b.lo, b.ul, b.last
	ldr	x1, [x4, #16]
	orr	x7, x3, x7, lsl #16
	add	x3, x2, x1
	str	x7, [x2, x1]
	str	x0, [x3, #8]
	stlr	x9, [x6]
	str	x8, [x5]
	ret
	str	x8, [x5]
	mov	x2, x0
	orr	w1, w1, #0x400
	mov	w0, w3
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x17c
	nop
	nop

<probe_one>:
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x1, #1]
	and	w1, w1, #0xff
	cbnz	w1, <probe_one+0x1c>
	ret
	ldr	w2, [x2, #8]
	add	w3, w2, #0x1
	tbnz	w1, #1, <probe_one+0x84>
	mrs	x4, tpidr_el0
	add	x4, x4, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x4, x4, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x6, [x4]
	add	x5, x6, #0x8
	ldr	x8, [x5]
	mov	x2, #0x1                   	// #1
	str	x2, [x5]
	ldr	x2, [x6]
	and	x2, x2, #0xfffffffffffffff8
	add	x9, x2, #0x10
	mrs	x7, cntvct_el0
	cmp	x8, x9
	b.cc	<probe_one+0x80>  // b.lo, b.ul, b.last
	ldr	x1, [x4, #16]
	orr	x7, x3, x7, lsl #16
	add	x3, x2, x1
	str	x7, [x2, x1]
	str	x0, [x3, #8]
	stlr	x9, [x6]
	str	x8, [x5]
	ret
	str	x8, [x5]
	mov	x2, x0
	orr	w1, w1, #0x800
	mov	w0, w3
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x17c

<probe_four>:
	adrp	x7, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	ldr	x4, [x7]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	add	x7, x7, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldrb	w6, [x4, #3]
	and	w6, w6, #0xff
	cbnz	w6, <probe_four+0x1c>
	ret
	ldr	w4, [x7, #8]
	add	w7, w4, #0x3
	tbnz	w6, #1, <probe_four+0x88>
	mrs	x5, tpidr_el0
	add	x5, x5, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x5, x5, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x9, [x5]
	add	x8, x9, #0x8
	ldr	x11, [x8]
	mov	x4, #0x1                   	// #1
	str	x4, [x8]
	ldr	x4, [x9]
	and	x4, x4, #0xfffffffffffffff8
	add	x12, x4, #0x28
	mrs	x10, cntvct_el0
	cmp	x11, x12
	b.cc	<probe_four+0x84>  // b.lo, b.ul, b.last
	ldr	x6, [x5, #16]
	orr	x10, x7, x10, lsl #16
	add	x5, x4, x6
	str	x10, [x4, x6]
	stp	x0, x1, [x5, #8]
	stp	x2, x3, [x5, #24]
	stlr	x12, [x9]
	str	x11, [x8]
	ret
	str	x11, [x8]
	mov	x5, x3
	mov	x4, x2
	mov	x3, x1
	mov	x2, x0
	orr	w1, w6, #0x2000
	mov	w0, w7
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x27c
	nop
	nop

<probe_eight>:
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x1, #4]
	and	w1, w1, #0xff
	cbnz	w1, <probe_eight+0x1c>
	ret
	ldr	w3, [x2, #8]
	ldp	x2, x15, [x0]
	add	w9, w3, #0x4
	ldp	x4, x5, [x0, #16]
	ldp	x6, x7, [x0, #32]
	ldp	x17, x16, [x0, #48]
	tbnz	w1, #1, <probe_eight+0xa4>
	mrs	x0, tpidr_el0
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x11, [x0]
	add	x10, x11, #0x8
	ldr	x13, [x10]
	mov	x3, #0x1                   	// #1
	str	x3, [x10]
	ldr	x8, [x11]
	and	x8, x8, #0xfffffffffffffff8
	add	x14, x8, #0x48
	mrs	x12, cntvct_el0
	cmp	x13, x14
	b.cc	<probe_eight+0xa0>  // b.lo, b.ul, b.last
	ldr	x1, [x0, #16]
	mov	w3, w9
	orr	x12, x3, x12, lsl #16
	add	x0, x8, x1
	str	x12, [x8, x1]
	stp	x2, x15, [x0, #8]
	stp	x4, x5, [x0, #24]
	stp	x6, x7, [x0, #40]
	stp	x17, x16, [x0, #56]
	stlr	x14, [x11]
	str	x13, [x10]
	ret
	str	x13, [x10]
	sub	sp, sp, #0x20
	mov	x3, x15
	orr	w1, w1, #0x4000
	mov	w0, w9
	stp	x29, x30, [sp, #16]
	add	x29, sp, #0x10
	stp	x17, x16, [sp]
	bl	<probe_empty>
			R_AARCH64_CALL26	.text.unlikely+0x3ac
	ldp	x29, x30, [sp, #16]
	add	sp, sp, #0x20
	ret

<probe_enabled>:
	adrp	x0, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	ldr	x0, [x0]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w0, [x0, #1]
	and	w0, w0, #0xff
	cmp	w0, #0x0
	cset	w0, ne	// ne = any
	ret

<lat_i_looked0>:
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	add	x2, sp, #0x28
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	mov	w20, w1
	str	xzr, [sp, #40]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked0+0x90>
	mrs	x2, tpidr_el0
	lsr	w1, w20, #8
	add	x2, x2, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x2, x2, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x6, [x2]
	add	x3, x6, #0x8
	ldr	x5, [x3]
	mov	x0, #0x1                   	// #1
	str	x0, [x3]
	ldr	x4, [x6]
	neg	w0, w1
	and	x4, x4, #0xfffffffffffffff8
	add	x0, x0, #0x8
	add	x0, x0, x4
	mrs	x7, cntvct_el0
	cmp	x5, x0
	b.cc	<lat_i_looked0+0x80>  // b.lo, b.ul, b.last
	ldr	x1, [x2, #16]
	orr	x7, x19, x7, lsl #16
	str	x7, [x1, x4]
	stlr	x0, [x6]
	str	x5, [x3]
	b	<lat_i_looked0+0x90>
	str	x5, [x3]
	add	x2, sp, #0x28
	mov	w0, w19
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret

<lat_i_rare0>:
	mov	w2, w1
	tbz	w2, #1, <lat_i_rare0+0xc>
	b	<lat_i_looked0>
	stp	x29, x30, [sp, #-32]!
	lsr	w1, w1, #8
	mov	x29, sp
	add	x2, sp, #0x18
	str	xzr, [sp, #24]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x29, x30, [sp], #32
	ret

<lat_i_looked1>:
	stp	x29, x30, [sp, #-64]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	mov	w20, w1
	str	x21, [sp, #32]
	mov	x21, x2
	add	x2, sp, #0x38
	str	x21, [sp, #56]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked1+0xa4>
	mrs	x0, tpidr_el0
	lsr	w1, w20, #8
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x6, [x0]
	add	x5, x6, #0x8
	ldr	x2, [x5]
	mov	x3, #0x1                   	// #1
	str	x3, [x5]
	ldr	x4, [x6]
	and	x4, x4, #0xfffffffffffffff8
	mov	w3, #0x8                   	// #8
	sub	w3, w3, w1
	add	x3, x3, #0x10
	add	x3, x3, x4
	mrs	x7, cntvct_el0
	cmp	x2, x3
	b.cc	<lat_i_looked1+0x94>  // b.lo, b.ul, b.last
	ldr	x0, [x0, #16]
	orr	x7, x19, x7, lsl #16
	add	x1, x4, x0
	str	x7, [x4, x0]
	str	x21, [x1, #8]
	stlr	x3, [x6]
	str	x2, [x5]
	b	<lat_i_looked1+0xa4>
	str	x2, [x5]
	add	x2, sp, #0x38
	mov	w0, w19
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldr	x21, [sp, #32]
	ldp	x29, x30, [sp], #64
	ret

<lat_i_rare1>:
	mov	w3, w1
	tbz	w3, #1, <lat_i_rare1+0xc>
	b	<lat_i_looked1>
	stp	x29, x30, [sp, #-32]!
	mov	x4, x2
	lsr	w1, w1, #8
	mov	x29, sp
	add	x2, sp, #0x18
	str	x4, [sp, #24]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x29, x30, [sp], #32
	ret

<lat_i_looked4>:
	stp	x29, x30, [sp, #-96]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	mov	w20, w1
	stp	x21, x22, [sp, #32]
	mov	x22, x4
	mov	x21, x5
	stp	x23, x24, [sp, #48]
	mov	x24, x2
	mov	x23, x3
	add	x2, sp, #0x40
	stp	x24, x3, [sp, #64]
	stp	x4, x5, [sp, #80]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked4+0xbc>
	mrs	x0, tpidr_el0
	lsr	w1, w20, #8
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x3, [x0]
	add	x8, x3, #0x8
	ldr	x2, [x8]
	mov	x4, #0x1                   	// #1
	str	x4, [x8]
	ldr	x7, [x3]
	and	x7, x7, #0xfffffffffffffff8
	mov	w6, #0x20                  	// #32
	sub	w6, w6, w1
	add	x6, x6, #0x28
	add	x6, x6, x7
	mrs	x4, cntvct_el0
	cmp	x2, x6
	b.cc	<lat_i_looked4+0xac>  // b.lo, b.ul, b.last
	ldr	x1, [x0, #16]
	orr	x4, x19, x4, lsl #16
	add	x0, x7, x1
	str	x4, [x7, x1]
	stp	x24, x23, [x0, #8]
	stp	x22, x21, [x0, #24]
	stlr	x6, [x3]
	str	x2, [x8]
	b	<lat_i_looked4+0xbc>
	str	x2, [x8]
	add	x2, sp, #0x40
	mov	w0, w19
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x29, x30, [sp], #96
	ret

<lat_i_rare4>:
	mov	w6, w1
	tbz	w6, #1, <lat_i_rare4+0xc>
	b	<lat_i_looked4>
	stp	x29, x30, [sp, #-48]!
	mov	x10, x2
	lsr	w1, w1, #8
	mov	x29, sp
	add	x2, sp, #0x10
	stp	x10, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x29, x30, [sp], #48
	ret

<lat_i_looked8>:
	stp	x29, x30, [sp, #-160]!
	mov	x29, sp
	stp	x21, x22, [sp, #32]
	ldp	x22, x21, [sp, #160]
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	mov	w20, w1
	stp	x23, x24, [sp, #48]
	mov	x24, x6
	mov	x23, x7
	stp	x25, x26, [sp, #64]
	mov	x26, x4
	mov	x25, x5
	stp	x27, x28, [sp, #80]
	mov	x28, x2
	mov	x27, x3
	add	x2, sp, #0x60
	stp	x28, x3, [sp, #96]
	stp	x4, x5, [sp, #112]
	stp	x6, x7, [sp, #128]
	stp	x22, x21, [sp, #144]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked8+0xe0>
	mrs	x0, tpidr_el0
	lsr	w1, w20, #8
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x3, [x0]
	add	x10, x3, #0x8
	ldr	x2, [x10]
	mov	x4, #0x1                   	// #1
	str	x4, [x10]
	ldr	x9, [x3]
	and	x9, x9, #0xfffffffffffffff8
	mov	w8, #0x40                  	// #64
	sub	w8, w8, w1
	add	x8, x8, #0x48
	add	x8, x8, x9
	mrs	x4, cntvct_el0
	cmp	x2, x8
	b.cc	<lat_i_looked8+0xd0>  // b.lo, b.ul, b.last
	ldr	x0, [x0, #16]
	orr	x4, x19, x4, lsl #16
	add	x1, x9, x0
	str	x4, [x9, x0]
	stp	x28, x27, [x1, #8]
	stp	x26, x25, [x1, #24]
	stp	x24, x23, [x1, #40]
	stp	x22, x21, [x1, #56]
	stlr	x8, [x3]
	str	x2, [x10]
	b	<lat_i_looked8+0xe0>
	str	x2, [x10]
	add	x2, sp, #0x60
	mov	w0, w19
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldp	x27, x28, [sp, #80]
	ldp	x29, x30, [sp], #160
	ret

<lat_i_rare8>:
	stp	x29, x30, [sp, #-80]!
	mov	w8, w1
	mov	x29, sp
	ldp	x16, x15, [sp, #80]
	tbz	w8, #1, <lat_i_rare8+0x1c>
	ldp	x29, x30, [sp], #80
	b	<lat_i_looked8>
	mov	x14, x2
	lsr	w1, w1, #8
	add	x2, sp, #0x10
	stp	x14, x3, [sp, #16]
	stp	x4, x5, [sp, #32]
	stp	x6, x7, [sp, #48]
	stp	x16, x15, [sp, #64]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x29, x30, [sp], #80
	ret

<lat_register_tests>:
	adrp	x0, <lat_register_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	b	<lat_register>
			R_AARCH64_JUMP26	lat_register
