<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
	nopw   0x0(%rax,%rax,1)

<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	jne    <probe_empty+0xf>
	ret
	mov    0x0(%rip),%edi        # <probe_empty+0x15>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0x61>
	mov    %fs:0x0,%r9
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r9),%r8
	movq   $0x1,0x8(%r9)
	mov    (%r9),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x8(%rcx),%r10
	rdtsc
	cmp    %r8,%r10
	ja     <probe_empty+0x5d>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %di,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %r10,(%r9)
	mov    %r8,0x8(%r9)
	ret
	mov    %r8,0x8(%r9)
	jmp    <probe_empty+0x66>
			R_X86_64_PLT32	.text.unlikely.-0x4
	cs nopw 0x0(%rax,%rax,1)

<probe_u32>:
	push   %rbx
	mov    0x0(%rip),%rax        # <probe_u32+0x8>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	jne    <probe_u32+0x12>
	pop    %rbx
	ret
	mov    %edi,%r8d
	mov    0x0(%rip),%edi        # <probe_u32+0x1b>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%edi
	test   $0x2,%sil
	jne    <probe_u32+0x74>
	mov    %fs:0x0,%r10
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r10),%r9
	movq   $0x1,0x8(%r10)
	mov    (%r10),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x14(%rcx),%r11
	rdtsc
	cmp    %r9,%r11
	ja     <probe_u32+0x70>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rsi,%rcx,1),%rbx
	mov    %di,(%rbx)
	mov    %eax,0x2(%rbx)
	mov    %dx,0x6(%rbx)
	mov    %r8,0x8(%rsi,%rcx,1)
	mov    %r11,(%r10)
	mov    %r9,0x8(%r10)
	pop    %rbx
	ret
	mov    %r9,0x8(%r10)
	or     $0x400,%esi
	mov    %r8,%rdx
	pop    %rbx
	jmp    <probe_u32+0x83>
			R_X86_64_PLT32	.text.unlikely.+0x96
	cs nopw 0x0(%rax,%rax,1)
	nopl   (%rax)

<probe_one>:
	push   %rbx
	mov    0x0(%rip),%rax        # <probe_one+0x8>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	jne    <probe_one+0x12>
	pop    %rbx
	ret
	mov    %rdi,%rcx
	mov    0x0(%rip),%edi        # <probe_one+0x1b>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%edi
	test   $0x2,%sil
	jne    <probe_one+0x74>
	mov    %fs:0x0,%r8
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r8),%r9
	movq   $0x1,0x8(%r8)
	mov    (%r8),%r10
	and    $0xfffffffffffffff8,%r10
	lea    0x10(%r10),%r11
	rdtsc
	cmp    %r9,%r11
	ja     <probe_one+0x70>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rsi,%r10,1),%rbx
	mov    %di,(%rbx)
	mov    %eax,0x2(%rbx)
	mov    %dx,0x6(%rbx)
	mov    %rcx,0x8(%rsi,%r10,1)
	mov    %r11,(%r8)
	mov    %r9,0x8(%r8)
	pop    %rbx
	ret
	mov    %r9,0x8(%r8)
	or     $0x800,%esi
	mov    %rcx,%rdx
	pop    %rbx
	jmp    <probe_one+0x83>
			R_X86_64_PLT32	.text.unlikely.+0x96
	cs nopw 0x0(%rax,%rax,1)
	nopl   (%rax)

<probe_four>:
	push   %r15
	push   %r14
	push   %r12
	push   %rbx
	mov    %rsi,%r10
	mov    0x0(%rip),%rax        # <probe_four+0x11>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	jne    <probe_four+0x21>
	pop    %rbx
	pop    %r12
	pop    %r14
	pop    %r15
	ret
	mov    %rcx,%r9
	mov    %rdx,%r8
	mov    %rdi,%rcx
	mov    0x0(%rip),%edi        # <probe_four+0x30>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%edi
	test   $0x2,%sil
	jne    <probe_four+0xa1>
	mov    %fs:0x0,%r11
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r11),%r14
	movq   $0x1,0x8(%r11)
	mov    (%r11),%rbx
	and    $0xfffffffffffffff8,%rbx
	lea    0x28(%rbx),%r15
	rdtsc
	cmp    %r14,%r15
	ja     <probe_four+0x9d>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rsi,%rbx,1),%r12
	mov    %di,(%r12)
	mov    %eax,0x2(%r12)
	mov    %dx,0x6(%r12)
	mov    %rcx,0x8(%rsi,%rbx,1)
	mov    %r10,0x10(%rsi,%rbx,1)
	mov    %r8,0x18(%rsi,%rbx,1)
	mov    %r9,0x20(%rsi,%rbx,1)
	mov    %r15,(%r11)
	mov    %r14,0x8(%r11)
	jmp    <probe_four+0x19>
	mov    %r14,0x8(%r11)
	or     $0x2000,%esi
	mov    %rcx,%rdx
	mov    %r10,%rcx
	pop    %rbx
	pop    %r12
	pop    %r14
	pop    %r15
	jmp    <probe_four+0xb9>
			R_X86_64_PLT32	.text.unlikely.+0x145
	nopl   0x0(%rax)

<probe_eight>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x18,%rsp
	mov    (%rdi),%r10
	mov    0x8(%rdi),%rcx
	mov    0x10(%rdi),%r8
	mov    0x18(%rdi),%r9
	mov    0x20(%rdi),%r11
	mov    0x28(%rdi),%r14
	mov    0x30(%rdi),%r15
	mov    0x38(%rdi),%rbx
	mov    0x0(%rip),%rax        # <probe_eight+0x34>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	jne    <probe_eight+0x4b>
	add    $0x18,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    0x0(%rip),%eax        # <probe_eight+0x51>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%eax
	mov    %eax,0x4(%rsp)
	test   $0x2,%sil
	jne    <probe_eight+0xfd>
	mov    %fs:0x0,%r13
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r13),%rdi
	movq   $0x1,0x8(%r13)
	mov    0x0(%r13),%rbp
	and    $0xfffffffffffffff8,%rbp
	lea    0x48(%rbp),%r12
	rdtsc
	mov    %rdi,0x8(%rsp)
	mov    %r12,0x10(%rsp)
	cmp    %rdi,%r12
	ja     <probe_eight+0xf4>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rsi,%rbp,1),%r12
	mov    0x4(%rsp),%edi
	mov    %di,(%r12)
	mov    %eax,0x2(%r12)
	mov    %dx,0x6(%r12)
	mov    %r10,0x8(%rsi,%rbp,1)
	mov    %rcx,0x10(%rsi,%rbp,1)
	mov    %r8,0x18(%rsi,%rbp,1)
	mov    %r9,0x20(%rsi,%rbp,1)
	mov    %r11,0x28(%rsi,%rbp,1)
	mov    %r14,0x30(%rsi,%rbp,1)
	mov    %r15,0x38(%rsi,%rbp,1)
	mov    %rbx,0x40(%rsi,%rbp,1)
	mov    0x10(%rsp),%rax
	mov    %rax,0x0(%r13)
	mov    0x8(%rsp),%rax
	mov    %rax,0x8(%r13)
	jmp    <probe_eight+0x3c>
	mov    0x8(%rsp),%rax
	mov    %rax,0x8(%r13)
	or     $0x4000,%esi
	mov    0x4(%rsp),%edi
	mov    %r10,%rdx
	push   %rbx
	push   %r15
	push   %r14
	push   %r11
	call   <probe_eight+0x116>
			R_X86_64_PLT32	.text.unlikely.+0x238
	add    $0x38,%rsp
	jmp    <probe_eight+0x40>
	nop

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%ecx
	xor    %eax,%eax
	test   %ecx,%ecx
	setne  %al
	ret

<lat_i_rare0>:
	test   $0x2,%sil
	jne    <lat_i_looked0>
	push   %rax
	mov    %rsp,%rdx
	movq   $0x0,(%rdx)
	shr    $0x8,%esi
	call   <lat_i_rare0+0x19>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	pop    %rax
	ret

<lat_i_looked0>:
	push   %rbp
	push   %rbx
	push   %rax
	mov    %esi,%ebp
	mov    %edi,%ebx
	mov    %rsp,%rdx
	movq   $0x0,(%rdx)
	call   <lat_i_looked0+0x16>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked0+0x66>
	shr    $0x8,%ebp
	mov    %ebp,%eax
	neg    %eax
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    (%rax,%rdi,1),%rsi
	add    $0x8,%rsi
	rdtsc
	cmp    %r8,%rsi
	ja     <lat_i_looked0+0x6d>
	add    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bx,(%rdi)
	mov    %eax,0x2(%rdi)
	mov    %dx,0x6(%rdi)
	mov    %rsi,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %rbp
	ret
	mov    %r8,0x8(%rcx)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    %ebp,%esi
	call   <lat_i_looked0+0x7d>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked0+0x66>

<lat_i_rare1>:
	test   $0x2,%sil
	jne    <lat_i_looked1>
	push   %rax
	mov    %rsp,%rax
	mov    %rdx,(%rax)
	shr    $0x8,%esi
	mov    %rax,%rdx
	call   <lat_i_rare1+0x18>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	pop    %rax
	ret

<lat_i_looked1>:
	push   %rbp
	push   %r15
	push   %r14
	push   %rbx
	push   %rax
	mov    %rdx,%r15
	mov    %esi,%ebp
	mov    %edi,%r14d
	mov    %rsp,%rdx
	mov    %r15,(%rdx)
	call   <lat_i_looked1+0x1a>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked1+0x77>
	shr    $0x8,%ebp
	mov    $0x8,%eax
	sub    %ebp,%eax
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    (%rax,%rdi,1),%rsi
	add    $0x10,%rsi
	rdtsc
	cmp    %r8,%rsi
	ja     <lat_i_looked1+0x82>
	mov    %fs:0x0,%rbp
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rdi,%rbp,1),%rbx
	mov    %r14w,(%rbx)
	mov    %eax,0x2(%rbx)
	mov    %dx,0x6(%rbx)
	mov    %r15,0x8(%rbp,%rdi,1)
	mov    %rsi,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r8,0x8(%rcx)
	mov    %rsp,%rdx
	mov    %r14d,%edi
	mov    %ebp,%esi
	call   <lat_i_looked1+0x93>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked1+0x77>

<lat_i_rare4>:
	test   $0x2,%sil
	jne    <lat_i_looked4>
	sub    $0x28,%rsp
	mov    %rsp,%rax
	mov    %rdx,(%rax)
	mov    %rcx,0x8(%rax)
	mov    %r8,0x10(%rax)
	mov    %r9,0x18(%rax)
	shr    $0x8,%esi
	mov    %rax,%rdx
	call   <lat_i_rare4+0x27>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x28,%rsp
	ret

<lat_i_looked4>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x28,%rsp
	mov    %r9,%rbx
	mov    %r8,%r15
	mov    %rcx,%r12
	mov    %rdx,%r14
	mov    %esi,%ebp
	mov    %edi,%r13d
	mov    %rsp,%rdx
	mov    %r14,(%rdx)
	mov    %rcx,0x8(%rdx)
	mov    %r8,0x10(%rdx)
	mov    %r9,0x18(%rdx)
	call   <lat_i_looked4+0x36>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked4+0xa5>
	shr    $0x8,%ebp
	mov    $0x20,%eax
	sub    %ebp,%eax
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    (%rax,%rdi,1),%rsi
	add    $0x28,%rsi
	rdtsc
	cmp    %r8,%rsi
	ja     <lat_i_looked4+0xb4>
	mov    %fs:0x0,%rbp
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %rbx,%r9
	lea    (%rdi,%rbp,1),%rbx
	mov    %r13w,(%rbx)
	mov    %eax,0x2(%rbx)
	mov    %dx,0x6(%rbx)
	mov    %r14,0x8(%rbp,%rdi,1)
	mov    %r12,0x10(%rbp,%rdi,1)
	mov    %r15,0x18(%rbp,%rdi,1)
	mov    %r9,0x20(%rbp,%rdi,1)
	mov    %rsi,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x28,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r8,0x8(%rcx)
	mov    %rsp,%rdx
	mov    %r13d,%edi
	mov    %ebp,%esi
	call   <lat_i_looked4+0xc5>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked4+0xa5>

<lat_i_rare8>:
	test   $0x2,%sil
	jne    <lat_i_looked8>
	push   %r14
	push   %rbx
	sub    $0x48,%rsp
	mov    0x78(%rsp),%r10
	mov    0x70(%rsp),%r11
	mov    0x68(%rsp),%r14
	mov    0x60(%rsp),%rbx
	mov    %rsp,%rax
	mov    %rdx,(%rax)
	mov    %rcx,0x8(%rax)
	mov    %r8,0x10(%rax)
	mov    %r9,0x18(%rax)
	mov    %rbx,0x20(%rax)
	mov    %r14,0x28(%rax)
	mov    %r11,0x30(%rax)
	mov    %r10,0x38(%rax)
	shr    $0x8,%esi
	mov    %rax,%rdx
	call   <lat_i_rare8+0x4e>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x48,%rsp
	pop    %rbx
	pop    %r14
	ret

<lat_i_looked8>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x48,%rsp
	mov    %r9,%rbx
	mov    %r8,%r15
	mov    %rcx,%r12
	mov    %rdx,%r14
	mov    %esi,%ebp
	mov    %edi,%r13d
	mov    0x98(%rsp),%rax
	mov    0x90(%rsp),%rcx
	mov    0x88(%rsp),%rsi
	mov    0x80(%rsp),%rdi
	mov    %rsp,%rdx
	mov    %r14,(%rdx)
	mov    %r12,0x8(%rdx)
	mov    %r8,0x10(%rdx)
	mov    %r9,0x18(%rdx)
	mov    %rdi,0x20(%rdx)
	mov    %rsi,0x28(%rdx)
	mov    %rcx,0x30(%rdx)
	mov    %rax,0x38(%rdx)
	mov    %r13d,%edi
	mov    %ebp,%esi
	call   <lat_i_looked8+0x6b>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked8+0x112>
	shr    $0x8,%ebp
	mov    $0x40,%eax
	sub    %ebp,%eax
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    (%rax,%rdi,1),%rsi
	add    $0x48,%rsi
	rdtsc
	cmp    %r8,%rsi
	ja     <lat_i_looked8+0x121>
	mov    %fs:0x0,%rbp
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %rbx,%r9
	lea    (%rdi,%rbp,1),%rbx
	mov    %r13w,(%rbx)
	mov    %eax,0x2(%rbx)
	mov    %dx,0x6(%rbx)
	mov    %r14,0x8(%rbp,%rdi,1)
	mov    %r12,0x10(%rbp,%rdi,1)
	mov    %r15,0x18(%rbp,%rdi,1)
	mov    %r9,0x20(%rbp,%rdi,1)
	mov    0x80(%rsp),%rax
	mov    %rax,0x28(%rbp,%rdi,1)
	mov    0x88(%rsp),%rax
	mov    %rax,0x30(%rbp,%rdi,1)
	mov    0x90(%rsp),%rax
	mov    %rax,0x38(%rbp,%rdi,1)
	mov    0x98(%rsp),%rax
	mov    %rax,0x40(%rbp,%rdi,1)
	mov    %rsi,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x48,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r8,0x8(%rcx)
	mov    %rsp,%rdx
	mov    %r13d,%edi
	mov    %ebp,%esi
	call   <lat_i_looked8+0x132>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked8+0x112>
