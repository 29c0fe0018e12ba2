<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
	nopw   0x0(%rax,%rax,1)

<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%r8d
	test   %r8d,%r8d
	jne    <probe_empty+0x11>
	ret
	mov    0x0(%rip),%r9d        # <probe_empty+0x18>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%r8b
	jne    <probe_empty+0x87>
	mov    0x0(%rip),%rdx        # <probe_empty+0x25>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x2c>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x3c>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x43>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0x87>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0x87>
	and    0x0(%rip),%rdi        # <probe_empty+0x6a>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r9w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_empty+0x10>
	mov    %r9d,%edi
	mov    %r8d,%esi
	jmp    <probe_empty+0x92>
			R_X86_64_PLT32	.text.unlikely.-0x4
	cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_u32>:
	mov    0x0(%rip),%rax        # <probe_u32+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%r8d
	test   %r8d,%r8d
	jne    <probe_u32+0x12>
	ret
	mov    %edi,%r9d
	mov    0x0(%rip),%r10d        # <probe_u32+0x1c>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0xb,%r10d
	test   $0x2,%r8b
	jne    <probe_u32+0x9a>
	mov    0x0(%rip),%rdx        # <probe_u32+0x2d>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x34>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x44>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x4b>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0x9a>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0x9a>
	and    0x0(%rip),%rdi        # <probe_u32+0x72>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r10w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r9,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_u32+0x11>
	or     $0x400,%r8d
	mov    %r10d,%edi
	mov    %r8d,%esi
	mov    %r9,%rdx
	jmp    <probe_u32+0xaf>
			R_X86_64_PLT32	.text.unlikely.+0xc4
	nop

<probe_one>:
	mov    0x0(%rip),%rax        # <probe_one+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%r9d
	test   %r9d,%r9d
	jne    <probe_one+0x12>
	ret
	mov    %rdi,%r8
	mov    0x0(%rip),%r10d        # <probe_one+0x1c>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x1,%r10d
	test   $0x2,%r9b
	jne    <probe_one+0x9a>
	mov    0x0(%rip),%rdx        # <probe_one+0x2d>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x34>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x44>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x4b>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0x9a>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0x9a>
	and    0x0(%rip),%rdi        # <probe_one+0x72>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r10w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r8,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_one+0x11>
	or     $0x800,%r9d
	mov    %r10d,%edi
	mov    %r9d,%esi
	mov    %r8,%rdx
	jmp    <probe_one+0xaf>
			R_X86_64_PLT32	.text.unlikely.+0xc4
	nop

<probe_four>:
	push   %rbp
	push   %rbx
	mov    0x0(%rip),%rax        # <probe_four+0x9>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%ebx
	test   %ebx,%ebx
	jne    <probe_four+0x14>
	pop    %rbx
	pop    %rbp
	ret
	mov    %rcx,%r9
	mov    %rdx,%r8
	mov    %rsi,%r10
	mov    %rdi,%r11
	mov    0x0(%rip),%ebp        # <probe_four+0x26>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x3,%ebp
	test   $0x2,%bl
	jne    <probe_four+0xbd>
	mov    0x0(%rip),%rdx        # <probe_four+0x39>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x40>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x50>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x57>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0xbd>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xbd>
	and    0x0(%rip),%rdi        # <probe_four+0x7e>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r11,0x1008(%rcx,%rdi,1)
	mov    %r10,0x1010(%rcx,%rdi,1)
	mov    %r8,0x1018(%rcx,%rdi,1)
	mov    %r9,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_four+0x11>
	or     $0x2000,%ebx
	mov    %ebp,%edi
	mov    %ebx,%esi
	mov    %r11,%rdx
	mov    %r10,%rcx
	pop    %rbx
	pop    %rbp
	jmp    <probe_four+0xd4>
			R_X86_64_PLT32	.text.unlikely.+0x19e
	cs nopw 0x0(%rax,%rax,1)
	xchg   %ax,%ax

<probe_eight>:
	push   %rbp
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbx
	sub    $0x18,%rsp
	mov    (%rdi),%r10
	mov    0x8(%rdi),%r11
	mov    0x10(%rdi),%r8
	mov    0x18(%rdi),%r9
	mov    0x20(%rdi),%r15
	mov    0x28(%rdi),%r12
	mov    0x30(%rdi),%r13
	mov    0x38(%rdi),%rbp
	mov    0x0(%rip),%rax        # <probe_eight+0x34>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%ebx
	test   %ebx,%ebx
	jne    <probe_eight+0x4b>
	add    $0x18,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	mov    0x0(%rip),%r14d        # <probe_eight+0x52>
			R_X86_64_PC32	lat_schema_tests+0x4
	add    $0x4,%r14d
	test   $0x2,%bl
	jne    <probe_eight+0x123>
	mov    %rbp,0x8(%rsp)
	mov    %r13,0x10(%rsp)
	mov    0x0(%rip),%rdx        # <probe_eight+0x70>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x77>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x87>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0x8e>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x123>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x123>
	and    0x0(%rip),%rdi        # <probe_eight+0xb9>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r14w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r10,0x1008(%rcx,%rdi,1)
	mov    %r11,0x1010(%rcx,%rdi,1)
	mov    %r8,0x1018(%rcx,%rdi,1)
	mov    %r9,0x1020(%rcx,%rdi,1)
	mov    %r15,0x1028(%rcx,%rdi,1)
	mov    %r12,0x1030(%rcx,%rdi,1)
	mov    0x10(%rsp),%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    0x8(%rsp),%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_eight+0x3c>
	or     $0x4000,%ebx
	mov    %r14d,%edi
	mov    %ebx,%esi
	mov    %r10,%rdx
	mov    %r11,%rcx
	push   %rbp
	push   %r13
	push   %r12
	push   %r15
	call   <probe_eight+0x140>
			R_X86_64_PLT32	.text.unlikely.+0x2c5
	add    $0x38,%rsp
	jmp    <probe_eight+0x40>
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
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c1a>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PLT32	.text+0x93
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c26>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PLT32	.text+0x146
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c32>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PLT32	.text+0x1f6
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c3e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PLT32	.text+0x2c9
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c4a>
	jmp    <__rseq_failure+0x3c>
			R_X86_64_PLT32	.text+0x40f
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c56>
	jmp    <__rseq_failure+0x48>
			R_X86_64_PLT32	.text.unlikely.+0xb4
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c62>
	jmp    <__rseq_failure+0x54>
			R_X86_64_PLT32	.text.unlikely.+0x18d
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c6e>
	jmp    <__rseq_failure+0x60>
			R_X86_64_PLT32	.text.unlikely.+0x2b4
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052c7a>
	jmp    <lat_i_looked0+0x51>
			R_X86_64_PLT32	.text.unlikely.+0x498

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
	sub    $0x18,%rsp
	mov    %esi,%ebx
	mov    %edi,%ebp
	lea    0x10(%rsp),%rdx
	movq   $0x0,(%rdx)
	call   <lat_i_looked0+0x1b>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked0+0x96>
	shr    $0x8,%ebx
	mov    %ebx,%eax
	neg    %eax
	mov    %rax,0x8(%rsp)
	mov    0x0(%rip),%rdx        # <lat_i_looked0+0x32>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked0+0x39>
			R_X86_64_PC32	__rseq_cs+0x9c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked0+0x49>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked0+0x50>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked0+0x9d>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked0+0x9d>
	and    0x0(%rip),%rdi        # <lat_i_looked0+0x77>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	add    0x8(%rsp),%rsi
	mov    %rsi,(%rcx)
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	lea    0x10(%rsp),%rdx
	mov    %ebp,%edi
	mov    %ebx,%esi
	call   <lat_i_looked0+0xab>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked0+0x96>

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
	push   %r14
	push   %rbx
	sub    $0x10,%rsp
	mov    %rdx,%rbp
	mov    %esi,%ebx
	mov    %edi,%r14d
	lea    0x8(%rsp),%rdx
	mov    %rbp,(%rdx)
	call   <lat_i_looked1+0x1d>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked1+0xa6>
	shr    $0x8,%ebx
	mov    $0x8,%eax
	sub    %ebx,%eax
	mov    %rax,(%rsp)
	mov    0x0(%rip),%rdx        # <lat_i_looked1+0x3a>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked1+0x41>
			R_X86_64_PC32	__rseq_cs+0xbc
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked1+0x51>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked1+0x58>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked1+0xaf>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked1+0xaf>
	and    0x0(%rip),%rdi        # <lat_i_looked1+0x7f>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r14w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbp,0x1008(%rcx,%rdi,1)
	add    (%rsp),%rsi
	mov    %rsi,(%rcx)
	add    $0x10,%rsp
	pop    %rbx
	pop    %r14
	pop    %rbp
	ret
	lea    0x8(%rsp),%rdx
	mov    %r14d,%edi
	mov    %ebx,%esi
	call   <lat_i_looked1+0xbe>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked1+0xa6>

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
	sub    $0x38,%rsp
	mov    %r9,%r14
	mov    %r8,%r12
	mov    %rcx,%r13
	mov    %rdx,%rbp
	mov    %esi,%ebx
	mov    %edi,%r15d
	lea    0x10(%rsp),%rdx
	mov    %rbp,(%rdx)
	mov    %rcx,0x8(%rdx)
	mov    %r8,0x10(%rdx)
	mov    %r9,0x18(%rdx)
	call   <lat_i_looked4+0x38>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked4+0xdb>
	shr    $0x8,%ebx
	mov    $0x20,%eax
	sub    %ebx,%eax
	mov    %rax,0x8(%rsp)
	mov    0x0(%rip),%rdx        # <lat_i_looked4+0x56>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked4+0x5d>
			R_X86_64_PC32	__rseq_cs+0xdc
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked4+0x6d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked4+0x74>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked4+0xea>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked4+0xea>
	and    0x0(%rip),%rdi        # <lat_i_looked4+0x9b>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r15w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbp,0x1008(%rcx,%rdi,1)
	mov    %r13,0x1010(%rcx,%rdi,1)
	mov    %r12,0x1018(%rcx,%rdi,1)
	mov    %r14,0x1020(%rcx,%rdi,1)
	add    0x8(%rsp),%rsi
	mov    %rsi,(%rcx)
	add    $0x38,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	lea    0x10(%rsp),%rdx
	mov    %r15d,%edi
	mov    %ebx,%esi
	call   <lat_i_looked4+0xf9>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked4+0xdb>

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
	sub    $0x68,%rsp
	mov    %r9,%rbp
	mov    %r8,%r12
	mov    %rcx,%r13
	mov    %rdx,%r14
	mov    %esi,%r15d
	mov    0xb8(%rsp),%rbx
	mov    0xb0(%rsp),%rsi
	mov    0xa8(%rsp),%rax
	mov    0xa0(%rsp),%rcx
	lea    0x20(%rsp),%rdx
	mov    %r14,(%rdx)
	mov    %r13,0x8(%rdx)
	mov    %r8,0x10(%rdx)
	mov    %r9,0x18(%rdx)
	mov    %rcx,0x20(%rdx)
	mov    %rax,0x28(%rdx)
	mov    %rsi,0x30(%rdx)
	mov    %rbx,0x38(%rdx)
	mov    %edi,0x4(%rsp)
	mov    %r15d,%esi
	call   <lat_i_looked8+0x6d>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	je     <lat_i_looked8+0x16e>
	shr    $0x8,%r15d
	mov    $0x40,%eax
	sub    %r15d,%eax
	mov    0xb0(%rsp),%rcx
	mov    %rcx,0x10(%rsp)
	mov    %rbx,0x8(%rsp)
	mov    %rax,0x18(%rsp)
	mov    %rbp,%r8
	mov    0xa8(%rsp),%rbp
	mov    0xa0(%rsp),%rbx
	mov    0x4(%rsp),%r9d
	mov    0x0(%rip),%rdx        # <lat_i_looked8+0xb7>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked8+0xbe>
			R_X86_64_PC32	__rseq_cs+0xfc
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked8+0xce>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked8+0xd5>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked8+0x17d>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked8+0x17d>
	and    0x0(%rip),%rdi        # <lat_i_looked8+0x104>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r9w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r14,0x1008(%rcx,%rdi,1)
	mov    %r13,0x1010(%rcx,%rdi,1)
	mov    %r12,0x1018(%rcx,%rdi,1)
	mov    %r8,0x1020(%rcx,%rdi,1)
	mov    %rbx,0x1028(%rcx,%rdi,1)
	mov    %rbp,0x1030(%rcx,%rdi,1)
	mov    0x10(%rsp),%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    0x8(%rsp),%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	add    0x18(%rsp),%rsi
	mov    %rsi,(%rcx)
	add    $0x68,%rsp
	pop    %rbx
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	pop    %rbp
	ret
	lea    0x20(%rsp),%rdx
	mov    0x4(%rsp),%edi
	mov    %r15d,%esi
	call   <lat_i_looked8+0x18e>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	jmp    <lat_i_looked8+0x16e>
