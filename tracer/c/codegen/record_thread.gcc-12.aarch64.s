<probe_empty>:
	adrp	x0, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x0, [x0]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x0]
	and	w1, w1, #0xff
	cbz	w1, <probe_empty+0x88>
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	str	x19, [sp, #16]
	ldr	w19, [x2, #8]
	tbnz	w1, #1, <probe_empty+0x8c>
	mrs	x0, tpidr_el0
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x3, [x0]
	add	x2, x3, #0x8
	ldr	x5, [x2]
	mov	x1, #0x1                   	// #1
	str	x1, [x2]
	ldr	x1, [x3]
	and	x1, x1, #0xfffffffffffffff8
	add	x6, x1, #0x8
	mrs	x4, cntvct_el0
	cmp	x5, x6
	b.cc	<probe_empty+0xa4>  // b.lo, b.ul, b.last
	ldr	x0, [x0, #16]
	mov	w19, w19
	orr	x4, x19, x4, lsl #16
	str	x4, [x0, x1]
	stlr	x6, [x3]
	str	x5, [x2]
	ldr	x19, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	ret
	add	x2, sp, #0x28
	mov	w0, w19
	str	xzr, [sp, #40]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_empty+0x2c>
	b	<probe_empty+0x7c>
	str	x5, [x2]
	mov	w0, w19
	add	x2, sp, #0x28
	mov	w1, #0x0                   	// #0
	str	xzr, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_empty+0x7c>

<probe_u32>:
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x1, #11]
	and	w1, w1, #0xff
	cbz	w1, <probe_u32+0x94>
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	ldr	w20, [x2, #8]
	add	w20, w20, #0xb
	tbnz	w1, #1, <probe_u32+0x98>
	mrs	x1, tpidr_el0
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x3, [x1]
	add	x2, x3, #0x8
	ldr	x5, [x2]
	mov	x0, #0x1                   	// #1
	str	x0, [x2]
	ldr	x0, [x3]
	and	x0, x0, #0xfffffffffffffff8
	add	x6, x0, #0x14
	mrs	x4, cntvct_el0
	cmp	x5, x6
	b.cc	<probe_u32+0xb4>  // b.lo, b.ul, b.last
	ldr	x1, [x1, #16]
	orr	x4, x20, x4, lsl #16
	add	x7, x0, x1
	str	x4, [x0, x1]
	str	x19, [x7, #8]
	stlr	x6, [x3]
	str	x5, [x2]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	ret
	orr	w1, w1, #0x400
	add	x2, sp, #0x28
	mov	w0, w20
	str	x19, [sp, #40]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_u32+0x34>
	b	<probe_u32+0x88>
	str	x5, [x2]
	mov	w1, #0x4                   	// #4
	mov	w0, w20
	add	x2, sp, #0x28
	str	x19, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_u32+0x88>

<probe_one>:
	stp	x29, x30, [sp, #-48]!
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x20, x0
	ldr	x0, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x0, #1]
	and	w1, w1, #0xff
	cbz	w1, <probe_one+0x88>
	ldr	w19, [x2, #8]
	add	w19, w19, #0x1
	tbnz	w1, #1, <probe_one+0x94>
	mrs	x0, tpidr_el0
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x3, [x0]
	add	x2, x3, #0x8
	ldr	x5, [x2]
	mov	x1, #0x1                   	// #1
	str	x1, [x2]
	ldr	x1, [x3]
	and	x1, x1, #0xfffffffffffffff8
	add	x6, x1, #0x10
	mrs	x4, cntvct_el0
	cmp	x5, x6
	b.cc	<probe_one+0xb0>  // b.lo, b.ul, b.last
	ldr	x0, [x0, #16]
	orr	x4, x19, x4, lsl #16
	add	x7, x1, x0
	str	x4, [x1, x0]
	str	x20, [x7, #8]
	stlr	x6, [x3]
	str	x5, [x2]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	orr	w1, w1, #0x800
	add	x2, sp, #0x28
	mov	w0, w19
	str	x20, [sp, #40]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_one+0x34>
	b	<probe_one+0x88>
	str	x5, [x2]
	mov	w1, #0x8                   	// #8
	mov	w0, w19
	add	x2, sp, #0x28
	str	x20, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_one+0x88>
	nop

<probe_four>:
	adrp	x5, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	ldr	x4, [x5]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w4, [x4, #3]
	and	w4, w4, #0xff
	cbz	w4, <probe_four+0xb4>
	stp	x29, x30, [sp, #-96]!
	add	x5, x5, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x20, x3
	ldr	w19, [x5, #8]
	stp	x21, x22, [sp, #32]
	mov	x22, x1
	mov	x21, x2
	str	x23, [sp, #48]
	add	w19, w19, #0x3
	mov	x23, x0
	tbnz	w4, #1, <probe_four+0xb8>
	mrs	x0, tpidr_el0
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x2, [x0]
	add	x1, x2, #0x8
	ldr	x5, [x1]
	mov	x3, #0x1                   	// #1
	str	x3, [x1]
	ldr	x4, [x2]
	and	x4, x4, #0xfffffffffffffff8
	add	x6, x4, #0x28
	mrs	x3, cntvct_el0
	cmp	x5, x6
	b.cc	<probe_four+0xd8>  // b.lo, b.ul, b.last
	ldr	x7, [x0, #16]
	orr	x3, x19, x3, lsl #16
	add	x0, x4, x7
	str	x3, [x4, x7]
	stp	x23, x22, [x0, #8]
	stp	x21, x20, [x0, #24]
	stlr	x6, [x2]
	str	x5, [x1]
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldr	x23, [sp, #48]
	ldp	x29, x30, [sp], #96
	ret
	ret
	orr	w1, w4, #0x2000
	add	x2, sp, #0x40
	mov	w0, w19
	stp	x23, x22, [sp, #64]
	stp	x21, x20, [sp, #80]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_four+0x48>
	b	<probe_four+0xa0>
	str	x5, [x1]
	mov	w1, #0x20                  	// #32
	mov	w0, w19
	add	x2, sp, #0x40
	stp	x23, x22, [sp, #64]
	stp	x21, x20, [sp, #80]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_four+0xa0>
	nop
	nop

<probe_eight>:
	stp	x29, x30, [sp, #-160]!
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	stp	x19, x20, [sp, #16]
	ldr	x20, [x0, #48]
	stp	x21, x22, [sp, #32]
	ldp	x22, x21, [x0, #32]
	stp	x23, x24, [sp, #48]
	ldp	x24, x23, [x0]
	stp	x25, x26, [sp, #64]
	ldp	x25, x26, [x0, #16]
	str	x27, [sp, #80]
	ldr	x27, [x0, #56]
	ldrb	w1, [x1, #4]
	and	w1, w1, #0xff
	cbz	w1, <probe_eight+0xb4>
	ldr	w19, [x2, #8]
	add	w19, w19, #0x4
	tbnz	w1, #1, <probe_eight+0xd0>
	mrs	x0, tpidr_el0
	add	x0, x0, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x0, x0, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	ldr	x3, [x0]
	add	x2, x3, #0x8
	ldr	x5, [x2]
	mov	x1, #0x1                   	// #1
	str	x1, [x2]
	ldr	x1, [x3]
	and	x1, x1, #0xfffffffffffffff8
	add	x6, x1, #0x48
	mrs	x4, cntvct_el0
	cmp	x5, x6
	b.cc	<probe_eight+0xf8>  // b.lo, b.ul, b.last
	ldr	x7, [x0, #16]
	orr	x4, x19, x4, lsl #16
	add	x0, x1, x7
	str	x4, [x1, x7]
	stp	x24, x23, [x0, #8]
	stp	x25, x26, [x0, #24]
	stp	x22, x21, [x0, #40]
	stp	x20, x27, [x0, #56]
	stlr	x6, [x3]
	str	x5, [x2]
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldp	x25, x26, [sp, #64]
	ldr	x27, [sp, #80]
	ldp	x29, x30, [sp], #160
	ret
	orr	w1, w1, #0x4000
	add	x2, sp, #0x60
	mov	w0, w19
	stp	x24, x23, [sp, #96]
	stp	x25, x26, [sp, #112]
	stp	x22, x21, [sp, #128]
	stp	x20, x27, [sp, #144]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_eight+0x54>
	b	<probe_eight+0xb4>
	str	x5, [x2]
	mov	w0, w19
	add	x2, sp, #0x60
	mov	w1, #0x40                  	// #64
	stp	x24, x23, [sp, #96]
	stp	x25, x26, [sp, #112]
	stp	x22, x21, [sp, #128]
	stp	x20, x27, [sp, #144]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_eight+0xb4>

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

<lat_register_tests>:
	adrp	x0, <lat_register_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	b	<lat_register>
			R_AARCH64_JUMP26	lat_register
