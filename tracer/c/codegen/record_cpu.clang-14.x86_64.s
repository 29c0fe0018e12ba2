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
	je     <probe_empty+0x85>
	mov    0x0(%rip),%ebx        # <probe_empty+0x19>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0x8b>
	mov    0x0(%rip),%rdx        # <probe_empty+0x26>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x2d>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x3d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x44>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0xaa>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0xaa>
	and    0x0(%rip),%rdi        # <probe_empty+0x6b>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x10,%rsp
	pop    %rbx
	ret
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	call   <probe_empty+0xa0>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x1f>
	jmp    <probe_empty+0x85>
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	xor    %esi,%esi
	call   <probe_empty+0xc1>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0x85>
	cs nopw 0x0(%rax,%rax,1)
	nopl   (%rax)

<probe_u32>:
	push   %r14
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_u32+0xb>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0x97>
	mov    %edi,%r14d
	mov    0x0(%rip),%ebx        # <probe_u32+0x20>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%ebx
	test   $0x2,%sil
	jne    <probe_u32+0x9f>
	mov    0x0(%rip),%rdx        # <probe_u32+0x30>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x37>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x47>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x4e>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xbd>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xbd>
	and    0x0(%rip),%rdi        # <probe_u32+0x75>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r14,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %r14
	ret
	mov    %r14,(%rsp)
	or     $0x400,%esi
	mov    %rsp,%rdx
	mov    %ebx,%edi
	call   <probe_u32+0xb3>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x29>
	jmp    <probe_u32+0x97>
	mov    %r14,(%rsp)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    $0x4,%esi
	call   <probe_u32+0xd0>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x97>
	cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_one>:
	push   %rbp
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_one+0xa>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0x96>
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_one+0x1f>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%ebp
	test   $0x2,%sil
	jne    <probe_one+0x9d>
	mov    0x0(%rip),%rdx        # <probe_one+0x2f>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x36>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x46>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x4d>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0xbb>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0xbb>
	and    0x0(%rip),%rdi        # <probe_one+0x74>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x8,%rsp
	pop    %rbx
	pop    %rbp
	ret
	mov    %rbx,(%rsp)
	or     $0x800,%esi
	mov    %rsp,%rdx
	mov    %ebp,%edi
	call   <probe_one+0xb1>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x28>
	jmp    <probe_one+0x96>
	mov    %rbx,(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x8,%esi
	call   <probe_one+0xce>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x96>

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
	je     <probe_four+0xc8>
	mov    %rcx,%r14
	mov    %rdx,%r15
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_four+0x31>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%ebp
	test   $0x2,%sil
	jne    <probe_four+0xd5>
	mov    0x0(%rip),%rdx        # <probe_four+0x45>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x4c>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x5c>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x63>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0x102>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0x102>
	and    0x0(%rip),%rdi        # <probe_four+0x8e>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbx,0x1008(%rcx,%rdi,1)
	mov    %r12,0x1010(%rcx,%rdi,1)
	mov    %r15,0x1018(%rcx,%rdi,1)
	mov    %r14,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x20,%rsp
	pop    %rbx
	pop    %r12
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %rbx,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %r14,0x18(%rsp)
	or     $0x2000,%esi
	mov    %rsp,%rdx
	mov    %ebp,%edi
	call   <probe_four+0xf8>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_four+0x3e>
	jmp    <probe_four+0xc8>
	mov    %rbx,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %r14,0x18(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x20,%esi
	call   <probe_four+0x124>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0xc8>
	cs nopw 0x0(%rax,%rax,1)

<probe_eight>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x68,%rsp
	mov    (%rdi),%r12
	mov    0x8(%rdi),%r13
	mov    0x10(%rdi),%r8
	mov    0x18(%rdi),%rbp
	mov    0x20(%rdi),%r9
	mov    0x28(%rdi),%r10
	mov    0x30(%rdi),%r14
	mov    0x38(%rdi),%r15
	mov    0x0(%rip),%rax        # <probe_eight+0x34>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	je     <probe_eight+0x115>
	mov    0x0(%rip),%ebx        # <probe_eight+0x46>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%ebx
	test   $0x2,%sil
	jne    <probe_eight+0x124>
	mov    %r15,0x58(%rsp)
	mov    %r14,0x60(%rsp)
	mov    0x0(%rip),%rdx        # <probe_eight+0x64>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x6b>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x7b>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0x82>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x189>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x189>
	and    0x0(%rip),%rdi        # <probe_eight+0xb1>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r12,0x1008(%rcx,%rdi,1)
	mov    %r13,0x1010(%rcx,%rdi,1)
	mov    %r8,0x1018(%rcx,%rdi,1)
	mov    %rbp,0x1020(%rcx,%rdi,1)
	mov    %r9,0x1028(%rcx,%rdi,1)
	mov    %r10,0x1030(%rcx,%rdi,1)
	mov    0x60(%rsp),%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    0x58(%rsp),%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x68,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    %r12,(%rsp)
	mov    %r13,0x8(%rsp)
	mov    %r8,0x10(%rsp)
	mov    %rbp,0x18(%rsp)
	mov    %r9,0x20(%rsp)
	mov    %r10,0x28(%rsp)
	mov    %r14,0x30(%rsp)
	mov    %r15,0x38(%rsp)
	or     $0x4000,%esi
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    %rbp,0x50(%rsp)
	mov    %r8,%rbp
	mov    %r9,0x48(%rsp)
	mov    %r10,0x40(%rsp)
	call   <probe_eight+0x16d>
			R_X86_64_PLT32	lat_i_look_words-0x4
	mov    0x40(%rsp),%r10
	mov    0x48(%rsp),%r9
	mov    %rbp,%r8
	mov    0x50(%rsp),%rbp
	test   %eax,%eax
	jne    <probe_eight+0x53>
	jmp    <probe_eight+0x115>
	mov    %r12,(%rsp)
	mov    %r13,0x8(%rsp)
	mov    %r8,0x10(%rsp)
	mov    %rbp,0x18(%rsp)
	mov    %r9,0x20(%rsp)
	mov    %r10,0x28(%rsp)
	mov    %r14,0x30(%rsp)
	mov    %r15,0x38(%rsp)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    $0x40,%esi
	call   <probe_eight+0x1bf>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x115>
	cs nopw 0x0(%rax,%rax,1)
	xchg   %ax,%ax

<probe_enabled>:
	mov    0x0(%rip),%rax        # <probe_enabled+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%ecx
	xor    %eax,%eax
	test   %ecx,%ecx
	setne  %al
	ret

<__rseq_failure>:
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052aca>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PLT32	.text+0xb6
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052ad6>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PLT32	.text+0x199
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052ae2>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PLT32	.text+0x277
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052aee>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PLT32	.text+0x38e
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052afa>
	jmp    <probe_empty+0x2c>
			R_X86_64_PLT32	.text+0x545
