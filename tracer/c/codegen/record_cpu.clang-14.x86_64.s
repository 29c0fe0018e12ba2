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
	je     <probe_empty+0x82>
	mov    0x0(%rip),%ebx        # <probe_empty+0x19>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0x88>
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
	jne    <probe_empty+0xa7>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0xa7>
	and    0x18(%rcx),%rdi
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
	call   <probe_empty+0x9d>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x1f>
	jmp    <probe_empty+0x82>
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	xor    %esi,%esi
	call   <probe_empty+0xbe>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_empty+0x82>

<probe_u32>:
	push   %r14
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_u32+0xb>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0x90>
	mov    %edi,%r14d
	mov    0x0(%rip),%ebx        # <probe_u32+0x1c>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%ebx
	test   $0x2,%sil
	jne    <probe_u32+0x98>
	mov    0x0(%rip),%rdx        # <probe_u32+0x2c>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x33>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x43>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x4a>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xb6>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xb6>
	and    0x18(%rcx),%rdi
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
	call   <probe_u32+0xac>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x25>
	jmp    <probe_u32+0x90>
	mov    %r14,(%rsp)
	mov    %rsp,%rdx
	mov    %ebx,%edi
	mov    $0x4,%esi
	call   <probe_u32+0xc9>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_u32+0x90>
	nopl   0x0(%rax,%rax,1)

<probe_one>:
	push   %rbp
	push   %rbx
	push   %rax
	mov    0x0(%rip),%rax        # <probe_one+0xa>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0x8f>
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_one+0x1b>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%ebp
	test   $0x2,%sil
	jne    <probe_one+0x96>
	mov    0x0(%rip),%rdx        # <probe_one+0x2b>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x32>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x42>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x49>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0xb4>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0xb4>
	and    0x18(%rcx),%rdi
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
	call   <probe_one+0xaa>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x24>
	jmp    <probe_one+0x8f>
	mov    %rbx,(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x8,%esi
	call   <probe_one+0xc7>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_one+0x8f>
	nopl   0x0(%rax)

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
	je     <probe_four+0xc5>
	mov    %rcx,%r14
	mov    %rdx,%r15
	mov    %rdi,%rbx
	mov    0x0(%rip),%ebp        # <probe_four+0x31>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%ebp
	test   $0x2,%sil
	jne    <probe_four+0xd2>
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
	jne    <probe_four+0xff>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xff>
	and    0x18(%rcx),%rdi
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
	call   <probe_four+0xf5>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_four+0x3e>
	jmp    <probe_four+0xc5>
	mov    %rbx,(%rsp)
	mov    %r12,0x8(%rsp)
	mov    %r15,0x10(%rsp)
	mov    %r14,0x18(%rsp)
	mov    %rsp,%rdx
	mov    %ebp,%edi
	mov    $0x20,%esi
	call   <probe_four+0x121>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_four+0xc5>
	cs nopw 0x0(%rax,%rax,1)
	nopl   (%rax)

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
	je     <probe_eight+0x112>
	mov    0x0(%rip),%ebx        # <probe_eight+0x46>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%ebx
	test   $0x2,%sil
	jne    <probe_eight+0x121>
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
	jne    <probe_eight+0x186>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x186>
	and    0x18(%rcx),%rdi
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
	call   <probe_eight+0x16a>
			R_X86_64_PLT32	lat_i_look_words-0x4
	mov    0x40(%rsp),%r10
	mov    0x48(%rsp),%r9
	mov    %rbp,%r8
	mov    0x50(%rsp),%rbp
	test   %eax,%eax
	jne    <probe_eight+0x53>
	jmp    <probe_eight+0x112>
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
	call   <probe_eight+0x1bc>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <probe_eight+0x112>
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
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052aea>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PLT32	.text+0xb3
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052af6>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PLT32	.text+0x182
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b02>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PLT32	.text+0x250
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b0e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PLT32	.text+0x36b
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052b1a>
	jmp    <probe_empty+0x2c>
			R_X86_64_PLT32	.text+0x522
