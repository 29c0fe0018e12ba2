// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Processes created in ways that the tracer cannot observe.
 *
 * A child that shares memory with its parent (vfork, clone) runs on the parent's thread
 * block, and the kernel has discarded its restartable sequences: a record that it writes could
 * collide with one of another thread on that CPU, and neither would be restarted.
 * So it records nothing until it has memory of its own. If the parent continues concurrently, the two are
 * distinguished by their thread id in the kernel: nothing in memory differs.
 */
#include "real.h"

#include "area.h"
#include "core.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <linux/seccomp.h>

/* Words that the kernel clears when the borrowing child ends or has memory of its own. 0: free. */
static pid_t lent_to[32]; /* claimed and released by the lender (acquire, release: pair of itself) */
static __thread uint32_t lent_words __attribute__((tls_model("initial-exec"))); /* of this thread */
#define PRELOAD_LENT_MOST (0xffu * PRELOAD_LENT)

static int claim_lent(void)
{
    for (int word = 0; word < 32; word++) {
        pid_t nobody = 0;
        /* A cleared word counts as taken until its lender has noticed. */
        if (__atomic_load_n(&lent_to[word], __ATOMIC_RELAXED) == 0 &&
            (lent_words >> word & 1) == 0 &&
            __atomic_compare_exchange_n(&lent_to[word], &nobody, 1, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return word;
    }
    return -1;
}

/* Makes a system call per event, but only while such a child runs: there is no other way to distinguish
 * them. */
int preload_records_though(void)
{
    const int saved_errno = errno;
    if ((preload_quiet & PRELOAD_LOCKED) != 0) {
        lat_i_count_lost(1);
        return 0;
    }
    if ((preload_quiet & (PRELOAD_LENT - 1)) != 0 ||
        (uint32_t)syscall(SYS_gettid) != lat_i_this_thread()) {
        errno = saved_errno;
        return 0;
    }
    errno = saved_errno;
    for (int word = 0; word < 32; word++) {
        if ((lent_words >> word & 1) != 0 &&
            __atomic_load_n(&lent_to[word], __ATOMIC_ACQUIRE) == 0) {
            lent_words &= ~(UINT32_C(1) << word);
            preload_quiet -= PRELOAD_LENT;
        }
    }
    return 1;
}

/* vfork returns twice into the same frame, so the wrapper must leave nothing on the stack and
 * cannot be written in C. The child runs while its parent waits: the count raised
 * before applies to both, and the parent lowers it. */
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
        "popq %rdi\n" /* the child overwrites the stack: save the return address */
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

    /* A thread block of its own (CLONE_SETTLS) starts at zero and needs no handling. */
    const int borrows = (flags & CLONE_VM) != 0 && (flags & CLONE_SETTLS) == 0;
    const int beside = borrows && (flags & CLONE_VFORK) == 0;
    const unsigned more = beside ? PRELOAD_LENT : borrows ? 1 : 0;
    pid_t *ends = child_tid;
    int word = -1;
    if (beside && (preload_quiet & PRELOAD_LENT_MOST) == PRELOAD_LENT_MOST) {
        /* Too many to count: calls of this thread are no longer recorded. */
        preload_quiet++;
        return REAL(clone)(function, stack, flags, argument, parent_tid, tls, child_tid);
    }
    if (beside && (flags & (CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID)) == 0)
        word = claim_lent();
    if (word >= 0) {
        flags |= CLONE_CHILD_CLEARTID;
        ends = &lent_to[word];
        lent_words |= UINT32_C(1) << word;
    }
    preload_quiet += more;
    const int child = REAL(clone)(function, stack, flags, argument, parent_tid, tls, ends);
    if (child < 0 && word >= 0) {
        lent_words &= ~(UINT32_C(1) << word);
        __atomic_store_n(&lent_to[word], 0, __ATOMIC_RELEASE);
    }
    if (borrows && (child < 0 || !beside))
        preload_quiet -= more;
    return child;
}

/* The name is read after the call, when the kernel has already read that memory. */
PRELOAD_EXPORT int prctl(int option, ...)
{
    unsigned long a[4];
    va_list list;
    va_start(list, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(list, unsigned long);
    va_end(list);
    /* Both forbid reading the processor's clock, which each event does. */
    const int locks = (option == PR_SET_SECCOMP && a[0] == SECCOMP_MODE_STRICT) ||
                      (option == PR_SET_TSC && a[0] == PR_TSC_SIGSEGV);
    if (locks)
        preload_quiet |= PRELOAD_LOCKED;
    const int result = REAL(prctl)(option, a[0], a[1], a[2], a[3]);
    if ((locks && result != 0) ||
        (option == PR_SET_TSC && a[0] == PR_TSC_ENABLE && result == 0))
        preload_quiet &= ~PRELOAD_LOCKED;
    if (option == PR_SET_NAME && result == 0 && preload_records()) {
        const int saved_errno = errno;
        lat_i_rename_thread((const char *)a[0]);
        errno = saved_errno;
    }
    return result;
}

/* fork without the handlers that inform the tracer. */
PRELOAD_EXPORT pid_t _Fork(void)
{
    const pid_t child = REAL(_Fork)();
    if (child == 0)
        lat_i_thread_forked();
    return child;
}
