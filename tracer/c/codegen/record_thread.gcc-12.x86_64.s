<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	jne    <probe_empty+0x10>
	ret
	nop
	mov    0x0(%rip),%r10d        # <probe_empty+0x17>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0x64>
	mov    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rdi),%r8
	movq   $0x1,0x8(%rdi)
	mov    (%rdi),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x8(%rcx),%r9
	rdtsc
	cmp    %r9,%r8
	jb     <probe_empty+0x60>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %r10w,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %r9,(%rdi)
	mov    %r8,0x8(%rdi)
	ret
	mov    %r8,0x8(%rdi)
	mov    %r10d,%edi
	jmp    <probe_empty+0x6c>
			R_X86_64_PC32	.text.unlikely+0x7f
	nopl   0x0(%rax)

<probe_u32>:
	mov    0x0(%rip),%rax        # <probe_u32+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%ecx
	test   %ecx,%ecx
	jne    <probe_u32+0x10>
	ret
	mov    0x0(%rip),%eax        # <probe_u32+0x16>
			R_X86_64_PC32	lat_schema_tests+0x4
	mov    %edi,%edi
	lea    0xb(%rax),%r9d
	test   $0x2,%cl
	jne    <probe_u32+0x74>
	mov    %fs:0x0,%r8
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r8),%r10
	movq   $0x1,0x8(%r8)
	mov    (%r8),%rsi
	and    $0xfffffffffffffff8,%rsi
	lea    0x14(%rsi),%r11
	rdtsc
	cmp    %r11,%r10
	jb     <probe_u32+0x70>
	add    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %r9w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %rdi,0x8(%rsi)
	mov    %r11,(%r8)
	mov    %r10,0x8(%r8)
	ret
	nopl   0x0(%rax,%rax,1)
	mov    %r10,0x8(%r8)
	mov    %ecx,%esi
	mov    %rdi,%rdx
	mov    %r9d,%edi
	or     $0x400,%esi
	jmp    <probe_u32+0x87>
			R_X86_64_PC32	.text.unlikely+0x136
	nopw   0x0(%rax,%rax,1)

<probe_one>:
	mov    0x0(%rip),%rax        # <probe_one+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%ecx
	test   %ecx,%ecx
	jne    <probe_one+0x10>
	ret
	mov    0x0(%rip),%eax        # <probe_one+0x16>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x1(%rax),%r9d
	test   $0x2,%cl
	jne    <probe_one+0x74>
	mov    %fs:0x0,%r8
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%r8),%r10
	movq   $0x1,0x8(%r8)
	mov    (%r8),%rsi
	and    $0xfffffffffffffff8,%rsi
	lea    0x10(%rsi),%r11
	rdtsc
	cmp    %r11,%r10
	jb     <probe_one+0x70>
	add    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %r9w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %rdi,0x8(%rsi)
	mov    %r11,(%r8)
	mov    %r10,0x8(%r8)
	ret
	cs nopw 0x0(%rax,%rax,1)
	mov    %r10,0x8(%r8)
	mov    %ecx,%esi
	mov    %rdi,%rdx
	mov    %r9d,%edi
	or     $0x800,%esi
	jmp    <probe_one+0x87>
			R_X86_64_PC32	.text.unlikely+0x136
	nopw   0x0(%rax,%rax,1)

<probe_four>:
	mov    0x0(%rip),%rax        # <probe_four+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	mov    %rcx,%r9
	movzbl 0x3(%rax),%ecx
	test   %ecx,%ecx
	jne    <probe_four+0x18>
	ret
	nopl   0x0(%rax,%rax,1)
	mov    0x0(%rip),%eax        # <probe_four+0x1e>
			R_X86_64_PC32	lat_schema_tests+0x4
	push   %r12
	mov    %rsi,%r10
	mov    %rdx,%r8
	push   %rbp
	lea    0x3(%rax),%r11d
	push   %rbx
	test   $0x2,%cl
	jne    <probe_four+0x94>
	mov    %fs:0x0,%rbx
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rbx),%rbp
	movq   $0x1,0x8(%rbx)
	mov    (%rbx),%rsi
	and    $0xfffffffffffffff8,%rsi
	lea    0x28(%rsi),%r12
	rdtsc
	cmp    %r12,%rbp
	jb     <probe_four+0x90>
	add    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %r11w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	mov    %rdi,0x8(%rsi)
	mov    %r10,0x10(%rsi)
	mov    %r8,0x18(%rsi)
	mov    %r9,0x20(%rsi)
	mov    %r12,(%rbx)
	mov    %rbp,0x8(%rbx)
	pop    %rbx
	pop    %rbp
	pop    %r12
	ret
	nopl   0x0(%rax,%rax,1)
	mov    %rbp,0x8(%rbx)
	mov    %ecx,%esi
	pop    %rbx
	mov    %rdi,%rdx
	pop    %rbp
	or     $0x2000,%esi
	mov    %r10,%rcx
	mov    %r11d,%edi
	pop    %r12
	jmp    <probe_four+0xae>
			R_X86_64_PC32	.text.unlikely+0x216
	xchg   %ax,%ax

<probe_eight>:
	mov    0x0(%rip),%rax        # <probe_eight+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%ecx
	test   %ecx,%ecx
	jne    <probe_eight+0x10>
	ret
	mov    0x0(%rip),%eax        # <probe_eight+0x16>
			R_X86_64_PC32	lat_schema_tests+0x4
	movdqu (%rdi),%xmm0
	movdqu 0x10(%rdi),%xmm3
	movdqu 0x20(%rdi),%xmm1
	movdqu 0x30(%rdi),%xmm2
	lea    0x4(%rax),%r10d
	test   $0x2,%cl
	jne    <probe_eight+0x8c>
	mov    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rdi),%r8
	movq   $0x1,0x8(%rdi)
	mov    (%rdi),%rsi
	and    $0xfffffffffffffff8,%rsi
	lea    0x48(%rsi),%r9
	rdtsc
	cmp    %r9,%r8
	jb     <probe_eight+0x88>
	add    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %r10w,(%rsi)
	mov    %eax,0x2(%rsi)
	mov    %dx,0x6(%rsi)
	movups %xmm0,0x8(%rsi)
	movups %xmm3,0x18(%rsi)
	movups %xmm1,0x28(%rsi)
	movups %xmm2,0x38(%rsi)
	mov    %r9,(%rdi)
	mov    %r8,0x8(%rdi)
	ret
	nopl   (%rax)
	mov    %r8,0x8(%rdi)
	push   %rax
	movhlps %xmm2,%xmm5
	movhlps %xmm0,%xmm4
	mov    %ecx,%esi
	movq   %xmm4,%rdi
	movhlps %xmm1,%xmm6
	movhlps %xmm3,%xmm7
	or     $0x4000,%esi
	mov    %rdi,%rcx
	movq   %xmm0,%rdx
	movq   %xmm7,%r9
	mov    %r10d,%edi
	lea    -0x8(%rsp),%rsp
	movq   %xmm3,%r8
	movq   %xmm5,(%rsp)
	lea    -0x8(%rsp),%rsp
	movq   %xmm2,(%rsp)
	lea    -0x8(%rsp),%rsp
	movq   %xmm6,(%rsp)
	lea    -0x8(%rsp),%rsp
	movq   %xmm1,(%rsp)
	call   <probe_eight+0xe8>
			R_X86_64_PC32	.text.unlikely+0x36c
	add    $0x28,%rsp
	ret
	nopl   (%rax)

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%eax
	test   %eax,%eax
	setne  %al
	movzbl %al,%eax
	ret

<lat_i_looked0>:
	push   %rbp
	xor    %eax,%eax
	mov    %edi,%ebp
	push   %rbx
	mov    %esi,%ebx
	sub    $0x18,%rsp
	lea    0x8(%rsp),%rdx
	mov    %rax,0x8(%rsp)
	call   <lat_i_looked0+0x1b>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked0+0x7c>
	mov    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread
	shr    $0x8,%ebx
	mov    %ebx,%esi
	mov    0x8(%rcx),%r8
	movq   $0x1,0x8(%rcx)
	mov    (%rcx),%rdi
	mov    %ebx,%eax
	neg    %eax
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi,%rax,1),%r9
	rdtsc
	cmp    %r9,%r8
	jb     <lat_i_looked0+0x6c>
	add    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bp,(%rdi)
	mov    %eax,0x2(%rdi)
	mov    %dx,0x6(%rdi)
	mov    %r9,(%rcx)
	mov    %r8,0x8(%rcx)
	jmp    <lat_i_looked0+0x7c>
	mov    %r8,0x8(%rcx)
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <lat_i_looked0+0x7c>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret

<lat_i_rare0>:
	test   $0x2,%sil
	je     <lat_i_rare0+0xb>
	jmp    <lat_i_looked0>
	sub    $0x18,%rsp
	xor    %eax,%eax
	shr    $0x8,%esi
	lea    0x8(%rsp),%rdx
	mov    %rax,0x8(%rsp)
	call   <lat_i_rare0+0x23>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	ret

<lat_i_looked1>:
	push   %r12
	mov    %rdx,%r12
	push   %rbp
	mov    %edi,%ebp
	push   %rbx
	mov    %esi,%ebx
	sub    $0x10,%rsp
	mov    %rdx,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	call   <lat_i_looked1+0x1e>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked1+0x86>
	mov    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread
	shr    $0x8,%ebx
	mov    %ebx,%esi
	mov    0x8(%rdi),%r8
	movq   $0x1,0x8(%rdi)
	mov    (%rdi),%rcx
	mov    $0x8,%eax
	sub    %ebx,%eax
	and    $0xfffffffffffffff8,%rcx
	lea    0x10(%rcx,%rax,1),%r9
	rdtsc
	cmp    %r9,%r8
	jb     <lat_i_looked1+0x76>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bp,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %r12,0x8(%rcx)
	mov    %r9,(%rdi)
	mov    %r8,0x8(%rdi)
	jmp    <lat_i_looked1+0x86>
	mov    %r8,0x8(%rdi)
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <lat_i_looked1+0x86>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x10,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	ret

<lat_i_rare1>:
	test   $0x2,%sil
	je     <lat_i_rare1+0xb>
	jmp    <lat_i_looked1>
	sub    $0x18,%rsp
	shr    $0x8,%esi
	mov    %rdx,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	call   <lat_i_rare1+0x21>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	ret

<lat_i_looked4>:
	push   %r15
	mov    %r8,%r15
	push   %r14
	mov    %rcx,%r14
	push   %r13
	mov    %rdx,%r13
	push   %r12
	mov    %r9,%r12
	push   %rbp
	mov    %edi,%ebp
	push   %rbx
	mov    %esi,%ebx
	sub    $0x28,%rsp
	mov    %rdx,(%rsp)
	mov    %rsp,%rdx
	mov    %rcx,0x8(%rsp)
	mov    %r8,0x10(%rsp)
	mov    %r9,0x18(%rsp)
	call   <lat_i_looked4+0x39>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked4+0xab>
	mov    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread
	shr    $0x8,%ebx
	mov    %ebx,%esi
	mov    0x8(%rdi),%r8
	movq   $0x1,0x8(%rdi)
	mov    (%rdi),%rcx
	mov    $0x20,%eax
	sub    %ebx,%eax
	and    $0xfffffffffffffff8,%rcx
	lea    0x28(%rcx,%rax,1),%r9
	rdtsc
	cmp    %r9,%r8
	jb     <lat_i_looked4+0x9d>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bp,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %r13,0x8(%rcx)
	mov    %r14,0x10(%rcx)
	mov    %r15,0x18(%rcx)
	mov    %r12,0x20(%rcx)
	mov    %r9,(%rdi)
	mov    %r8,0x8(%rdi)
	jmp    <lat_i_looked4+0xab>
	mov    %r8,0x8(%rdi)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	call   <lat_i_looked4+0xab>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x28,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	ret

<lat_i_rare4>:
	test   $0x2,%sil
	je     <lat_i_rare4+0xb>
	jmp    <lat_i_looked4>
	sub    $0x28,%rsp
	shr    $0x8,%esi
	mov    %rdx,(%rsp)
	mov    %rsp,%rdx
	mov    %rcx,0x8(%rsp)
	mov    %r8,0x10(%rsp)
	mov    %r9,0x18(%rsp)
	call   <lat_i_rare4+0x2d>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x28,%rsp
	ret

<lat_i_looked8>:
	push   %r15
	mov    %rcx,%r15
	push   %r14
	mov    %rdx,%r14
	push   %r13
	mov    %r9,%r13
	push   %r12
	mov    %esi,%r12d
	push   %rbp
	mov    %r8,%rbp
	push   %rbx
	mov    %edi,%ebx
	sub    $0x48,%rsp
	mov    0x80(%rsp),%rax
	mov    %rdx,(%rsp)
	mov    %rsp,%rdx
	mov    %rcx,0x8(%rsp)
	mov    %rax,0x20(%rsp)
	mov    0x88(%rsp),%rax
	mov    %r8,0x10(%rsp)
	mov    %rax,0x28(%rsp)
	mov    0x90(%rsp),%rax
	mov    %r9,0x18(%rsp)
	mov    %rax,0x30(%rsp)
	mov    0x98(%rsp),%rax
	mov    %rax,0x38(%rsp)
	call   <lat_i_looked8+0x6e>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked8+0x115>
	mov    %fs:0x0,%rdi
			R_X86_64_TPOFF32	lat_i_thread
	mov    %r12d,%esi
	shr    $0x8,%esi
	mov    0x8(%rdi),%r9
	movq   $0x1,0x8(%rdi)
	mov    (%rdi),%rcx
	mov    $0x40,%eax
	sub    %esi,%eax
	and    $0xfffffffffffffff8,%rcx
	lea    0x48(%rcx,%rax,1),%r10
	rdtsc
	cmp    %r10,%r9
	jb     <lat_i_looked8+0x107>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bx,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    0x80(%rsp),%rax
	mov    %r14,0x8(%rcx)
	mov    %r15,0x10(%rcx)
	mov    %rax,0x28(%rcx)
	mov    0x88(%rsp),%rax
	mov    %rbp,0x18(%rcx)
	mov    %rax,0x30(%rcx)
	mov    0x90(%rsp),%rax
	mov    %r13,0x20(%rcx)
	mov    %rax,0x38(%rcx)
	mov    0x98(%rsp),%rax
	mov    %rax,0x40(%rcx)
	mov    %r10,(%rdi)
	mov    %r9,0x8(%rdi)
	jmp    <lat_i_looked8+0x115>
	mov    %r9,0x8(%rdi)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	call   <lat_i_looked8+0x115>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x48,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	ret

<lat_i_rare8>:
	push   %rbx
	sub    $0x40,%rsp
	mov    0x50(%rsp),%rbx
	mov    0x58(%rsp),%r11
	mov    0x60(%rsp),%r10
	mov    0x68(%rsp),%rax
	test   $0x2,%sil
	je     <lat_i_rare8+0x29>
	add    $0x40,%rsp
	pop    %rbx
	jmp    <lat_i_looked8>
	mov    %rdx,(%rsp)
	shr    $0x8,%esi
	mov    %rsp,%rdx
	mov    %rbx,0x20(%rsp)
	mov    %rcx,0x8(%rsp)
	mov    %r8,0x10(%rsp)
	mov    %r9,0x18(%rsp)
	mov    %r11,0x28(%rsp)
	mov    %r10,0x30(%rsp)
	mov    %rax,0x38(%rsp)
	call   <lat_i_rare8+0x5b>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x40,%rsp
	pop    %rbx
	ret

<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
