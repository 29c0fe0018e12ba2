<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	jne    <probe_empty+0x10>
	ret
	nop
	push   %rbx
	sub    $0x10,%rsp
	mov    0x0(%rip),%ebx        # <probe_empty+0x1b>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0xb0>
	mov    0x0(%rip),%rdx        # <probe_empty+0x2c>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x33>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x43>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x4a>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0x90>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0x90>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x10,%rsp
	pop    %rbx
	ret
	xchg   %ax,%ax
	lea    0x8(%rsp),%rdx
	xor    %esi,%esi
	mov    %ebx,%edi
	movq   $0x0,0x8(%rsp)
	call   <probe_empty+0xa7>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0x88>
	nopl   0x0(%rax)
	xor    %edx,%edx
	mov    %ebx,%edi
	call   <probe_empty+0xb9>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_empty+0x25>
	jmp    <probe_empty+0x88>
	data16 cs nopw 0x0(%rax,%rax,1)
	xchg   %ax,%ax

<probe_u32>:
	mov    0x0(%rip),%rax        # <probe_u32+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	jne    <probe_u32+0x10>
	ret
	push   %rbp
	push   %rbx
	mov    %edi,%ebx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_u32+0x1e>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0xb(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_u32+0xc0>
	mov    0x0(%rip),%rdx        # <probe_u32+0x32>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x39>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x49>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x50>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xa0>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xa0>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	nopl   (%rax)
	lea    0x8(%rsp),%rdx
	mov    $0x4,%esi
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_u32+0xb6>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x96>
	nopl   0x0(%rax,%rax,1)
	mov    %rbx,%rdx
	mov    %ebp,%edi
	call   <probe_u32+0xca>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_u32+0x2b>
	jmp    <probe_u32+0x96>
	data16 cs nopw 0x0(%rax,%rax,1)
	nop

<probe_one>:
	mov    0x0(%rip),%rax        # <probe_one+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	jne    <probe_one+0x10>
	ret
	push   %rbp
	push   %rbx
	mov    %rdi,%rbx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_one+0x1f>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x1(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_one+0xc0>
	mov    0x0(%rip),%rdx        # <probe_one+0x33>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x3a>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x4a>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x51>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0xa0>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0xa0>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	xchg   %ax,%ax
	lea    0x8(%rsp),%rdx
	mov    $0x8,%esi
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_one+0xb6>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x97>
	nopl   0x0(%rax,%rax,1)
	mov    %rdi,%rdx
	mov    %ebp,%edi
	call   <probe_one+0xca>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_one+0x2c>
	jmp    <probe_one+0x97>
	data16 cs nopw 0x0(%rax,%rax,1)
	nop

<probe_four>:
	push   %r14
	push   %r13
	mov    %rsi,%r13
	push   %r12
	push   %rbp
	push   %rbx
	sub    $0x20,%rsp
	mov    0x0(%rip),%rax        # <probe_four+0x16>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	jne    <probe_four+0x30>
	add    $0x20,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	ret
	nopl   0x0(%rax,%rax,1)
	mov    0x0(%rip),%eax        # <probe_four+0x36>
			R_X86_64_PC32	lat_schema_tests+0x4
	mov    %rdi,%rbx
	mov    %rdx,%r12
	mov    %rcx,%rbp
	lea    0x3(%rax),%r14d
	test   $0x2,%sil
	jne    <probe_four+0x110>
	mov    0x0(%rip),%rdx        # <probe_four+0x54>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x5b>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x6b>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x72>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0xe0>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xe0>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %r14w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %r13,0x1010(%rcx,%rdi,1)
	mov    %r12,0x1018(%rcx,%rdi,1)
	mov    %rbp,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_four+0x1e>
	cs nopw 0x0(%rax,%rax,1)
	mov    %rsp,%rdx
	mov    $0x20,%esi
	mov    %r14d,%edi
	mov    %rbx,(%rsp)
	mov    %r13,0x8(%rsp)
	mov    %r12,0x10(%rsp)
	mov    %rbp,0x18(%rsp)
	call   <probe_four+0x103>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0x1e>
	nopl   0x0(%rax,%rax,1)
	mov    %rdi,%rdx
	mov    %r14d,%edi
	call   <probe_four+0x11b>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_four+0x4d>
	jmp    <probe_four+0x1e>
	nopl   0x0(%rax,%rax,1)

<probe_eight>:
	mov    0x0(%rip),%rax        # <probe_eight+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movdqu (%rdi),%xmm0
	movdqu 0x10(%rdi),%xmm3
	movdqu 0x20(%rdi),%xmm2
	movzbl 0x4(%rax),%esi
	movdqu 0x30(%rdi),%xmm1
	test   %esi,%esi
	jne    <probe_eight+0x28>
	ret
	nopl   0x0(%rax,%rax,1)
	push   %r14
	push   %r13
	movq   %xmm0,%r13
	push   %r12
	push   %rbp
	push   %rbx
	add    $0xffffffffffffff80,%rsp
	mov    0x0(%rip),%eax        # <probe_eight+0x3f>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x4(%rax),%ebx
	test   $0x2,%sil
	jne    <probe_eight+0x160>
	movhlps %xmm1,%xmm4
	movhlps %xmm0,%xmm5
	movhlps %xmm3,%xmm6
	movhlps %xmm2,%xmm7
	movq   %xmm3,%r9
	movq   %xmm2,%r11
	movq   %xmm1,%r12
	movq   %xmm4,%r14
	movq   %xmm5,%r8
	movq   %xmm6,%r10
	movq   %xmm7,%rbp
	mov    0x0(%rip),%rdx        # <probe_eight+0x82>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x89>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x99>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0xa0>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x138>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x138>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r13,0x1008(%rcx,%rdi,1)
	mov    %r8,0x1010(%rcx,%rdi,1)
	mov    %r9,0x1018(%rcx,%rdi,1)
	mov    %r10,0x1020(%rcx,%rdi,1)
	mov    %r11,0x1028(%rcx,%rdi,1)
	mov    %rbp,0x1030(%rcx,%rdi,1)
	mov    %r12,%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    %r14,%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	sub    $0xffffffffffffff80,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	ret
	nopl   (%rax)
	lea    0x40(%rsp),%rdx
	mov    $0x40,%esi
	mov    %ebx,%edi
	movaps %xmm0,0x40(%rsp)
	movaps %xmm3,0x50(%rsp)
	movaps %xmm2,0x60(%rsp)
	movaps %xmm1,0x70(%rsp)
	call   <probe_eight+0x15d>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x128>
	nop
	mov    %r13,%rdx
	mov    %ebx,%edi
	movaps %xmm1,0x30(%rsp)
	movaps %xmm2,0x20(%rsp)
	movaps %xmm3,0x10(%rsp)
	movaps %xmm0,(%rsp)
	call   <probe_eight+0x17d>
			R_X86_64_PLT32	lat_i_watch-0x4
	movdqa (%rsp),%xmm0
	movdqa 0x10(%rsp),%xmm3
	test   %eax,%eax
	movdqa 0x20(%rsp),%xmm2
	movdqa 0x30(%rsp),%xmm1
	jne    <probe_eight+0x4c>
	jmp    <probe_eight+0x128>
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
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052afa>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PC32	.text+0x8c
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b06>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PC32	.text+0x16c
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b12>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PC32	.text+0x24c
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b1e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PC32	.text+0x36c
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b2a>
	jmp    <probe_empty+0x3c>
			R_X86_64_PC32	.text+0x4f4
