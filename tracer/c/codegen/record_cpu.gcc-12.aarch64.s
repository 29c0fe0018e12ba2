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
	tbnz	w1, #1, <probe_empty+0xb8>
	adrp	x6, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x5, x6, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x3, tpidr_el0
	mov	w4, w0
	add	x3, x3, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x3, x3, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x14, #0x0                   	// #0
	ldp	x7, x8, [x5, #8]
	mrs	x2, tpidr_el0
	ldr	x15, [x5, #24]
	ldr	x5, [x6]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x2, x2, x8
	ldr	w8, [x3, #8]
	cbz	w8, <probe_empty+0xb8>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x80
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x80
	str	x9, [x2, #8]
	ldr	w9, [x2]
	madd	x9, x9, x7, x5
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w8
	b.ne	<probe_empty+0xb8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x8
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_empty+0xb8>  // b.pmore
	and	x12, x15, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x4, x13, lsl #16
	str	x13, [x12]
	add	x11, x11, x14
	stlr	x11, [x9]
	ret
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0xd0
	nop

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
	ldr	w4, [x2, #8]
	mov	w0, w0
	add	w4, w4, #0xb
	tbnz	w1, #1, <probe_u32+0xc4>
	adrp	x7, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x6, x7, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x3, tpidr_el0
	mov	w5, w4
	add	x3, x3, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x3, x3, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x15, #0x4                   	// #4
	ldp	x8, x9, [x6, #8]
	mrs	x2, tpidr_el0
	ldr	x16, [x6, #24]
	ldr	w14, [x3, #8]
	ldr	x6, [x7]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x2, x2, x9
	cbz	w14, <probe_u32+0xc4>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0xa0
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0xa0
	str	x9, [x2, #8]
	ldr	w9, [x2]
	madd	x9, x9, x8, x6
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w14
	b.ne	<probe_u32+0xc4>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_u32+0xc4>  // b.pmore
	and	x12, x16, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x5, x13, lsl #16
	str	x13, [x12]
	str	x0, [x12, #8]
	add	x11, x11, x15
	stlr	x11, [x9]
	ret
	mov	x2, x0
	orr	w1, w1, #0x400
	mov	w0, w4
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x1e0

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
	ldr	w4, [x2, #8]
	add	w4, w4, #0x1
	tbnz	w1, #1, <probe_one+0xc0>
	adrp	x7, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x6, x7, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x3, tpidr_el0
	mov	w5, w4
	add	x3, x3, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x3, x3, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x15, #0x0                   	// #0
	ldp	x8, x9, [x6, #8]
	mrs	x2, tpidr_el0
	ldr	x16, [x6, #24]
	ldr	w14, [x3, #8]
	ldr	x6, [x7]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x2, x2, x9
	cbz	w14, <probe_one+0xc0>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0xc0
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0xc0
	str	x9, [x2, #8]
	ldr	w9, [x2]
	madd	x9, x9, x8, x6
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w14
	b.ne	<probe_one+0xc0>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_one+0xc0>  // b.pmore
	and	x12, x16, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x5, x13, lsl #16
	str	x13, [x12]
	str	x0, [x12, #8]
	add	x11, x11, x15
	stlr	x11, [x9]
	ret
	mov	x2, x0
	orr	w1, w1, #0x800
	mov	w0, w4
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x1e0

<probe_four>:
	adrp	x7, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	ldr	x6, [x7]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	add	x7, x7, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldrb	w6, [x6, #3]
	and	w6, w6, #0xff
	cbnz	w6, <probe_four+0x1c>
	ret
	ldr	w7, [x7, #8]
	add	w7, w7, #0x3
	tbnz	w6, #1, <probe_four+0xcc>
	adrp	x10, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x9, x10, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x5, tpidr_el0
	mov	w8, w7
	add	x5, x5, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x5, x5, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x17, #0x0                   	// #0
	ldp	x14, x11, [x9, #8]
	mrs	x4, tpidr_el0
	ldr	x18, [x9, #24]
	ldr	x15, [x10]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	ldr	w16, [x5, #8]
	add	x4, x4, x11
	cbz	w16, <probe_four+0xcc>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0xe0
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0xe0
	str	x9, [x4, #8]
	ldr	w9, [x4]
	madd	x9, x9, x14, x15
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w16
	b.ne	<probe_four+0xcc>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x28
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_four+0xcc>  // b.pmore
	and	x12, x18, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x8, x13, lsl #16
	str	x13, [x12]
	str	x0, [x12, #8]
	str	x1, [x12, #16]
	str	x2, [x12, #24]
	str	x3, [x12, #32]
	add	x11, x11, x17
	stlr	x11, [x9]
	ret
	mov	x5, x3
	mov	x4, x2
	mov	x3, x1
	mov	x2, x0
	orr	w1, w6, #0x2000
	mov	w0, w7
	b	<probe_empty>
			R_AARCH64_JUMP26	.text.unlikely+0x318
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
	sub	sp, sp, #0x40
	stp	x29, x30, [sp, #16]
	add	x29, sp, #0x10
	ldr	w14, [x2, #8]
	ldp	x2, x3, [x0]
	add	w14, w14, #0x4
	ldp	x4, x5, [x0, #16]
	ldp	x6, x7, [x0, #32]
	ldp	x16, x15, [x0, #48]
	tbnz	w1, #1, <probe_eight+0x118>
	adrp	x11, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x10, x11, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x9, tpidr_el0
	mov	w0, w14
	add	x9, x9, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x9, x9, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	stp	x19, x20, [sp, #32]
	mrs	x8, tpidr_el0
	ldp	x17, x12, [x10, #8]
	mov	x19, #0x0                   	// #0
	ldr	x20, [x10, #24]
	stp	x15, x16, [sp, #48]
	ldr	w30, [x9, #8]
	ldr	x18, [x11]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x8, x8, x12
	cbz	w30, <probe_eight+0x114>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x100
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x100
	str	x9, [x8, #8]
	ldr	w9, [x8]
	madd	x9, x9, x17, x18
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w30
	b.ne	<probe_eight+0x114>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x48
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_eight+0x114>  // b.pmore
	and	x12, x20, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x2, [x12, #8]
	str	x3, [x12, #16]
	str	x4, [x12, #24]
	str	x5, [x12, #32]
	str	x6, [x12, #40]
	str	x7, [x12, #48]
	ldr	x13, [sp, #56]
	str	x13, [x12, #56]
	ldr	x13, [sp, #48]
	str	x13, [x12, #64]
	add	x11, x11, x19
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #32]
	ldp	x29, x30, [sp, #16]
	add	sp, sp, #0x40
	ret
	ldp	x19, x20, [sp, #32]
	stp	x16, x15, [sp]
	orr	w1, w1, #0x4000
	mov	w0, w14
	bl	<probe_empty>
			R_AARCH64_CALL26	.text.unlikely+0x494
	b	<probe_eight+0x108>
	nop

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
	mov	w20, w0
	mov	w19, w1
	str	xzr, [sp, #40]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked0+0xc4>
	mrs	x3, tpidr_el0
	adrp	x5, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x3, x3, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x3, x3, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	add	x4, x5, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	lsr	w1, w19, #8
	neg	w19, w19, lsr #8
	mrs	x2, tpidr_el0
	ldr	w7, [x3, #8]
	ldp	x3, x6, [x4]
	ldp	x0, x4, [x4, #16]
	add	x2, x2, x0
	mov	w0, w20
	cbz	w7, <lat_i_looked0+0xb8>
	adrp	x9, <lat_i_looked0>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs
	str	x9, [x2, #8]
	ldr	w9, [x2]
	madd	x9, x9, x6, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w7
	b.ne	<lat_i_looked0+0xb8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x8
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<lat_i_looked0+0xb8>  // b.pmore
	and	x12, x4, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	add	x11, x11, x19
	stlr	x11, [x9]
	b	<lat_i_looked0+0xc4>
	add	x2, sp, #0x28
	mov	w0, w20
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
	mov	w20, w0
	mov	w19, w1
	str	x21, [sp, #32]
	mov	x21, x2
	add	x2, sp, #0x38
	str	x21, [sp, #56]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked1+0xd4>
	adrp	x4, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x0, x4, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, #0x8                   	// #8
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	sub	w2, w2, w19, lsr #8
	ldp	x6, x7, [x0, #16]
	mrs	x3, tpidr_el0
	ldp	x4, x5, [x0]
	mov	w0, w20
	add	x3, x3, x6
	ldr	w6, [x1, #8]
	lsr	w1, w19, #8
	cbz	w6, <lat_i_looked1+0xc8>
	adrp	x9, <lat_i_looked0>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x20
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x20
	str	x9, [x3, #8]
	ldr	w9, [x3]
	madd	x9, x9, x5, x4
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w6
	b.ne	<lat_i_looked1+0xc8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<lat_i_looked1+0xc8>  // b.pmore
	and	x12, x7, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x21, [x12, #8]
	add	x11, x11, x2
	stlr	x11, [x9]
	b	<lat_i_looked1+0xd4>
	add	x2, sp, #0x38
	mov	w0, w20
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
	mov	w20, w0
	mov	w19, w1
	stp	x21, x22, [sp, #32]
	mov	x21, x2
	mov	x22, x3
	add	x2, sp, #0x40
	stp	x23, x24, [sp, #48]
	mov	x23, x4
	mov	x24, x5
	stp	x21, x3, [sp, #64]
	stp	x4, x5, [sp, #80]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked4+0xf4>
	adrp	x3, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x0, x3, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, #0x20                  	// #32
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	sub	w2, w2, w19, lsr #8
	ldp	x5, x7, [x0, #16]
	mrs	x6, tpidr_el0
	ldp	x3, x4, [x0]
	mov	w0, w20
	add	x6, x6, x5
	ldr	w5, [x1, #8]
	lsr	w1, w19, #8
	cbz	w5, <lat_i_looked4+0xe8>
	adrp	x9, <lat_i_looked0>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x40
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x40
	str	x9, [x6, #8]
	ldr	w9, [x6]
	madd	x9, x9, x4, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<lat_i_looked4+0xe8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x28
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<lat_i_looked4+0xe8>  // b.pmore
	and	x12, x7, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x21, [x12, #8]
	str	x22, [x12, #16]
	str	x23, [x12, #24]
	str	x24, [x12, #32]
	add	x11, x11, x2
	stlr	x11, [x9]
	b	<lat_i_looked4+0xf4>
	add	x2, sp, #0x40
	mov	w0, w20
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
	stp	x29, x30, [sp, #-176]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	w19, w1
	stp	x21, x22, [sp, #32]
	mov	w22, w0
	ldp	x21, x20, [sp, #176]
	stp	x23, x24, [sp, #48]
	mov	x23, x2
	mov	x24, x3
	add	x2, sp, #0x70
	stp	x25, x26, [sp, #64]
	mov	x25, x4
	mov	x26, x5
	stp	x27, x28, [sp, #80]
	mov	x27, x6
	mov	x28, x7
	stp	x23, x3, [sp, #112]
	stp	x4, x5, [sp, #128]
	stp	x6, x7, [sp, #144]
	stp	x21, x20, [sp, #160]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbz	w0, <lat_i_looked8+0x12c>
	adrp	x3, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x0, x3, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, #0x40                  	// #64
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	sub	w2, w2, w19, lsr #8
	ldp	x5, x6, [x0, #16]
	mrs	x8, tpidr_el0
	ldp	x3, x4, [x0]
	mov	w0, w22
	stp	x21, x20, [sp, #96]
	add	x8, x8, x5
	ldr	w5, [x1, #8]
	lsr	w1, w19, #8
	cbz	w5, <lat_i_looked8+0x120>
	adrp	x9, <lat_i_looked0>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x60
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x60
	str	x9, [x8, #8]
	ldr	w9, [x8]
	madd	x9, x9, x4, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<lat_i_looked8+0x120>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x48
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<lat_i_looked8+0x120>  // b.pmore
	and	x12, x6, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x23, [x12, #8]
	str	x24, [x12, #16]
	str	x25, [x12, #24]
	str	x26, [x12, #32]
	str	x27, [x12, #40]
	str	x28, [x12, #48]
	ldr	x13, [sp, #96]
	str	x13, [x12, #56]
	ldr	x13, [sp, #104]
	str	x13, [x12, #64]
	add	x11, x11, x2
	stlr	x11, [x9]
	b	<lat_i_looked8+0x12c>
	add	x2, sp, #0x70
	mov	w0, w22
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldp	x27, x28, [sp, #80]
	ldp	x29, x30, [sp], #176
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

<__rseq_failure>:
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text.unlikely+0xb8
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text.unlikely+0x1c4
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text.unlikely+0x2f8
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text.unlikely+0x46c
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0xb8
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x184
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x254
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x330
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x464

<lat_register_tests>:
	adrp	x0, <lat_register_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	b	<lat_register>
			R_AARCH64_JUMP26	lat_register
