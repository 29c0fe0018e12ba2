<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	je     <probe_empty+0xb8>
	push   %rbx
	sub    $0x10,%rsp
	mov    0x0(%rip),%ebx        # <probe_empty+0x1d>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0xc0>
	mov    0x0(%rip),%rdx        # <probe_empty+0x2e>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x35>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x45>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x4c>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0x98>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0x98>
	and    0x0(%rip),%rdi        # <probe_empty+0x73>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x10,%rsp
	pop    %rbx
	ret
	nopl   0x0(%rax,%rax,1)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	xor    %esi,%esi
	movq   $0x0,0x8(%rsp)
	call   <probe_empty+0xaf>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x10,%rsp
	pop    %rbx
	ret
	nopl   (%rax)
	ret
	nopl   0x0(%rax)
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	call   <probe_empty+0xd5>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x27>
	jmp    <probe_empty+0x8d>
	nop

<probe_u32>:
	mov    0x0(%rip),%rax        # <probe_u32+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0xc8>
	push   %rbp
	push   %rbx
	mov    %edi,%ebx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_u32+0x21>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0xb(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_u32+0xd0>
	mov    0x0(%rip),%rdx        # <probe_u32+0x35>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x3c>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x4c>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x53>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xa8>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xa8>
	and    0x0(%rip),%rdi        # <probe_u32+0x7a>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopl   0x0(%rax,%rax,1)
	mov    $0x4,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_u32+0xbe>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopl   (%rax)
	ret
	nopl   0x0(%rax)
	or     $0x400,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_u32+0xe7>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x2e>
	jmp    <probe_u32+0x9c>
	data16 cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_one>:
	mov    0x0(%rip),%rax        # <probe_one+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0xc8>
	push   %rbp
	push   %rbx
	mov    %rdi,%rbx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_one+0x22>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x1(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_one+0xd0>
	mov    0x0(%rip),%rdx        # <probe_one+0x36>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x3d>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x4d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x54>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0xa8>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0xa8>
	and    0x0(%rip),%rdi        # <probe_one+0x7b>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopl   0x0(%rax)
	mov    $0x8,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_one+0xbe>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopl   (%rax)
	ret
	nopl   0x0(%rax)
	mov    %rdi,0x8(%rsp)
	or     $0x800,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <probe_one+0xe7>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x2f>
	jmp    <probe_one+0x9d>
	data16 cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_four>:
	push   %r14
	push   %r13
	push   %r12
	mov    %rsi,%r12
	push   %rbp
	push   %rbx
	sub    $0x20,%rsp
	mov    0x0(%rip),%rax        # <probe_four+0x16>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	je     <probe_four+0xc6>
	mov    0x0(%rip),%eax        # <probe_four+0x28>
			R_X86_64_PC32	lat_schema_tests+0x4
	mov    %rdi,%r13
	mov    %rdx,%rbp
	mov    %rcx,%rbx
	lea    0x3(%rax),%r14d
	test   $0x2,%sil
	jne    <probe_four+0x110>
	mov    0x0(%rip),%rdx        # <probe_four+0x46>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x4d>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x5d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x64>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0xd8>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xd8>
	and    0x0(%rip),%rdi        # <probe_four+0x8b>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r14w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r13,0x1008(%rcx,%rdi,1)
	mov    %r12,0x1010(%rcx,%rdi,1)
	mov    %rbp,0x1018(%rcx,%rdi,1)
	mov    %rbx,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x20,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	ret
	nopl   0x0(%rax,%rax,1)
	mov    $0x20,%esi
	mov    %rsp,%rdx
	mov    %r14d,%edi
	mov    %r13,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %rbp,0x10(%rsp)
	mov    %rbx,0x18(%rsp)
	call   <probe_four+0xfb>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x20,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	ret
	nopl   0x0(%rax,%rax,1)
	mov    %rdi,(%rsp)
	or     $0x2000,%esi
	mov    %r14d,%edi
	mov    %rdx,0x10(%rsp)
	mov    %rsp,%rdx
	mov    %r12,0x8(%rsp)
	mov    %rcx,0x18(%rsp)
	call   <probe_four+0x134>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_four+0x3f>
	jmp    <probe_four+0xc6>
	xchg   %ax,%ax

<probe_eight>:
	movdqu (%rdi),%xmm3
	movdqu 0x10(%rdi),%xmm2
	movdqu 0x20(%rdi),%xmm1
	movdqu 0x30(%rdi),%xmm0
	mov    0x0(%rip),%rax        # <probe_eight+0x1a>
			R_X86_64_PC32	lat_schema_tests-0x4
	movhlps %xmm3,%xmm4
	movhlps %xmm2,%xmm5
	movhlps %xmm1,%xmm6
	movhlps %xmm0,%xmm7
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	je     <probe_eight+0x180>
	push   %r15
	movq   %xmm7,%r9
	movq   %xmm6,%r15
	movq   %xmm0,%r8
	push   %r14
	movq   %xmm1,%r14
	push   %r13
	movq   %xmm5,%r13
	push   %r12
	movq   %xmm2,%r12
	push   %rbp
	movq   %xmm4,%rbp
	push   %rbx
	movq   %xmm3,%rbx
	sub    $0xa8,%rsp
	mov    0x0(%rip),%eax        # <probe_eight+0x71>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x4(%rax),%r10d
	test   $0x2,%sil
	jne    <probe_eight+0x188>
	mov    0x0(%rip),%rdx        # <probe_eight+0x86>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x8d>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x9d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0xa4>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x150>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x150>
	and    0x0(%rip),%rdi        # <probe_eight+0xd3>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r10w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rbp,0x1010(%rcx,%rdi,1)
	mov    %r12,0x1018(%rcx,%rdi,1)
	mov    %r13,0x1020(%rcx,%rdi,1)
	mov    %r14,0x1028(%rcx,%rdi,1)
	mov    %r15,0x1030(%rcx,%rdi,1)
	mov    %r8,%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    %r9,%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0xa8,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	ret
	cs nopw 0x0(%rax,%rax,1)
	lea    0x60(%rsp),%rdx
	mov    $0x40,%esi
	mov    %r10d,%edi
	movaps %xmm3,0x60(%rsp)
	movaps %xmm2,0x70(%rsp)
	movaps %xmm1,0x80(%rsp)
	movaps %xmm0,0x90(%rsp)
	call   <probe_eight+0x17c>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x134>
	xchg   %ax,%ax
	ret
	nopl   0x0(%rax)
	movq   %xmm7,0x58(%rsp)
	movq   %xmm0,0x50(%rsp)
	or     $0x4000,%esi
	mov    %r10d,%edi
	lea    0x60(%rsp),%rdx
	mov    %r10d,0xc(%rsp)
	movaps %xmm3,0x60(%rsp)
	movaps %xmm3,0x40(%rsp)
	movaps %xmm2,0x70(%rsp)
	movaps %xmm2,0x30(%rsp)
	movaps %xmm1,0x80(%rsp)
	movaps %xmm1,0x20(%rsp)
	movaps %xmm0,0x90(%rsp)
	movaps %xmm0,0x10(%rsp)
	call   <probe_eight+0x1da>
			R_X86_64_PLT32	lat_i_look_words-0x4
	mov    0xc(%rsp),%r10d
	mov    0x50(%rsp),%r8
	test   %eax,%eax
	movdqa 0x10(%rsp),%xmm0
	movdqa 0x20(%rsp),%xmm1
	movdqa 0x30(%rsp),%xmm2
	movdqa 0x40(%rsp),%xmm3
	mov    0x58(%rsp),%r9
	jne    <probe_eight+0x7f>
	jmp    <probe_eight+0x134>
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

<__rseq_failure>:
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a2a>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PC32	.text+0x94
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a36>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PC32	.text+0x184
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a42>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PC32	.text+0x284
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a4e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PC32	.text+0x3b4
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a5a>
	jmp    <probe_empty+0x3c>
			R_X86_64_PC32	.text+0x56c
