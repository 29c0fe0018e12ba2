<probe_empty>:
	mov    0x0(%rip),%rax        # <probe_empty+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%r8d
	test   %r8d,%r8d
	jne    <probe_empty+0x18>
	ret
	nopl   0x0(%rax)
	mov    0x0(%rip),%r9d        # <probe_empty+0x1f>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%r8b
	jne    <probe_empty+0x29>
			R_X86_64_PC32	.text.unlikely+0x4a9
	mov    0x0(%rip),%rdx        # <probe_empty+0x30>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x37>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x47>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x4e>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0x61>
			R_X86_64_PC32	.text.unlikely+0x4a9
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0x76>
			R_X86_64_PC32	.text.unlikely+0x4a9
	and    0x0(%rip),%rdi        # <probe_empty+0x7d>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r9w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	ret
	nopl   0x0(%rax)

<probe_u32>:
	mov    0x0(%rip),%rax        # <probe_u32+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%r8d
	test   %r8d,%r8d
	jne    <probe_u32+0x18>
	ret
	nopw   0x0(%rax,%rax,1)
	mov    0x0(%rip),%eax        # <probe_u32+0x1e>
			R_X86_64_PC32	lat_schema_tests+0x4
	mov    %edi,%r9d
	lea    0xb(%rax),%r10d
	test   $0x2,%r8b
	jne    <probe_u32+0x2f>
			R_X86_64_PC32	.text.unlikely+0x4b4
	mov    0x0(%rip),%rdx        # <probe_u32+0x36>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x3d>
			R_X86_64_PC32	__rseq_cs+0x9c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x4d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x54>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0x67>
			R_X86_64_PC32	.text.unlikely+0x4b4
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0x7c>
			R_X86_64_PC32	.text.unlikely+0x4b4
	and    0x0(%rip),%rdi        # <probe_u32+0x83>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r10w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r9,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	ret
	nopw   0x0(%rax,%rax,1)

<probe_one>:
	mov    0x0(%rip),%rax        # <probe_one+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	mov    %rdi,%r9
	movzbl 0x1(%rax),%r8d
	test   %r8d,%r8d
	jne    <probe_one+0x18>
	ret
	nopl   (%rax)
	mov    0x0(%rip),%eax        # <probe_one+0x1e>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x1(%rax),%r10d
	test   $0x2,%r8b
	jne    <probe_one+0x2c>
			R_X86_64_PC32	.text.unlikely+0x4c8
	mov    0x0(%rip),%rdx        # <probe_one+0x33>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x3a>
			R_X86_64_PC32	__rseq_cs+0xbc
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x4a>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x51>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0x64>
			R_X86_64_PC32	.text.unlikely+0x4c8
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0x79>
			R_X86_64_PC32	.text.unlikely+0x4c8
	and    0x0(%rip),%rdi        # <probe_one+0x80>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r10w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r9,0x1008(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	ret
	data16 cs nopw 0x0(%rax,%rax,1)
	nop

<probe_four>:
	mov    0x0(%rip),%rax        # <probe_four+0x7>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%r10d
	test   %r10d,%r10d
	jne    <probe_four+0x18>
	ret
	nopw   0x0(%rax,%rax,1)
	mov    0x0(%rip),%eax        # <probe_four+0x1e>
			R_X86_64_PC32	lat_schema_tests+0x4
	push   %rbp
	mov    %rdi,%r11
	mov    %rdx,%r8
	push   %rbx
	mov    %rcx,%r9
	mov    %rsi,%rbx
	lea    0x3(%rax),%ebp
	test   $0x2,%r10b
	jne    <probe_four+0x39>
			R_X86_64_PC32	.text.unlikely+0x4dc
	mov    0x0(%rip),%rdx        # <probe_four+0x40>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x47>
			R_X86_64_PC32	__rseq_cs+0xdc
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x57>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x5e>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0x71>
			R_X86_64_PC32	.text.unlikely+0x4dc
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0x86>
			R_X86_64_PC32	.text.unlikely+0x4dc
	and    0x0(%rip),%rdi        # <probe_four+0x8d>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r11,0x1008(%rcx,%rdi,1)
	mov    %rbx,0x1010(%rcx,%rdi,1)
	mov    %r8,0x1018(%rcx,%rdi,1)
	mov    %r9,0x1020(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	pop    %rbx
	pop    %rbp
	ret
	nopw   0x0(%rax,%rax,1)

<probe_eight>:
	push   %r15
	push   %r14
	push   %r13
	push   %r12
	push   %rbp
	push   %rbx
	sub    $0x8,%rsp
	mov    0x0(%rip),%rax        # <probe_eight+0x15>
			R_X86_64_PC32	lat_schema_tests-0x4
	mov    0x38(%rdi),%r14
	mov    0x30(%rdi),%r12
	mov    0x28(%rdi),%rbp
	movzbl 0x4(%rax),%r15d
	mov    0x20(%rdi),%rbx
	mov    0x18(%rdi),%r9
	mov    0x10(%rdi),%r8
	mov    0x8(%rdi),%r11
	mov    (%rdi),%r10
	test   %r15d,%r15d
	jne    <probe_eight+0x50>
	add    $0x8,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	pop    %r15
	ret
	nopl   (%rax)
	mov    0x0(%rip),%eax        # <probe_eight+0x56>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x4(%rax),%r13d
	test   $0x2,%r15b
	jne    <probe_eight+0x64>
			R_X86_64_PC32	.text.unlikely+0x4f4
	mov    0x0(%rip),%rdx        # <probe_eight+0x6b>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x72>
			R_X86_64_PC32	__rseq_cs+0xfc
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0x82>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0x89>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x9c>
			R_X86_64_PC32	.text.unlikely+0x4f4
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0xb1>
			R_X86_64_PC32	.text.unlikely+0x4f4
	and    0x0(%rip),%rdi        # <probe_eight+0xb8>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %r13w,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r10,0x1008(%rcx,%rdi,1)
	mov    %r11,0x1010(%rcx,%rdi,1)
	mov    %r8,0x1018(%rcx,%rdi,1)
	mov    %r9,0x1020(%rcx,%rdi,1)
	mov    %rbx,0x1028(%rcx,%rdi,1)
	mov    %rbp,0x1030(%rcx,%rdi,1)
	mov    %r12,%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    %r14,%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	jmp    <probe_eight+0x3e>
	xchg   %ax,%ax

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
	je     <lat_i_looked0+0xa5>
	shr    $0x8,%ebx
	mov    %ebx,%r9d
	neg    %r9d
	mov    0x0(%rip),%rdx        # <lat_i_looked0+0x33>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked0+0x3a>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked0+0x4a>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked0+0x51>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked0+0x97>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked0+0x97>
	and    0x0(%rip),%rdi        # <lat_i_looked0+0x78>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	add    %r9,%rsi
	mov    %rsi,(%rcx)
	jmp    <lat_i_looked0+0xa5>
	lea    0x8(%rsp),%rdx
	mov    %ebx,%esi
	mov    %ebp,%edi
	call   <lat_i_looked0+0xa5>
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
	je     <lat_i_looked1+0xb3>
	shr    $0x8,%ebx
	mov    $0x8,%r9d
	sub    %ebx,%r9d
	mov    0x0(%rip),%rdx        # <lat_i_looked1+0x39>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked1+0x40>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked1+0x50>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked1+0x57>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked1+0xa5>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked1+0xa5>
	and    0x0(%rip),%rdi        # <lat_i_looked1+0x7e>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r12,0x1008(%rcx,%rdi,1)
	add    %r9,%rsi
	mov    %rsi,(%rcx)
	jmp    <lat_i_looked1+0xb3>
	lea    0x8(%rsp),%rdx
	mov    %ebx,%esi
	mov    %ebp,%edi
	call   <lat_i_looked1+0xb3>
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
	mov    %r9,%r15
	push   %r14
	mov    %r8,%r14
	push   %r13
	mov    %rcx,%r13
	push   %r12
	mov    %rdx,%r12
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
	je     <lat_i_looked4+0xe4>
	shr    $0x8,%ebx
	mov    $0x20,%r8d
	sub    %ebx,%r8d
	mov    0x0(%rip),%rdx        # <lat_i_looked4+0x54>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked4+0x5b>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked4+0x6b>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked4+0x72>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked4+0xd8>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked4+0xd8>
	and    0x0(%rip),%rdi        # <lat_i_looked4+0x99>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bp,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r12,0x1008(%rcx,%rdi,1)
	mov    %r13,0x1010(%rcx,%rdi,1)
	mov    %r14,0x1018(%rcx,%rdi,1)
	mov    %r15,0x1020(%rcx,%rdi,1)
	add    %r8,%rsi
	mov    %rsi,(%rcx)
	jmp    <lat_i_looked4+0xe4>
	mov    %rsp,%rdx
	mov    %ebx,%esi
	mov    %ebp,%edi
	call   <lat_i_looked4+0xe4>
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
	mov    %r8,%r14
	push   %r13
	mov    %esi,%r13d
	push   %r12
	mov    %r9,%r12
	push   %rbp
	mov    %rdx,%rbp
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
	je     <lat_i_looked8+0x162>
	mov    %r13d,%r10d
	mov    $0x40,%r11d
	mov    0x80(%rsp),%r8
	mov    0x88(%rsp),%r9
	shr    $0x8,%r10d
	sub    %r10d,%r11d
	mov    0x0(%rip),%rdx        # <lat_i_looked8+0x9d>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <lat_i_looked8+0xa4>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <lat_i_looked8+0xb4>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <lat_i_looked8+0xbb>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <lat_i_looked8+0x155>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <lat_i_looked8+0x155>
	and    0x0(%rip),%rdi        # <lat_i_looked8+0xe6>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rbp,0x1008(%rcx,%rdi,1)
	mov    %r15,0x1010(%rcx,%rdi,1)
	mov    %r14,0x1018(%rcx,%rdi,1)
	mov    %r12,0x1020(%rcx,%rdi,1)
	mov    %r8,0x1028(%rcx,%rdi,1)
	mov    %r9,0x1030(%rcx,%rdi,1)
	mov    0x90(%rsp),%rax
	mov    %rax,0x1038(%rcx,%rdi,1)
	mov    0x98(%rsp),%rax
	mov    %rax,0x1040(%rcx,%rdi,1)
	add    %r11,%rsi
	mov    %rsi,(%rcx)
	jmp    <lat_i_looked8+0x162>
	mov    %rsp,%rdx
	mov    %r10d,%esi
	mov    %ebx,%edi
	call   <lat_i_looked8+0x162>
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

<probe_empty.cold>:
	mov    %r8d,%esi
	mov    %r9d,%edi
	jmp    <lat_i_rare0>

<probe_u32.cold>:
	mov    %r8d,%esi
	mov    %r9,%rdx
	mov    %r10d,%edi
	or     $0x400,%esi
	jmp    <lat_i_rare1>

<probe_one.cold>:
	mov    %r8d,%esi
	mov    %r9,%rdx
	mov    %r10d,%edi
	or     $0x800,%esi
	jmp    <lat_i_rare1>

<probe_four.cold>:
	mov    %r10d,%esi
	mov    %rbx,%rcx
	mov    %ebp,%edi
	pop    %rbx
	or     $0x2000,%esi
	mov    %r11,%rdx
	pop    %rbp
	jmp    <lat_i_rare4>

<probe_eight.cold>:
	push   %r14
	mov    %r15d,%esi
	mov    %r11,%rcx
	mov    %r10,%rdx
	push   %r12
	or     $0x4000,%esi
	mov    %r13d,%edi
	push   %rbp
	push   %rbx
	call   <lat_i_rare8>
	add    $0x20,%rsp
	jmp    <probe_eight.cold+0x26>
			R_X86_64_PC32	.text+0x30a

<__rseq_failure>:
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052b62>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PC32	.text.unlikely+0x93
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052b6e>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PC32	.text.unlikely+0x175
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052b7a>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PC32	.text.unlikely+0x28a
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052b86>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PC32	.text.unlikely+0x42c
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052b92>
	jmp    <__rseq_failure+0x3c>
			R_X86_64_PC32	.text.unlikely+0x4a9
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052b9e>
	jmp    <__rseq_failure+0x48>
			R_X86_64_PC32	.text.unlikely+0x4b4
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052baa>
	jmp    <__rseq_failure+0x54>
			R_X86_64_PC32	.text.unlikely+0x4c8
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052bb6>
	jmp    <__rseq_failure+0x60>
			R_X86_64_PC32	.text.unlikely+0x4dc
	ud1    0x53053053(%rip),%edi        # <probe_eight.cold+0x53052bc2>
	jmp    <probe_empty+0x6c>
			R_X86_64_PC32	.text.unlikely+0x4f4

<lat_register_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_schema_tests
	jmp    <lat_register_tests+0xa>
			R_X86_64_PLT32	lat_register-0x4
