// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing a record into the current CPU's ring, AArch64 Linux: one restartable
 * sequence, with the same steps as in ring_cpu_x86_64.h, which explains them. Here the
 * commit is a store-release (pair W1), because plain stores may be reordered.
 * Registers: x9 ring, x10 start position, x11 end position, x12 place in the data,
 * x13 time and scratch. No isb before the counter: an event may be stamped a
 * few cycles early, never before the previous record of its own thread.
 *
 * A thread without a writer id leaves before it uses base and stride: they are
 * published in order, but may be read out of order; a thread gets its id only after
 * it has seen both.
 */
#ifndef LAT_RING_CPU_AARCH64_H
#define LAT_RING_CPU_AARCH64_H

#define LAT_I_RSEQ_RESERVE(size)                                                               \
    ".pushsection __rseq_cs, \"aw\"\n"                                                         \
    ".balign 32\n"                                                                             \
    "31: .long 0, 0\n"                                                                         \
    ".quad 32f, 33f - 32f, 34f\n"                                                              \
    ".popsection\n"                                                                            \
    "cbz %w[me], %l[slow]\n"                                                                   \
    "adrp x9, 31b\n"                                                                           \
    "add x9, x9, :lo12:31b\n"                                                                  \
    "str x9, [%[rseq], #8]\n"                                                                  \
    "32:\n"                                                                                    \
    "ldr w9, [%[rseq]]\n"                                                                      \
    "madd x9, x9, %[stride], %[rings]\n"                                                       \
    "ldr x10, [x9]\n"                                                                          \
    "ldr w11, [x9, #16]\n"                                                                     \
    "cmp w11, %w[me]\n"                                                                        \
    "b.ne %l[slow]\n"                                                                          \
    "and x10, x10, #0xfffffffffffffff8\n"                                                      \
    "add x11, x10, #" size "\n"                                                                \
    "ldr x12, [x9, #8]\n"                                                                      \
    "cmp x11, x12\n"                                                                           \
    "b.hi %l[slow]\n"                                                                          \
    "and x12, %[mask], x10\n"                                                                  \
    "add x12, x12, x9\n"                                                                       \
    "add x12, x12, #4096\n"                                                                    \
    "mrs x13, cntvct_el0\n"                                                                    \
    "orr x13, %[id], x13, lsl #16\n"                                                           \
    "str x13, [x12]\n"

/* See ring_cpu_x86_64.h. */
#if defined(__PIC__) && !defined(__PIE__)
#define LAT_I_RSEQ_FORGET "str xzr, [%[rseq], #8]\n"
#else
#define LAT_I_RSEQ_FORGET
#endif

#define LAT_I_RSEQ_COMMIT                                                                      \
    "add x11, x11, %[slack]\n"                                                                 \
    "stlr x11, [x9]\n"                                                                         \
    "33:\n" LAT_I_RSEQ_FORGET                                                                  \
    ".pushsection __rseq_failure, \"ax\"\n"                                                    \
    ".inst 0xd428bc00\n"                                                                       \
    "34: b %l[slow]\n"                                                                         \
    ".popsection\n"

static LAT_INLINE char *lat_i_rseq_area(void)
{
    char *thread_pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(thread_pointer));
    return thread_pointer + lat_i_state.rseq_offset;
}

#define LAT_I_RSEQ_INPUTS                                                                      \
    [rseq] "r"(lat_i_rseq_area()), [stride] "r"(lat_i_state.ring_stride),                      \
        [rings] "r"(lat_i_state.rings), [me] "r"(lat_i_thread.writer), [id] "r"((uint64_t)id), \
        [slack] "r"(slack), [mask] "r"(lat_i_state.mask)
#define LAT_I_RSEQ_CLOBBERS "x9", "x10", "x11", "x12", "x13", "memory", "cc"

#define LAT_I_NO_STORES ""
/* offset counts from the ring's control page, as on x86-64; here x12 already includes it */
#define LAT_I_STORE_R(n, offset) "str %[w" #n "], [x12, #(" #offset " - 4096)]\n"
#define LAT_I_WORD_R(n) , [w##n] "r"(w##n)
#define LAT_I_STORE_M(n, offset) "ldr x13, %[w" #n "]\n str x13, [x12, #(" #offset " - 4096)]\n"
#define LAT_I_WORD_M(n) , [w##n] "m"(w##n)
/* From an array: more than eight words do not fit into the operands of one asm. */
#define LAT_I_FROM_ARRAY 1
#define LAT_I_WORD_P(n)
#define LAT_I_STORE_P(n, offset)                                                               \
    "ldr x13, [%[words], #8*" #n "]\n str x13, [x12, #(" #offset " - 4096)]\n"
#define LAT_I_WORDS_P , [words] "r"(words)

#define LAT_I_RESERVE_STORE_COMMIT(size, stores, words)                                        \
    __asm__ goto(LAT_I_RSEQ_RESERVE(size) stores LAT_I_RSEQ_COMMIT                             \
                 :                                                                             \
                 : LAT_I_RSEQ_INPUTS words                                                     \
                 : LAT_I_RSEQ_CLOBBERS                                                         \
                 : slow);                                                                      \
    return 1;                                                                                  \
    slow:
#define LAT_I_RESERVE_STORE_COMMIT_ANY LAT_I_RESERVE_STORE_COMMIT

#endif
