// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Processes that begin in ways of which the tracer is not told.
 *
 * A child that shares memory with its parent (vfork, clone) runs on the parent's thread
 * block, and the kernel has forgotten its restartable sequences: a record that it writes could
 * collide with one that another thread writes on that CPU, and nobody would restart either.
 * So it records nothing until it has memory of its own.
 */
#include "real.h"

#include "core.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/types.h>

/* vfork returns twice into the same frame, so the wrapper may leave nothing on the stack and
 * can not be written in C. The child runs while its parent waits: the count that was
 * raised before is the parent's and the child's, and the parent lowers it. */
PRELOAD_HIDDEN unsigned *preload_vfork_begins(void);
unsigned *preload_vfork_begins(void)
{
    preload_quiet++;
    return &preload_quiet;
}
PRELOAD_HIDDEN int preload_vfork_failed(int error);
int preload_vfork_failed(int error)
{
    errno = error;
    return -1;
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "call preload_vfork_begins\n"
        "movq %rax, %rsi\n" /* kept by the system call, in each process its own */
        "addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "popq %rdi\n" /* the child overwrites the stack: take the return address aside */
        ".cfi_adjust_cfa_offset -8\n"
        ".cfi_register %rip, %rdi\n"
        "movl $58, %eax\n" /* SYS_vfork */
        "syscall\n"
        "pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        ".cfi_rel_offset %rip, 0\n"
        "testl %eax, %eax\n"
        "jz 1f\n"
        "decl (%rsi)\n"
        "cmpl $-4095, %eax\n"
        "jae 2f\n"
        "1: ret\n"
        "2: negl %eax\n"
        "movl %eax, %edi\n"
        "jmp preload_vfork_failed\n"
        ".cfi_endproc\n"
        ".size vfork, . - vfork\n"
        ".globl __vfork\n"
        ".set __vfork, vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork, %function\n"
        "vfork:\n"
        ".cfi_startproc\n"
        "stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        "bl preload_vfork_begins\n"
        "mov x9, x0\n"
        "ldp x29, x30, [sp], #16\n"
        ".cfi_def_cfa_offset 0\n"
        "mov x0, #0x4111\n" /* CLONE_VM | CLONE_VFORK | SIGCHLD */
        "mov x1, #0\n"      /* the same stack */
        "mov x8, #220\n"    /* SYS_clone */
        "svc #0\n"
        "cbz w0, 1f\n"
        "ldr w10, [x9]\n"
        "sub w10, w10, #1\n"
        "str w10, [x9]\n"
        "cmn x0, #4095\n"
        "b.hs 2f\n"
        "1: ret\n"
        "2: neg w0, w0\n"
        "b preload_vfork_failed\n"
        ".cfi_endproc\n"
        ".size vfork, . - vfork\n"
        ".globl __vfork\n"
        ".set __vfork, vfork\n");
#endif

PRELOAD_EXPORT int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    pid_t *const parent_tid = va_arg(list, pid_t *);
    void *const tls = va_arg(list, void *);
    pid_t *const child_tid = va_arg(list, pid_t *);
    va_end(list);

    /* With a thread block of its own (CLONE_SETTLS) it is not our concern: it starts at zero. */
    const int borrows = (flags & CLONE_VM) != 0 && (flags & CLONE_SETTLS) == 0;
    if (borrows)
        preload_quiet++;
    const int child = REAL(clone)(function, stack, flags, argument, parent_tid, tls, child_tid);
    /* Without CLONE_VFORK the child lives on beside us, and both stay quiet. */
    if (borrows && (child < 0 || (flags & CLONE_VFORK) != 0))
        preload_quiet--;
    return child;
}

/* fork without the handlers by which the tracer learns of it. */
PRELOAD_EXPORT pid_t _Fork(void)
{
    const pid_t child = REAL(_Fork)();
    if (child == 0)
        lat_i_thread_forked();
    return child;
}
