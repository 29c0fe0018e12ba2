<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	je     <probe_empty+0x70>
	push   %rbx
	sub    $0x10,%rsp
	mov    0x0(%rip),%ebx        # <probe_empty+0x19>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0x78>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rsi),%rdi
	movq   $0x1,0x8(%rsi)
	mov    (%rsi),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x8(%rcx),%r8
	rdtsc
	cmp    %r8,%rdi
	jb     <probe_empty+0x98>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bx,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %r8,(%rsi)
	mov    %rdi,0x8(%rsi)
	add    $0x10,%rsp
	pop    %rbx
	ret
	cs nopw 0x0(%rax,%rax,1)
	ret
	nopl   0x0(%rax)
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	call   <probe_empty+0x8d>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x1f>
	jmp    <probe_empty+0x60>
	nopl   0x0(%rax,%rax,1)
	mov    %rdi,0x8(%rsi)
	lea    0x8(%rsp),%rdx
	xor    %esi,%esi
	mov    %ebx,%edi
	movq   $0x0,0x8(%rsp)
	call   <probe_empty+0xb3>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0x60>
	data16 cs nopw 0x0(%rax,%rax,1)

<probe_u32>:
	mov    0x0(%rip),%rax        # <probe_u32+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0x78>
	push   %rbp
	push   %rbx
	mov    %edi,%ebx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_u32+0x1d>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0xb(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_u32+0x80>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rsi),%rdi
	movq   $0x1,0x8(%rsi)
	mov    (%rsi),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x14(%rcx),%r8
	rdtsc
	cmp    %r8,%rdi
	jb     <probe_u32+0xa0>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bp,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %rbx,0x8(%rcx)
	mov    %r8,(%rsi)
	mov    %rdi,0x8(%rsi)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopw   0x0(%rax,%rax,1)
	ret
	nopl   0x0(%rax)
	or     $0x400,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_u32+0x97>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x26>
	jmp    <probe_u32+0x6b>
	nopl   (%rax)
	mov    %rdi,0x8(%rsi)
	mov    %rbx,%rdi
	mov    $0x4,%esi
	mov    %rdi,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <probe_u32+0xbd>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x6b>
	nop

<probe_one>:
	mov    0x0(%rip),%rax        # <probe_one+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0x78>
	push   %rbp
	push   %rbx
	mov    %rdi,%rbx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_one+0x1e>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x1(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_one+0x80>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rsi),%rdi
	movq   $0x1,0x8(%rsi)
	mov    (%rsi),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x10(%rcx),%r8
	rdtsc
	cmp    %r8,%rdi
	jb     <probe_one+0xa0>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bp,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %rbx,0x8(%rcx)
	mov    %r8,(%rsi)
	mov    %rdi,0x8(%rsi)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopl   0x0(%rax,%rax,1)
	ret
	nopl   0x0(%rax)
	mov    %rdi,0x8(%rsp)
	or     $0x800,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <probe_one+0x97>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x27>
	jmp    <probe_one+0x6c>
	nopl   (%rax)
	mov    %rdi,0x8(%rsi)
	mov    $0x8,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_one+0xba>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x6c>
	nopl   0x0(%rax)

<probe_four>:
	push   %r14
	push   %r13
	push   %r12
	push   %rbp
	mov    %rsi,%rbp
	push   %rbx
	sub    $0x20,%rsp
	mov    0x0(%rip),%rax        # <probe_four+0x16>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	je     <probe_four+0x89>
	mov    0x0(%rip),%eax        # <probe_four+0x24>
			R_X86_64_PC32	lat_schema_tests+0x4
	mov    %rdi,%r12
	mov    %rdx,%rbx
	mov    %rcx,%r13
	lea    0x3(%rax),%r14d
	test   $0x2,%sil
	jne    <probe_four+0xa0>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rsi),%rdi
	movq   $0x1,0x8(%rsi)
	mov    (%rsi),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x28(%rcx),%r8
	rdtsc
	cmp    %r8,%rdi
	jb     <probe_four+0xd0>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %r14w,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	mov    %r12,0x8(%rcx)
	mov    %rbp,0x10(%rcx)
	mov    %rbx,0x18(%rcx)
	mov    %r13,0x20(%rcx)
	mov    %r8,(%rsi)
	mov    %rdi,0x8(%rsi)
	add    $0x20,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	ret
	cs nopw 0x0(%rax,%rax,1)
	mov    %rdi,(%rsp)
	or     $0x2000,%esi
	mov    %r14d,%edi
	mov    %rdx,0x10(%rsp)
	mov    %rsp,%rdx
	mov    %rbp,0x8(%rsp)
	mov    %rcx,0x18(%rsp)
	call   <probe_four+0xc4>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_four+0x37>
	jmp    <probe_four+0x89>
	xchg   %ax,%ax
	mov    %rdi,0x8(%rsi)
	mov    $0x20,%esi
	mov    %rsp,%rdx
	mov    %r14d,%edi
	mov    %r12,(%rsp)
	mov    %rbp,0x8(%rsp)
	mov    %rbx,0x10(%rsp)
	mov    %r13,0x18(%rsp)
	call   <probe_four+0xf7>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0x89>
	nopl   0x0(%rax)

<probe_eight>:
	mov    0x0(%rip),%rax        # <probe_eight+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movdqu (%rdi),%xmm3
	movdqu 0x10(%rdi),%xmm2
	movdqu 0x20(%rdi),%xmm1
	movzbl 0x4(%rax),%esi
	movdqu 0x30(%rdi),%xmm0
	test   %esi,%esi
	je     <probe_eight+0x98>
	push   %rbx
	add    $0xffffffffffffff80,%rsp
	mov    0x0(%rip),%eax        # <probe_eight+0x2d>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x4(%rax),%ebx
	test   $0x2,%sil
	jne    <probe_eight+0xa0>
	mov    %fs:0x0,%rsi
			R_X86_64_TPOFF32	lat_i_thread
	mov    0x8(%rsi),%rdi
	movq   $0x1,0x8(%rsi)
	mov    (%rsi),%rcx
	and    $0xfffffffffffffff8,%rcx
	lea    0x48(%rcx),%r8
	rdtsc
	cmp    %r8,%rdi
	jb     <probe_eight+0x100>
	add    %fs:0x0,%rcx
			R_X86_64_TPOFF32	lat_i_thread+0x10
	mov    %bx,(%rcx)
	mov    %eax,0x2(%rcx)
	mov    %dx,0x6(%rcx)
	movups %xmm3,0x8(%rcx)
	movups %xmm2,0x18(%rcx)
	movups %xmm1,0x28(%rcx)
	movups %xmm0,0x38(%rcx)
	mov    %r8,(%rsi)
	mov    %rdi,0x8(%rsi)
	sub    $0xffffffffffffff80,%rsp
	pop    %rbx
	ret
	nopl   0x0(%rax)
	ret
	nopl   0x0(%rax)
	or     $0x4000,%esi
	lea    0x40(%rsp),%rdx
	mov    %ebx,%edi
	movaps %xmm0,(%rsp)
	movaps %xmm3,0x40(%rsp)
	movaps %xmm3,0x30(%rsp)
	movaps %xmm2,0x50(%rsp)
	movaps %xmm2,0x20(%rsp)
	movaps %xmm1,0x60(%rsp)
	movaps %xmm1,0x10(%rsp)
	movaps %xmm0,0x70(%rsp)
	call   <probe_eight+0xd9>
			R_X86_64_PLT32	lat_i_look_words-0x4
	movdqa (%rsp),%xmm0
	movdqa 0x10(%rsp),%xmm1
	test   %eax,%eax
	movdqa 0x20(%rsp),%xmm2
	movdqa 0x30(%rsp),%xmm3
	jne    <probe_eight+0x36>
	jmp    <probe_eight+0x8b>
	nopw   0x0(%rax,%rax,1)
	mov    %rdi,0x8(%rsi)
	lea    0x40(%rsp),%rdx
	mov    $0x40,%esi
	mov    %ebx,%edi
	movaps %xmm3,0x40(%rsp)
	movaps %xmm2,0x50(%rsp)
	movaps %xmm1,0x60(%rsp)
	movaps %xmm0,0x70(%rsp)
	call   <probe_eight+0x129>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x8b>
	xchg   %ax,%ax

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%eax
	test   %eax,%eax
	setne  %al
	movzbl %al,%eax
	ret

<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
