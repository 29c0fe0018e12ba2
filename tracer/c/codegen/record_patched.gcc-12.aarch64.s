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
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	str	x19, [sp, #16]
	ldr	w19, [x2, #8]
	tbnz	w1, #1, <probe_empty+0xe4>
	adrp	x3, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x4, x3, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, w19
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x6, #0x0                   	// #0
	ldp	x4, x5, [x4, #8]
	mrs	x0, tpidr_el0
	ldr	x3, [x3]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x0, x0, x5
	ldr	w5, [x1, #8]
	cbz	w5, <probe_empty+0xcc>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs
	str	x9, [x0, #8]
	ldr	w9, [x0]
	madd	x9, x9, x4, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<probe_empty+0xcc>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x8
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_empty+0xcc>  // b.pmore
	ldr	x12, [x9, #24]
	and	x12, x12, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x2, x13, lsl #16
	str	x13, [x12]
	add	x11, x11, x6
	stlr	x11, [x9]
	ldr	x19, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	mov	w0, w19
	add	x2, sp, #0x28
	mov	w1, #0x0                   	// #0
	str	xzr, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_empty+0xc0>
	mov	w0, w19
	mov	x2, #0x0                   	// #0
	bl	<lat_i_watch>
			R_AARCH64_CALL26	lat_i_watch
	cbnz	w0, <probe_empty+0x30>
	b	<probe_empty+0xc0>
	nop
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
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	ldr	w20, [x2, #8]
	add	w20, w20, #0xb
	tbnz	w1, #1, <probe_u32+0xf0>
	adrp	x3, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x4, x3, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, w20
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x6, #0x4                   	// #4
	ldp	x4, x5, [x4, #8]
	mrs	x0, tpidr_el0
	ldr	x3, [x3]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x0, x0, x5
	ldr	w5, [x1, #8]
	cbz	w5, <probe_u32+0xd8>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x20
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x20
	str	x9, [x0, #8]
	ldr	w9, [x0]
	madd	x9, x9, x4, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<probe_u32+0xd8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_u32+0xd8>  // b.pmore
	ldr	x12, [x9, #24]
	and	x12, x12, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x2, x13, lsl #16
	str	x13, [x12]
	str	x19, [x12, #8]
	add	x11, x11, x6
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	mov	w0, w20
	add	x2, sp, #0x28
	mov	w1, #0x4                   	// #4
	str	x19, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_u32+0xcc>
	mov	x2, x19
	mov	w0, w20
	bl	<lat_i_watch>
			R_AARCH64_CALL26	lat_i_watch
	cbnz	w0, <probe_u32+0x38>
	b	<probe_u32+0xcc>

<probe_one>:
	stp	x29, x30, [sp, #-48]!
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x19, x0
	add	x0, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x1, #1]
	and	w1, w1, #0xff
	cbnz	w1, <probe_one+0x34>
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	ldr	w20, [x0, #8]
	add	w20, w20, #0x1
	tbnz	w1, #1, <probe_one+0xf0>
	adrp	x3, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x4, x3, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, w20
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x6, #0x0                   	// #0
	ldp	x4, x5, [x4, #8]
	mrs	x0, tpidr_el0
	ldr	x3, [x3]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x0, x0, x5
	ldr	w5, [x1, #8]
	cbz	w5, <probe_one+0xd8>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x40
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x40
	str	x9, [x0, #8]
	ldr	w9, [x0]
	madd	x9, x9, x4, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<probe_one+0xd8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_one+0xd8>  // b.pmore
	ldr	x12, [x9, #24]
	and	x12, x12, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x2, x13, lsl #16
	str	x13, [x12]
	str	x19, [x12, #8]
	add	x11, x11, x6
	stlr	x11, [x9]
	b	<probe_one+0x28>
	mov	w0, w20
	add	x2, sp, #0x28
	mov	w1, #0x8                   	// #8
	str	x19, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_one+0x28>
	mov	x2, x19
	mov	w0, w20
	bl	<lat_i_watch>
			R_AARCH64_CALL26	lat_i_watch
	cbnz	w0, <probe_one+0x40>
	b	<probe_one+0x28>
	nop
	nop

<probe_four>:
	adrp	x5, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	ldr	x4, [x5]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w4, [x4, #3]
	and	w4, w4, #0xff
	cbnz	w4, <probe_four+0x18>
	ret
	stp	x29, x30, [sp, #-96]!
	add	x5, x5, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x20, x1
	mov	x19, x2
	stp	x21, x22, [sp, #32]
	mov	x21, x0
	ldr	w22, [x5, #8]
	add	w22, w22, #0x3
	tbnz	w4, #1, <probe_four+0x110>
	adrp	x4, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x5, x4, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, w22
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x7, #0x0                   	// #0
	ldp	x5, x6, [x5, #8]
	mrs	x0, tpidr_el0
	ldr	x4, [x4]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x0, x0, x6
	ldr	w6, [x1, #8]
	cbz	w6, <probe_four+0xf4>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x60
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x60
	str	x9, [x0, #8]
	ldr	w9, [x0]
	madd	x9, x9, x5, x4
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w6
	b.ne	<probe_four+0xf4>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x28
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_four+0xf4>  // b.pmore
	ldr	x12, [x9, #24]
	and	x12, x12, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x2, x13, lsl #16
	str	x13, [x12]
	str	x21, [x12, #8]
	str	x20, [x12, #16]
	str	x19, [x12, #24]
	str	x3, [x12, #32]
	add	x11, x11, x7
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x29, x30, [sp], #96
	ret
	mov	w0, w22
	add	x2, sp, #0x40
	mov	w1, #0x20                  	// #32
	stp	x21, x20, [sp, #64]
	stp	x19, x3, [sp, #80]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_four+0xe4>
	mov	x2, x0
	mov	w1, w4
	mov	w0, w22
	str	x3, [sp, #56]
	bl	<lat_i_watch>
			R_AARCH64_CALL26	lat_i_watch
	ldr	x3, [sp, #56]
	cbnz	w0, <probe_four+0x44>
	b	<probe_four+0xe4>

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
	stp	x29, x30, [sp, #-160]!
	mov	x29, sp
	ldr	x3, [x0, #48]
	str	x3, [sp, #88]
	ldr	x3, [x0, #56]
	stp	x19, x20, [sp, #16]
	ldr	w19, [x2, #8]
	ldr	x20, [x0]
	stp	x21, x22, [sp, #32]
	add	w19, w19, #0x4
	ldp	x22, x21, [x0, #32]
	stp	x23, x24, [sp, #48]
	ldp	x24, x23, [x0, #16]
	str	x25, [sp, #64]
	str	x3, [sp, #80]
	ldr	x25, [x0, #8]
	tbnz	w1, #1, <probe_eight+0x158>
	adrp	x3, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x4, x3, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, w19
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x6, #0x0                   	// #0
	ldp	x4, x5, [x4, #8]
	mrs	x0, tpidr_el0
	ldr	x3, [x3]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x0, x0, x5
	ldr	w5, [x1, #8]
	cbz	w5, <probe_eight+0x130>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x80
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x80
	str	x9, [x0, #8]
	ldr	w9, [x0]
	madd	x9, x9, x4, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<probe_eight+0x130>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x48
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_eight+0x130>  // b.pmore
	ldr	x12, [x9, #24]
	and	x12, x12, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x2, x13, lsl #16
	str	x13, [x12]
	str	x20, [x12, #8]
	str	x25, [x12, #16]
	str	x24, [x12, #24]
	str	x23, [x12, #32]
	str	x22, [x12, #40]
	str	x21, [x12, #48]
	ldr	x13, [sp, #88]
	str	x13, [x12, #56]
	ldr	x13, [sp, #80]
	str	x13, [x12, #64]
	add	x11, x11, x6
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldr	x25, [sp, #64]
	ldp	x29, x30, [sp], #160
	ret
	ldp	x3, x4, [sp, #80]
	mov	w0, w19
	add	x2, sp, #0x60
	mov	w1, #0x40                  	// #64
	stp	x20, x25, [sp, #96]
	stp	x24, x23, [sp, #112]
	stp	x22, x21, [sp, #128]
	stp	x4, x3, [sp, #144]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	b	<probe_eight+0x118>
	mov	x2, x20
	mov	w0, w19
	bl	<lat_i_watch>
			R_AARCH64_CALL26	lat_i_watch
	cbnz	w0, <probe_eight+0x60>
	b	<probe_eight+0x118>
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

<lat_register_tests>:
	adrp	x0, <lat_register_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	b	<lat_register>
			R_AARCH64_JUMP26	lat_register
	nop

<lat_patch_tests>:
	adrp	x2, <__start_lat_sites>
			R_AARCH64_ADR_GOT_PAGE	__start_lat_sites
	ldr	x2, [x2]
			R_AARCH64_LD64_GOT_LO12_NC	__start_lat_sites
	adrp	x0, <lat_register_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_patch_table_of_object
	adrp	x1, <__stop_lat_sites>
			R_AARCH64_ADR_GOT_PAGE	__stop_lat_sites
	ldr	x1, [x1]
			R_AARCH64_LD64_GOT_LO12_NC	__stop_lat_sites
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_patch_table_of_object
	stp	x2, x1, [x0, #8]
	b	<lat_i_register_sites>
			R_AARCH64_JUMP26	lat_i_register_sites

<lat_forget_tests>:
	adrp	x0, <lat_forget_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_patch_table_of_object
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_patch_table_of_object
	b	<lat_i_forget_sites>
			R_AARCH64_JUMP26	lat_i_forget_sites

<__rseq_failure>:
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0xcc
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x1d8
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x2dc
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x404
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x570
