<probe_empty>:
	test   $0xb,%eax
	ret
	cs nopw 0x0(%rax,%rax,1)
	mov    0x0(%rip),%rax        # <probe_empty+0x17>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl (%rax),%esi
	test   %esi,%esi
	je     <probe_empty+0xa8>
	push   %rbx
	sub    $0x10,%rsp
	mov    0x0(%rip),%ebx        # <probe_empty+0x2d>
			R_X86_64_PC32	lat_schema_tests+0x4
	test   $0x2,%sil
	jne    <probe_empty+0xd0>
	mov    0x0(%rip),%rdx        # <probe_empty+0x3e>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_empty+0x45>
			R_X86_64_PC32	__rseq_cs-0x4
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_empty+0x55>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_empty+0x5c>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_empty+0xb0>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x8(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_empty+0xb0>
	and    0x0(%rip),%rdi        # <probe_empty+0x83>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %rsi,(%rcx)
	add    $0x10,%rsp
	pop    %rbx
	ret
	nopl   0x0(%rax,%rax,1)
	ret
	nopl   0x0(%rax)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	xor    %esi,%esi
	movq   $0x0,0x8(%rsp)
	call   <probe_empty+0xc7>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x10,%rsp
	pop    %rbx
	ret
	nopl   (%rax)
	movq   $0x0,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebx,%edi
	call   <probe_empty+0xe5>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_empty+0x37>
	jmp    <probe_empty+0x9d>
	nop

<probe_u32>:
	test   $0xb,%eax
	ret
	cs nopw 0x0(%rax,%rax,1)
	mov    0x0(%rip),%rax        # <probe_u32+0x17>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0xb(%rax),%esi
	test   %esi,%esi
	je     <probe_u32+0xb8>
	push   %rbp
	push   %rbx
	mov    %edi,%ebx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_u32+0x31>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0xb(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_u32+0xe0>
	mov    0x0(%rip),%rdx        # <probe_u32+0x45>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_u32+0x4c>
			R_X86_64_PC32	__rseq_cs+0x1c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_u32+0x5c>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_u32+0x63>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_u32+0xc0>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x14(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_u32+0xc0>
	and    0x0(%rip),%rdi        # <probe_u32+0x8a>
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
	ret
	nopl   0x0(%rax)
	mov    %rbx,%rdi
	mov    $0x4,%esi
	mov    %rdi,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <probe_u32+0xd9>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	or     $0x400,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	mov    %rbx,0x8(%rsp)
	call   <probe_u32+0xf7>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_u32+0x3e>
	jmp    <probe_u32+0xac>
	data16 cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_one>:
	test   $0xb,%eax
	ret
	cs nopw 0x0(%rax,%rax,1)
	mov    0x0(%rip),%rax        # <probe_one+0x17>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x1(%rax),%esi
	test   %esi,%esi
	je     <probe_one+0xb8>
	push   %rbp
	push   %rbx
	mov    %rdi,%rbx
	sub    $0x18,%rsp
	mov    0x0(%rip),%eax        # <probe_one+0x32>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x1(%rax),%ebp
	test   $0x2,%sil
	jne    <probe_one+0xe0>
	mov    0x0(%rip),%rdx        # <probe_one+0x46>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_one+0x4d>
			R_X86_64_PC32	__rseq_cs+0x3c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_one+0x5d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_one+0x64>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_one+0xc0>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x10(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_one+0xc0>
	and    0x0(%rip),%rdi        # <probe_one+0x8b>
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
	ret
	nopl   0x0(%rax)
	mov    %rbx,%rdi
	mov    $0x8,%esi
	mov    %rdi,0x8(%rsp)
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <probe_one+0xd9>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	add    $0x18,%rsp
	pop    %rbx
	pop    %rbp
	ret
	mov    %rdi,0x8(%rsp)
	or     $0x800,%esi
	lea    0x8(%rsp),%rdx
	mov    %ebp,%edi
	call   <probe_one+0xf7>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_one+0x3f>
	jmp    <probe_one+0xad>
	data16 cs nopw 0x0(%rax,%rax,1)
	nopl   0x0(%rax)

<probe_four>:
	test   $0xb,%eax
	ret
	cs nopw 0x0(%rax,%rax,1)
	push   %r14
	push   %r13
	push   %r12
	mov    %rsi,%r12
	push   %rbp
	push   %rbx
	sub    $0x20,%rsp
	mov    0x0(%rip),%rax        # <probe_four+0x26>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x3(%rax),%esi
	test   %esi,%esi
	je     <probe_four+0xd6>
	mov    0x0(%rip),%eax        # <probe_four+0x38>
			R_X86_64_PC32	lat_schema_tests+0x4
	mov    %rdi,%r13
	mov    %rdx,%rbp
	mov    %rcx,%rbx
	lea    0x3(%rax),%r14d
	test   $0x2,%sil
	jne    <probe_four+0x120>
	mov    0x0(%rip),%rdx        # <probe_four+0x56>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_four+0x5d>
			R_X86_64_PC32	__rseq_cs+0x5c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_four+0x6d>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_four+0x74>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_four+0xe8>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x28(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_four+0xe8>
	and    0x0(%rip),%rdi        # <probe_four+0x9b>
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
	call   <probe_four+0x10b>
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
	call   <probe_four+0x144>
			R_X86_64_PLT32	lat_i_look_words-0x4
	test   %eax,%eax
	jne    <probe_four+0x4f>
	jmp    <probe_four+0xd6>
	xchg   %ax,%ax

<probe_eight>:
	movdqu (%rdi),%xmm3
	movdqu 0x10(%rdi),%xmm2
	movdqu 0x20(%rdi),%xmm1
	movdqu 0x30(%rdi),%xmm0
	test   $0x8,%eax
	ret
	nopl   0x0(%rax)
	mov    0x0(%rip),%rax        # <probe_eight+0x27>
			R_X86_64_PC32	lat_schema_tests-0x4
	movzbl 0x4(%rax),%esi
	test   %esi,%esi
	je     <probe_eight+0x150>
	push   %r14
	push   %r13
	push   %r12
	push   %rbp
	push   %rbx
	add    $0xffffffffffffff80,%rsp
	mov    0x0(%rip),%eax        # <probe_eight+0x45>
			R_X86_64_PC32	lat_schema_tests+0x4
	lea    0x4(%rax),%ebx
	test   $0x2,%sil
	jne    <probe_eight+0x190>
	movhlps %xmm0,%xmm4
	movhlps %xmm3,%xmm5
	movhlps %xmm2,%xmm6
	movhlps %xmm1,%xmm7
	movq   %xmm3,%r8
	movq   %xmm2,%r10
	movq   %xmm1,%rbp
	movq   %xmm0,%r13
	movq   %xmm4,%r14
	movq   %xmm5,%r9
	movq   %xmm6,%r11
	movq   %xmm7,%r12
	mov    0x0(%rip),%rdx        # <probe_eight+0x8d>
			R_X86_64_PC32	lat_i_state+0xc
	lea    0x0(%rip),%rax        # <probe_eight+0x94>
			R_X86_64_PC32	__rseq_cs+0x7c
	mov    %rax,%fs:0x8(%rdx)
	mov    %fs:(%rdx),%ecx
	imul   0x0(%rip),%rcx        # <probe_eight+0xa4>
			R_X86_64_PC32	lat_i_state+0x4
	add    0x0(%rip),%rcx        # <probe_eight+0xab>
			R_X86_64_PC32	lat_i_state-0x4
	rdtsc
	mov    %fs:0x0,%edi
			R_X86_64_TPOFF32	lat_i_thread+0x8
	cmp    %edi,0x10(%rcx)
	jne    <probe_eight+0x158>
	mov    (%rcx),%rdi
	and    $0xfffffffffffffff8,%rdi
	lea    0x48(%rdi),%rsi
	cmp    %rsi,0x8(%rcx)
	jb     <probe_eight+0x158>
	and    0x0(%rip),%rdi        # <probe_eight+0xda>
			R_X86_64_PC32	lat_i_state+0x14
	mov    %bx,0x1000(%rcx,%rdi,1)
	mov    %eax,0x1002(%rcx,%rdi,1)
	mov    %dx,0x1006(%rcx,%rdi,1)
	mov    %r8,0x1008(%rcx,%rdi,1)
	mov    %r9,0x1010(%rcx,%rdi,1)
	mov    %r10,0x1018(%rcx,%rdi,1)
	mov    %r11,0x1020(%rcx,%rdi,1)
	mov    %rbp,0x1028(%rcx,%rdi,1)
	mov    %r12,0x1030(%rcx,%rdi,1)
	mov    %r13,%rax
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
	nopw   0x0(%rax,%rax,1)
	ret
	nopl   0x0(%rax)
	lea    0x40(%rsp),%rdx
	mov    %ebx,%edi
	mov    $0x40,%esi
	movaps %xmm3,0x40(%rsp)
	movaps %xmm2,0x50(%rsp)
	movaps %xmm1,0x60(%rsp)
	movaps %xmm0,0x70(%rsp)
	call   <probe_eight+0x17d>
			R_X86_64_PLT32	lat_i_emit_words-0x4
	sub    $0xffffffffffffff80,%rsp
	pop    %rbx
	pop    %rbp
	pop    %r12
	pop    %r13
	pop    %r14
	ret
	nopw   0x0(%rax,%rax,1)
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
	call   <probe_eight+0x1c9>
			R_X86_64_PLT32	lat_i_look_words-0x4
	movdqa (%rsp),%xmm0
	movdqa 0x10(%rsp),%xmm1
	test   %eax,%eax
	movdqa 0x20(%rsp),%xmm2
	movdqa 0x30(%rsp),%xmm3
	jne    <probe_eight+0x52>
	jmp    <probe_eight+0x13a>
	nopl   (%rax)

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
	nopw   0x0(%rax,%rax,1)

<lat_patch_tests>:
	mov    $0x0,%eax
			R_X86_64_32	__start_lat_sites
	mov    $0x0,%edi
			R_X86_64_32	lat_i_patch_table_of_object
	movq   %rax,%xmm0
	movhps 0x0(%rip),%xmm0        # <lat_patch_tests+0x16>
			R_X86_64_PC32	.LC0-0x4
	movups %xmm0,0x0(%rip)        # <lat_patch_tests+0x1d>
			R_X86_64_PC32	lat_i_patch_table_of_object+0x4
	jmp    <lat_patch_tests+0x22>
			R_X86_64_PLT32	lat_i_register_sites-0x4

<lat_forget_tests>:
	mov    $0x0,%edi
			R_X86_64_32	lat_i_patch_table_of_object
	jmp    <lat_forget_tests+0xa>
			R_X86_64_PLT32	lat_i_forget_sites-0x4

<__rseq_failure>:
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a0a>
	jmp    <__rseq_failure+0xc>
			R_X86_64_PC32	.text+0xac
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a16>
	jmp    <__rseq_failure+0x18>
			R_X86_64_PC32	.text+0x1ac
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a22>
	jmp    <__rseq_failure+0x24>
			R_X86_64_PC32	.text+0x2bc
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a2e>
	jmp    <__rseq_failure+0x30>
			R_X86_64_PC32	.text+0x3f4
	ud1    0x53053053(%rip),%edi        # <probe_enabled+0x53052a3a>
	jmp    <lat_patch_tests+0x2c>
			R_X86_64_PC32	.text+0x5b4
