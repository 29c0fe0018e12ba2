<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
	nopw   0x0(%rax,%rax,1)

<probe_empty>:
	push   %rbp
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_empty+0xa>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	je     <probe_empty+0x5e>
	mov    0x0(%rip),%ebp        # <probe_empty+0x17>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0x65>
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%rsi
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rbx
	rdtsc
	cmp    %rsi,%rbx
	ja     <probe_empty+0x7d>
	add    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bp,(%rdi)
	mov    %eax,0x2(%rdi)
	mov    %dx,0x6(%rdi)
	mov    %rbx,(%rcx)
	mov    %rsi,0x8(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %rbp
	ret
	movq   $0x0,(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	call   <probe_empty+0x77>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x1d>
	jmp    <probe_empty+0x5e>
	mov    %rsi,0x8(%rcx)
	movq   $0x0,(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	xor    %esi,%esi
	call   <probe_empty+0x95>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0x5e>
	nopw   0x0(%rax,%rax,1)

<probe_u32>:
	push   %rbp
	push   %r15
	push   %r14
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_u32+0xe>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0x75>
	mov    %edi,%r14d
	mov    0x0(%rip),%r15d        # <probe_u32+0x20>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%r15d
	test   $0x2,%sil
	jne    <probe_u32+0x80>
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rbx
	rdtsc
	cmp    %r8,%rbx
	ja     <probe_u32+0x9b>
	mov    %fs:0x0,%rbp
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rdi,%rbp,1),%rsi
	mov    %r15w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %r14,0x8(%rbp,%rdi,1)
	mov    %rbx,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r14,(%rsp)
	or     $0x400,%esi
	mov    %rsp,%rdx
	mov    %r15d,%edi
	call   <probe_u32+0x95>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x2a>
	jmp    <probe_u32+0x75>
	mov    %r8,0x8(%rcx)
	mov    %r14,(%rsp)
	mov    %rsp,%rdx
	mov    %r15d,%edi
	mov    $0x4,%esi
	call   <probe_u32+0xb3>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x75>
	cs nopw 0x0(%rax,%rax,1)
	nop

<probe_one>:
	push   %rbp
	push   %r15
	push   %r14
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_one+0xe>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0x75>
	mov    %rdi,%r14
	mov    0x0(%rip),%r15d        # <probe_one+0x20>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%r15d
	test   $0x2,%sil
	jne    <probe_one+0x80>
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rbx
	rdtsc
	cmp    %r8,%rbx
	ja     <probe_one+0x9b>
	mov    %fs:0x0,%rbp
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rdi,%rbp,1),%rsi
	mov    %r15w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %r14,0x8(%rbp,%rdi,1)
	mov    %rbx,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r14,(%rsp)
	or     $0x800,%esi
	mov    %rsp,%rdx
	mov    %r15d,%edi
	call   <probe_one+0x95>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x2a>
	jmp    <probe_one+0x75>
	mov    %r8,0x8(%rcx)
	mov    %r14,(%rsp)
	mov    %rsp,%rdx
	mov    %r15d,%edi
	mov    $0x8,%esi
	call   <probe_one+0xb3>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x75>
	cs nopw 0x0(%rax,%rax,1)
	nop

<probe_four>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x28,%rsp
	mov    %rsi,%r12
	mov    0x0(%rip),%rax        # <probe_four+0x18>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	je     <probe_four+0x91>
	mov    %rdx,%r15
	mov    %rdi,%r13
	mov    0x0(%rip),%r14d        # <probe_four+0x2d>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%r14d
	test   $0x2,%sil
	jne    <probe_four+0xa0>
	mov    %fs:0x0,%rbx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rbx),%r8
	movq   $0x1,0x8(%rbx)
	mov    (%rbx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%r9
	rdtsc
	cmp    %r8,%r9
	ja     <probe_four+0xd4>
	mov    %fs:0x0,%rbp
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rdi,%rbp,1),%rsi
	mov    %r14w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %r13,0x8(%rbp,%rdi,1)
	mov    %r12,0x10(%rbp,%rdi,1)
	mov    %r15,0x18(%rbp,%rdi,1)
	mov    %rcx,0x20(%rbp,%rdi,1)
	mov    %r9,(%rbx)
	mov    %r8,0x8(%rbx)
	add    $0x28,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r13,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %rcx,0x18(%rsp)
	or     $0x2000,%esi
	mov    %rsp,%rdx
	mov    %r14d,%edi
	mov    %rcx,%rbx
	call   <probe_four+0xc7>
			R_X86_64_PLT32	lat_i_look_words-0x4
	mov    %rbx,%rcx
	test   %eax,%eax
	jne    <probe_four+0x37>
	jmp    <probe_four+0x91>
	mov    %r8,0x8(%rbx)
	mov    %r13,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %rcx,0x18(%rsp)
	mov    %rsp,%rdx
	mov    %r14d,%edi
	mov    $0x20,%esi
	call   <probe_four+0xfb>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0x91>
	nopl   (%rax)

<probe_eight>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x68,%rsp
	mov    (%rdi),%r10
	mov    0x8(%rdi),%r12
	mov    0x10(%rdi),%r15
	mov    0x18(%rdi),%r9
	mov    0x20(%rdi),%r11
	mov    0x28(%rdi),%r14
	mov    0x30(%rdi),%rax
	mov    %rax,(%rsp)
	mov    0x38(%rdi),%rax
	mov    %rax,0x8(%rsp)
	mov    0x0(%rip),%rax        # <probe_eight+0x3d>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	je     <probe_eight+0xd9>
	mov    0x0(%rip),%r13d        # <probe_eight+0x50>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%r13d
	test   $0x2,%sil
	jne    <probe_eight+0xe8>
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rbp
	rdtsc
	cmp    %r8,%rbp
	ja     <probe_eight+0x156>
	mov    %fs:0x0,%rbx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	lea    (%rbx,%rdi,1),%rsi
	mov    %r13w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %r10,0x8(%rbx,%rdi,1)
	mov    %r12,0x10(%rbx,%rdi,1)
	mov    %r15,0x18(%rbx,%rdi,1)
	mov    %r9,0x20(%rbx,%rdi,1)
	mov    %r11,0x28(%rbx,%rdi,1)
	mov    %r14,0x30(%rbx,%rdi,1)
	mov    (%rsp),%rax
	mov    %rax,0x38(%rbx,%rdi,1)
	mov    0x8(%rsp),%rax
	mov    %rax,0x40(%rbx,%rdi,1)
	mov    %rbp,(%rcx)
	mov    %r8,0x8(%rcx)
	add    $0x68,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r10,0x10(%rsp)
	mov    %r12,0x18(%rsp)
	mov    %r15,0x20(%rsp)
	mov    %r9,0x28(%rsp)
	mov    %r11,0x30(%rsp)
	mov    %r14,0x38(%rsp)
	mov    (%rsp),%rax
	mov    %rax,0x40(%rsp)
	mov    0x8(%rsp),%rax
	mov    %rax,0x48(%rsp)
	or     $0x4000,%esi
	lea    0x10(%rsp),%rdx
	mov    %r13d,%edi
	mov    %r11,0x58(%rsp)
	mov    %r14,0x60(%rsp)
	mov    %r9,%rbx
	mov    %r10,%r14
	call   <probe_eight+0x13c>
			R_X86_64_PLT32	lat_i_look_words-0x4
	mov    %r14,%r10
	mov    %rbx,%r9
	mov    0x60(%rsp),%r14
	mov    0x58(%rsp),%r11
	test   %eax,%eax
	jne    <probe_eight+0x5e>
	jmp    <probe_eight+0xd9>
	mov    %r8,0x8(%rcx)
	mov    %r10,0x10(%rsp)
	mov    %r12,0x18(%rsp)
	mov    %r15,0x20(%rsp)
	mov    %r9,0x28(%rsp)
	mov    %r11,0x30(%rsp)
	mov    %r14,0x38(%rsp)
	mov    (%rsp),%rax
	mov    %rax,0x40(%rsp)
	mov    0x8(%rsp),%rax
	mov    %rax,0x48(%rsp)
	lea    0x10(%rsp),%rdx
	mov    %r13d,%edi
	mov    $0x40,%esi
	call   <probe_eight+0x19d>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0xd9>
	cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%ecx
	xor    %eax,%eax
	test   %ecx,%ecx
	setne  %al
	ret
