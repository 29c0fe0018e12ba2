<probe_empty>:
	adrp	x0, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x0, [x0]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x0]
	and	w1, w1, #0xff
	cbz	w1, <probe_empty+0xe8>
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	str	x19, [sp, #16]
	ldr	w19, [x2, #8]
	tbnz	w1, #1, <probe_empty+0xec>
	adrp	x4, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x3, x4, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x1, tpidr_el0
	mov	w2, w19
	add	x1, x1, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x1, x1, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x7, #0x0                   	// #0
	ldp	x5, x6, [x3, #8]
	mrs	x0, tpidr_el0
	ldr	x8, [x3, #24]
	ldr	x3, [x4]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	add	x0, x0, x6
	ldr	w6, [x1, #8]
	cbz	w6, <probe_empty+0xc8>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs
	str	x9, [x0, #8]
	ldr	w9, [x0]
	madd	x9, x9, x5, x3
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w6
	b.ne	<probe_empty+0xc8>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x8
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_empty+0xc8>  // b.pmore
	and	x12, x8, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x2, x13, lsl #16
	str	x13, [x12]
	add	x11, x11, x7
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
	b	<probe_empty+0xbc>

<probe_u32>:
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x1, #11]
	and	w1, w1, #0xff
	cbz	w1, <probe_u32+0xf4>
	stp	x29, x30, [sp, #-48]!
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	w19, w0
	ldr	w20, [x2, #8]
	add	w20, w20, #0xb
	tbnz	w1, #1, <probe_u32+0xf8>
	adrp	x4, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x3, x4, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x2, tpidr_el0
	mov	w0, w20
	add	x2, x2, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x2, x2, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x7, #0x4                   	// #4
	ldp	x5, x6, [x3, #8]
	mrs	x1, tpidr_el0
	ldr	x3, [x3, #24]
	add	x1, x1, x6
	ldr	w6, [x2, #8]
	ldr	x2, [x4]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	cbz	w6, <probe_u32+0xd4>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x20
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x20
	str	x9, [x1, #8]
	ldr	w9, [x1]
	madd	x9, x9, x5, x2
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w6
	b.ne	<probe_u32+0xd4>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_u32+0xd4>  // b.pmore
	and	x12, x3, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x19, [x12, #8]
	add	x11, x11, x7
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	mov	w1, #0x4                   	// #4
	mov	w0, w20
	add	x2, sp, #0x28
	str	x19, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
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
	b	<probe_u32+0xc8>
	nop
	nop

<probe_one>:
	stp	x29, x30, [sp, #-48]!
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x2, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x19, x0
	ldr	x0, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w1, [x0, #1]
	and	w1, w1, #0xff
	cbz	w1, <probe_one+0xc8>
	ldr	w20, [x2, #8]
	add	w20, w20, #0x1
	tbnz	w1, #1, <probe_one+0xf4>
	adrp	x4, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x3, x4, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x2, tpidr_el0
	mov	w0, w20
	add	x2, x2, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x2, x2, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x7, #0x0                   	// #0
	ldp	x5, x6, [x3, #8]
	mrs	x1, tpidr_el0
	ldr	x3, [x3, #24]
	add	x1, x1, x6
	ldr	w6, [x2, #8]
	ldr	x2, [x4]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	cbz	w6, <probe_one+0xd4>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x40
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x40
	str	x9, [x1, #8]
	ldr	w9, [x1]
	madd	x9, x9, x5, x2
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w6
	b.ne	<probe_one+0xd4>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x10
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_one+0xd4>  // b.pmore
	and	x12, x3, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x19, [x12, #8]
	add	x11, x11, x7
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	mov	w1, #0x8                   	// #8
	mov	w0, w20
	add	x2, sp, #0x28
	str	x19, [sp, #40]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #48
	ret
	orr	w1, w1, #0x800
	add	x2, sp, #0x28
	mov	w0, w20
	str	x19, [sp, #40]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_one+0x34>
	b	<probe_one+0xc8>

<probe_four>:
	adrp	x5, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	ldr	x4, [x5]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	ldrb	w4, [x4, #3]
	and	w4, w4, #0xff
	cbz	w4, <probe_four+0x128>
	stp	x29, x30, [sp, #-96]!
	add	x5, x5, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	stp	x19, x20, [sp, #16]
	mov	x20, x2
	mov	x19, x3
	stp	x21, x22, [sp, #32]
	mov	x22, x0
	mov	x21, x1
	str	x23, [sp, #48]
	ldr	w23, [x5, #8]
	add	w23, w23, #0x3
	tbnz	w4, #1, <probe_four+0x12c>
	adrp	x2, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x1, x2, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x5, tpidr_el0
	mov	w0, w23
	add	x5, x5, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x5, x5, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x6, #0x0                   	// #0
	ldp	x3, x7, [x1, #8]
	mrs	x4, tpidr_el0
	ldr	w5, [x5, #8]
	add	x4, x4, x7
	ldr	x7, [x1, #24]
	ldr	x1, [x2]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	cbz	w5, <probe_four+0xfc>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x60
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x60
	str	x9, [x4, #8]
	ldr	w9, [x4]
	madd	x9, x9, x3, x1
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w5
	b.ne	<probe_four+0xfc>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x28
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_four+0xfc>  // b.pmore
	and	x12, x7, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x22, [x12, #8]
	str	x21, [x12, #16]
	str	x20, [x12, #24]
	str	x19, [x12, #32]
	add	x11, x11, x6
	stlr	x11, [x9]
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldr	x23, [sp, #48]
	ldp	x29, x30, [sp], #96
	ret
	mov	w1, #0x20                  	// #32
	mov	w0, w23
	add	x2, sp, #0x40
	stp	x22, x21, [sp, #64]
	stp	x20, x19, [sp, #80]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldr	x23, [sp, #48]
	ldp	x29, x30, [sp], #96
	ret
	ret
	orr	w1, w4, #0x2000
	add	x2, sp, #0x40
	mov	w0, w23
	stp	x22, x21, [sp, #64]
	stp	x20, x19, [sp, #80]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_four+0x48>
	b	<probe_four+0xe8>
	nop

<probe_eight>:
	stp	x29, x30, [sp, #-160]!
	adrp	x1, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	lat_schema_tests
	add	x3, x1, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_schema_tests
	mov	x29, sp
	ldr	x1, [x1]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_schema_tests
	stp	x19, x20, [sp, #16]
	ldr	x2, [x0, #48]
	stp	x21, x22, [sp, #32]
	ldp	x21, x20, [x0, #32]
	stp	x23, x24, [sp, #48]
	ldp	x23, x22, [x0]
	ldr	x24, [x0, #16]
	str	x25, [sp, #64]
	ldr	x25, [x0, #24]
	ldrb	w1, [x1, #4]
	ldr	x0, [x0, #56]
	and	w1, w1, #0xff
	cbz	w1, <probe_eight+0x110>
	ldr	w19, [x3, #8]
	stp	x0, x2, [sp, #80]
	add	w19, w19, #0x4
	tbnz	w1, #1, <probe_eight+0x164>
	adrp	x4, <lat_i_state>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_state
	add	x3, x4, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_state
	mrs	x2, tpidr_el0
	mov	w0, w19
	add	x2, x2, #0x0, lsl #12
			R_AARCH64_TLSLE_ADD_TPREL_HI12	lat_i_thread
	add	x2, x2, #0x0
			R_AARCH64_TLSLE_ADD_TPREL_LO12_NC	lat_i_thread
	mov	x7, #0x0                   	// #0
	ldp	x5, x6, [x3, #8]
	mrs	x1, tpidr_el0
	ldr	x3, [x3, #24]
	add	x1, x1, x6
	ldr	w6, [x2, #8]
	ldr	x2, [x4]
			R_AARCH64_LDST64_ABS_LO12_NC	lat_i_state
	cbz	w6, <probe_eight+0x128>
	adrp	x9, <probe_empty>
			R_AARCH64_ADR_PREL_PG_HI21	__rseq_cs+0x80
	add	x9, x9, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	__rseq_cs+0x80
	str	x9, [x1, #8]
	ldr	w9, [x1]
	madd	x9, x9, x5, x2
	ldr	x10, [x9]
	ldr	w11, [x9, #16]
	cmp	w11, w6
	b.ne	<probe_eight+0x128>  // b.any
	and	x10, x10, #0xfffffffffffffff8
	add	x11, x10, #0x48
	ldr	x12, [x9, #8]
	cmp	x11, x12
	b.hi	<probe_eight+0x128>  // b.pmore
	and	x12, x3, x10
	add	x12, x12, x9
	add	x12, x12, #0x1, lsl #12
	mrs	x13, cntvct_el0
	orr	x13, x0, x13, lsl #16
	str	x13, [x12]
	str	x23, [x12, #8]
	str	x22, [x12, #16]
	str	x24, [x12, #24]
	str	x25, [x12, #32]
	str	x21, [x12, #40]
	str	x20, [x12, #48]
	ldr	x13, [sp, #88]
	str	x13, [x12, #56]
	ldr	x13, [sp, #80]
	str	x13, [x12, #64]
	add	x11, x11, x7
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
	stp	x23, x22, [sp, #96]
	stp	x24, x25, [sp, #112]
	stp	x21, x20, [sp, #128]
	stp	x4, x3, [sp, #144]
	bl	<lat_i_emit_words>
			R_AARCH64_CALL26	lat_i_emit_words
	ldp	x19, x20, [sp, #16]
	ldp	x21, x22, [sp, #32]
	ldp	x23, x24, [sp, #48]
	ldr	x25, [sp, #64]
	ldp	x29, x30, [sp], #160
	ret
	mov	x4, x2
	mov	x3, x0
	str	x4, [sp, #88]
	orr	w1, w1, #0x4000
	add	x2, sp, #0x60
	mov	w0, w19
	str	x3, [sp, #80]
	stp	x23, x22, [sp, #96]
	stp	x24, x25, [sp, #112]
	stp	x21, x20, [sp, #128]
	stp	x4, x3, [sp, #144]
	bl	<lat_i_look_words>
			R_AARCH64_CALL26	lat_i_look_words
	cbnz	w0, <probe_eight+0x58>
	b	<probe_eight+0x110>
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
	adrp	x0, <lat_patch_tests>
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
	adrp	x0, <lat_patch_tests>
			R_AARCH64_ADR_PREL_PG_HI21	lat_i_patch_table_of_object
	add	x0, x0, #0x0
			R_AARCH64_ADD_ABS_LO12_NC	lat_i_patch_table_of_object
	b	<lat_i_forget_sites>
			R_AARCH64_JUMP26	lat_i_forget_sites

<__rseq_failure>:
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0xc8
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x1d8
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x2f4
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x42c
	brk	#0x45e0
	b	<__rseq_failure>
			R_AARCH64_JUMP26	.text+0x5a8
