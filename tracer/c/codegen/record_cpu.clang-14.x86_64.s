<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
	nopw   0x0(%rax,%rax,1)

<probe_empty>:
	push   %rbx
	sub    $0x10,%rsp
	mov    0x0(%rip),%rax        # <probe_empty+0xc>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	jne    <probe_empty+0x19>
	add    $0x10,%rsp
	pop    %rbx
	ret
	mov    0x0(%rip),%ebx        # <probe_empty+0x1f>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0xaa>
	mov    0x0(%rip),%rdx        # <probe_empty+0x30>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x37>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x47>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x4e>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0x8e>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0x8e>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_empty+0x13>
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	xor    %esi,%esi
	call   <probe_empty+0xa5>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0x13>
	mov    %ebx,%edi
	xor    %edx,%edx
	call   <probe_empty+0xb3>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_empty+0x29>
	jmp    <probe_empty+0x13>

<probe_u32>:
	push   %r14
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_u32+0xb>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	jne    <probe_u32+0x1b>
	add    $0x8,%rsp
	pop    %rbx
	pop    %r14
	ret
	mov    %edi,%r14d
	mov    0x0(%rip),%ebx        # <probe_u32+0x24>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%ebx
	test   $0x2,%sil
	jne    <probe_u32+0xb9>
	mov    0x0(%rip),%rdx        # <probe_u32+0x38>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x3f>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x4f>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x56>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xa1>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xa1>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r14,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_u32+0x13>
	mov    %r14,(%rsp)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    $0x4,%esi
	call   <probe_u32+0xb4>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x13>
	mov    %ebx,%edi
	mov    %r14,%rdx
	call   <probe_u32+0xc3>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_u32+0x31>
	jmp    <probe_u32+0x13>

<probe_one>:
	push   %rbp
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_one+0xa>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	jne    <probe_one+0x19>
	add    $0x8,%rsp
	pop    %rbx
	pop    %rbp
	ret
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_one+0x22>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%ebp
	test   $0x2,%sil
	jne    <probe_one+0xb7>
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
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0x9f>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0x9f>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_one+0x12>
	mov    %rbx,(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x8,%esi
	call   <probe_one+0xb2>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x12>
	mov    %ebp,%edi
	mov    %rbx,%rdx
	call   <probe_one+0xc1>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_one+0x2f>
	jmp    <probe_one+0x12>
	xchg   %ax,%ax

<probe_four>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r12
	push   %rbx
	sub    $0x20,%rsp
	mov    %rsi,%r12
	mov    0x0(%rip),%rax        # <probe_four+0x16>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	jne    <probe_four+0x2b>
	add    $0x20,%rsp
	pop    %rbx
	pop    %r12
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %rcx,%r14
	mov    %rdx,%r15
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_four+0x3a>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%ebp
	test   $0x2,%sil
	jne    <probe_four+0xf6>
	mov    0x0(%rip),%rdx        # <probe_four+0x4e>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x55>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x65>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x6c>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0xcf>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xcf>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %r12,0x1010(%rcx,%rdi,1)
	mov    %r15,0x1018(%rcx,%rdi,1)
	mov    %r14,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_four+0x1e>
	mov    %rbx,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %r14,0x18(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x20,%esi
	call   <probe_four+0xf1>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0x1e>
	mov    %ebp,%edi
	mov    %rbx,%rdx
	call   <probe_four+0x100>
			R_X86_64_PLT32	lat_i_watch-0x4
	test   %eax,%eax
	jne    <probe_four+0x47>
	jmp    <probe_four+0x1e>
	nopl   (%rax)

<probe_eight>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x78,%rsp
	mov    (%rdi),%r14
	mov    0x8(%rdi),%r12
	mov    0x10(%rdi),%r13
	mov    0x18(%rdi),%r8
	mov    0x20(%rdi),%rbp
	mov    0x28(%rdi),%r9
	mov    0x30(%rdi),%rbx
	mov    0x38(%rdi),%r15
	mov    0x0(%rip),%rax        # <probe_eight+0x34>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	jne    <probe_eight+0x4b>
	add    $0x78,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    0x0(%rip),%r10d        # <probe_eight+0x52>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%r10d
	test   $0x2,%sil
	jne    <probe_eight+0x160>
	mov    %r15,0x20(%rsp)
	mov    %rbx,0x28(%rsp)
	mov    0x0(%rip),%rdx        # <probe_eight+0x71>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x78>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x88>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0x8f>
			R_X86_64_PC32	lat_i_state-0x4
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x121>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x121>
	and    0x18(%rcx),%rdi
	rdtsc
	mov    %r10w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r14,0x1008(%rcx,%rdi,1)
	mov    %r12,0x1010(%rcx,%rdi,1)
	mov    %r13,0x1018(%rcx,%rdi,1)
	mov    %r8,0x1020(%rcx,%rdi,1)
	mov    %rbp,0x1028(%rcx,%rdi,1)
	mov    %r9,0x1030(%rcx,%rdi,1)
	mov    0x28(%rsp),%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    0x20(%rsp),%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_eight+0x3c>
	mov    %r14,0x30(%rsp)
	mov    %r12,0x38(%rsp)
	mov    %r13,0x40(%rsp)
	mov    %r8,0x48(%rsp)
	mov    %rbp,0x50(%rsp)
	mov    %r9,0x58(%rsp)
	mov    %rbx,0x60(%rsp)
	mov    %r15,0x68(%rsp)
	lea    0x30(%rsp),%rdx
	mov    %r10d,%edi
	mov    $0x40,%esi
	call   <probe_eight+0x15b>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x3c>
	mov    %r10d,%edi
	mov    %r14,%rdx
	mov    %rbp,0x10(%rsp)
	mov    %r8,0x18(%rsp)
	mov    %r9,%rbp
	mov    %r10d,0xc(%rsp)
	call   <probe_eight+0x17d>
			R_X86_64_PLT32	lat_i_watch-0x4
	mov    0xc(%rsp),%r10d
	mov    %rbp,%r9
	mov    0x18(%rsp),%r8
	mov    0x10(%rsp),%rbp
	test   %eax,%eax
	jne    <probe_eight+0x60>
	jmp    <probe_eight+0x3c>
	nopl   0x0(%rax)

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%ecx
	xor    %eax,%eax
	test   %ecx,%ecx
	setne  %al
	ret

<__rseq_failure>:
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b3a>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PLT32	.text+0x9a
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b46>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PLT32	.text+0x16d
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b52>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PLT32	.text+0x23b
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b5e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PLT32	.text+0x33b
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b6a>
	jmp    <probe_empty+0x2c>
			R_X86_64_PLT32	.text+0x49d
