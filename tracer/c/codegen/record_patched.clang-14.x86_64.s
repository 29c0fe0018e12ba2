<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
	nopw   0x0(%rax,%rax,1)

<lat_patch_tests>:
	movq   $0x0,0x0(%rip)        # <lat_patch_tests+0xb>
			R_X86_64_PC32	lat_i_patch_table_of_object
			R_X86_64_32S	__start_lat_sites
	movq   $0x0,0x0(%rip)        # <lat_patch_tests+0x16>
			R_X86_64_PC32	lat_i_patch_table_of_object+0x8
			R_X86_64_32S	__stop_lat_sites
	mov    $0x0,%edi
			R_X86_64_32	lat_i_patch_table_of_object
	jmp    <lat_forget_tests>
			R_X86_64_PLT32	lat_i_register_sites-0x4

<lat_forget_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_i_patch_table_of_object
	jmp    <lat_forget_tests+0xa>
			R_X86_64_PLT32	lat_i_forget_sites-0x4
	nopw   0x0(%rax,%rax,1)

<probe_empty>:
	push   %rbx
	sub    $0x10,%rsp
	test   $0x6,%eax
	add    $0x10,%rsp
	pop    %rbx
	ret
	mov    0x0(%rip),%rax        # <probe_empty+0x17>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	je     <probe_empty+0xa>
	mov    0x0(%rip),%ebx        # <probe_empty+0x24>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0xb5>
	mov    0x0(%rip),%rdx        # <probe_empty+0x35>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x3c>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x4c>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x53>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0x99>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0x99>
	and    0x0(%rip),%rdi        # <probe_empty+0x7a>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_empty+0xa>
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	xor    %esi,%esi
	call   <probe_empty+0xb0>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0xa>
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	call   <probe_empty+0xca>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x2e>
	jmp    <probe_empty+0xa>
	nopw   0x0(%rax,%rax,1)

<probe_u32>:
	push   %r14
	push   %rbx
	push   %rax
	test   $0x8,%eax
	add    $0x8,%rsp
	pop    %rbx
	pop    %r14
	ret
	mov    0x0(%rip),%rax        # <probe_u32+0x18>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0x9>
	mov    %edi,%r14d
	mov    0x0(%rip),%ebx        # <probe_u32+0x29>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%ebx
	test   $0x2,%sil
	jne    <probe_u32+0xc1>
	mov    0x0(%rip),%rdx        # <probe_u32+0x3d>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x44>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x54>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x5b>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xa9>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xa9>
	and    0x0(%rip),%rdi        # <probe_u32+0x82>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r14,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_u32+0x9>
	mov    %r14,(%rsp)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    $0x4,%esi
	call   <probe_u32+0xbc>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x9>
	mov    %r14,(%rsp)
	or     $0x400,%esi
	mov    %rsp,%rdx
	mov    %ebx,%edi
	call   <probe_u32+0xd5>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x36>
	jmp    <probe_u32+0x9>
	cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_one>:
	push   %rbp
	push   %rbx
	push   %rax
	test   $0x7,%eax
	add    $0x8,%rsp
	pop    %rbx
	pop    %rbp
	ret
	mov    0x0(%rip),%rax        # <probe_one+0x16>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0x8>
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_one+0x27>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%ebp
	test   $0x2,%sil
	jne    <probe_one+0xbf>
	mov    0x0(%rip),%rdx        # <probe_one+0x3b>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x42>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x52>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x59>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0xa7>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0xa7>
	and    0x0(%rip),%rdi        # <probe_one+0x80>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_one+0x8>
	mov    %rbx,(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x8,%esi
	call   <probe_one+0xba>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x8>
	mov    %rbx,(%rsp)
	or     $0x800,%esi
	mov    %rsp,%rdx
	mov    %ebp,%edi
	call   <probe_one+0xd3>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x34>
	jmp    <probe_one+0x8>

<probe_four>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r12
	push   %rbx
	sub    $0x20,%rsp
	test   $0xd,%eax
	add    $0x20,%rsp
	pop    %rbx
	pop    %r12
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %rsi,%r12
	mov    0x0(%rip),%rax        # <probe_four+0x28>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	je     <probe_four+0x11>
	mov    %rcx,%r14
	mov    %rdx,%r15
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_four+0x3f>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%ebp
	test   $0x2,%sil
	jne    <probe_four+0xfe>
	mov    0x0(%rip),%rdx        # <probe_four+0x53>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x5a>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x6a>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x71>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0xd7>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xd7>
	and    0x0(%rip),%rdi        # <probe_four+0x98>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %r12,0x1010(%rcx,%rdi,1)
	mov    %r15,0x1018(%rcx,%rdi,1)
	mov    %r14,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_four+0x11>
	mov    %rbx,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %r14,0x18(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x20,%esi
	call   <probe_four+0xf9>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0x11>
	mov    %rbx,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %r14,0x18(%rsp)
	or     $0x2000,%esi
	mov    %rsp,%rdx
	mov    %ebp,%edi
	call   <probe_four+0x121>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_four+0x4c>
	jmp    <probe_four+0x11>
	xchg   %ax,%ax

<probe_eight>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x78,%rsp
	mov    (%rdi),%r15
	mov    0x8(%rdi),%r12
	mov    0x10(%rdi),%r13
	mov    0x18(%rdi),%r14
	mov    0x20(%rdi),%r10
	mov    0x28(%rdi),%r9
	mov    0x30(%rdi),%rbp
	mov    0x38(%rdi),%r8
	test   $0xf,%eax
	add    $0x78,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    0x0(%rip),%rax        # <probe_eight+0x48>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	je     <probe_eight+0x32>
	mov    0x0(%rip),%eax        # <probe_eight+0x56>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%eax
	mov    %eax,0xc(%rsp)
	test   $0x2,%sil
	jne    <probe_eight+0x16e>
	mov    %r8,0x68(%rsp)
	mov    %rbp,0x70(%rsp)
	mov    0xc(%rsp),%ebx
	mov    0x0(%rip),%rdx        # <probe_eight+0x7c>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x83>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x93>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0x9a>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x12e>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x12e>
	and    0x0(%rip),%rdi        # <probe_eight+0xc5>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r15,0x1008(%rcx,%rdi,1)
	mov    %r12,0x1010(%rcx,%rdi,1)
	mov    %r13,0x1018(%rcx,%rdi,1)
	mov    %r14,0x1020(%rcx,%rdi,1)
	mov    %r10,0x1028(%rcx,%rdi,1)
	mov    %r9,0x1030(%rcx,%rdi,1)
	mov    0x70(%rsp),%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    0x68(%rsp),%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_eight+0x32>
	mov    %r15,0x10(%rsp)
	mov    %r12,0x18(%rsp)
	mov    %r13,0x20(%rsp)
	mov    %r14,0x28(%rsp)
	mov    %r10,0x30(%rsp)
	mov    %r9,0x38(%rsp)
	mov    %rbp,0x40(%rsp)
	mov    %r8,0x48(%rsp)
	lea    0x10(%rsp),%rdx
	mov    0xc(%rsp),%edi
	mov    $0x40,%esi
	call   <probe_eight+0x169>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x32>
	mov    %r15,0x10(%rsp)
	mov    %r12,0x18(%rsp)
	mov    %r13,0x20(%rsp)
	mov    %r14,0x28(%rsp)
	mov    %r10,0x30(%rsp)
	mov    %r9,0x38(%rsp)
	mov    %rbp,0x40(%rsp)
	mov    %r8,0x48(%rsp)
	or     $0x4000,%esi
	lea    0x10(%rsp),%rdx
	mov    0xc(%rsp),%edi
	mov    %r10,0x58(%rsp)
	mov    %r8,0x60(%rsp)
	mov    %r9,%rbx
	call   <probe_eight+0x1b7>
			R_X86_64_PLT32	lat_i_look_words-0x4
	mov    %rbx,%r9
	mov    0x60(%rsp),%r8
	mov    0x58(%rsp),%r10
	test   %eax,%eax
	jne    <probe_eight+0x67>
	jmp    <probe_eight+0x32>
	cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax,%rax,1)

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%ecx
	xor    %eax,%eax
	test   %ecx,%ecx
	setne  %al
	ret

<__rseq_failure>:
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a5a>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PLT32	.text+0xd5
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a66>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PLT32	.text+0x1c5
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a72>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PLT32	.text+0x2b3
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a7e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PLT32	.text+0x3c3
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a8a>
	jmp    <lat_forget_tests+0xc>
			R_X86_64_PLT32	.text+0x54a
