// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing a record into the current CPU's ring, x86-64 Linux: one restartable
 * sequence (rseq), spec/ring-abi.md §4.
 *
 * Between labels 32 and 33 the kernel guarantees: if this thread is preempted,
 * migrated or interrupted by a signal there, it continues at 34 instead. So up to
 * the last store no other thread has run on this CPU since the sequence began, and
 * that store alone publishes. The time stamp is read inside, so it is later than
 * every record already in the ring. x86 keeps stores in order: a plain store
 * is a release (pair W1).
 *
 * Registers: rcx ring, rdi start position and then place in the data, rsi end position with its
 * slack, rax/rdx time, rdx before that the thread's struct rseq relative to fs. fs:0(rdx) is
 * rseq.cpu_id_start, always a valid index; a thread without rseq never has a writer id, so the
 * first test rejects it.
 *
 * The clock is read as soon as the ring is known. On some processors rdtsc waits for what
 * precedes it and overlaps with what follows: read after the checks, whose loads depend on a
 * multiplication, an event costs 1.20 clock reads, read ahead of them 1.13 (bench/METHODOLOGY.md).
 *
 * The number of instructions matters: rdtsc does not overlap with other work in the front end,
 * so every six instructions cost a cycle whatever they are (bench/METHODOLOGY.md). Hence
 * the header is written as id, low and high part of the time: three stores, where joining them
 * would take four instructions and a store. For the same reason the end is compared including its slack:
 * a record that fits to the byte then takes the slow path, which finds that it fits.
 *
 * The mask is this process's own: even a cursor written by another process stays within the ring.
 */
#ifndef LAT_RING_CPU_X86_64_H
#define LAT_RING_CPU_X86_64_H

/* lat_i_thread.writer; for the condition see LAT_I_TLS. */
#ifdef LAT_I_TLS_KNOWN
#define LAT_I_LOAD_WRITER(r32, r64) "movl %%fs:lat_i_thread@tpoff+8, " r32 "\n"
#else
#define LAT_I_LOAD_WRITER(r32, r64)                                                            \
    "movq lat_i_thread@gottpoff(%%rip), " r64 "\n"                                             \
    "movl %%fs:8(" r64 "), " r32 "\n"
#endif

/* distance: from the start of the record to its end, as text */
#define LAT_I_RSEQ_RESERVE(distance)                                                           \
    ".pushsection __rseq_cs, \"aw?\"\n"                                                        \
    ".balign 32\n"                                                                             \
    "31: .long 0, 0\n"                                                                         \
    ".quad 32f, 33f - 32f, 34f\n"                                                              \
    ".popsection\n"                                                                            \
    "movq %[ro], %%rdx\n"                                                                      \
    "leaq 31b(%%rip), %%rax\n"                                                                 \
    "movq %%rax, %%fs:8(%%rdx)\n"                                                              \
    "32:\n"                                                                                    \
    "movl %%fs:(%%rdx), %%ecx\n"                                                               \
    "imulq %[stride], %%rcx\n"                                                                 \
    "addq %[rings], %%rcx\n"                                                                   \
    "rdtsc\n"                                                                                  \
    LAT_I_LOAD_WRITER("%%edi", "%%rdi")                                                        \
    "cmpl %%edi, 16(%%rcx)\n"                                                                  \
    "jne %l[slow]\n"                                                                           \
    "movq (%%rcx), %%rdi\n"                                                                    \
    "andq $-8, %%rdi\n"                                                                        \
    "leaq " distance "(%%rdi), %%rsi\n"                                                        \
    "cmpq %%rsi, 8(%%rcx)\n"                                                                   \
    "jb %l[slow]\n"                                                                            \
    "andq %[mask], %%rdi\n"                                                                    \
    "movw %w[id], 4096(%%rcx, %%rdi)\n"                                                        \
    "movl %%eax, 4098(%%rcx, %%rdi)\n"                                                         \
    "movw %%dx, 4102(%%rcx, %%rdi)\n"

/* In an object that can be unloaded, the descriptor must be cleared from the thread: at the
 * thread's next interruption, possibly hours later, the kernel would read unmapped memory
 * and kill the program. The slow path clears it too. */
#if defined(__PIC__) && !defined(__PIE__)
#define LAT_I_RSEQ_FORGET "movq %[ro], %%rdx\n movq $0, %%fs:8(%%rdx)\n"
#else
#define LAT_I_RSEQ_FORGET
#endif

#define LAT_I_RSEQ_COMMIT                                                                      \
    "movq %%rsi, (%%rcx)\n"                                                                    \
    "33:\n" LAT_I_RSEQ_FORGET                                                                  \
    /* The signature that the kernel checks before it jumps to an abort handler, */           \
    /* hidden in an instruction that traps (ud1) so that it can not be run into. */           \
    ".pushsection __rseq_failure, \"ax?\"\n"                                                   \
    ".byte 0x0f, 0xb9, 0x3d\n"                                                                 \
    ".long 0x53053053\n"                                                                       \
    "34: jmp %l[slow]\n"                                                                       \
    ".popsection\n"
#define LAT_I_RSEQ_INPUTS                                                                      \
    [ro] "m"(lat_i_state.rseq_offset), [stride] "m"(lat_i_state.ring_stride),                  \
        [rings] "m"(lat_i_state.rings), [mask] "m"(lat_i_state.mask), [id] "r"(id)
#define LAT_I_RSEQ_CLOBBERS "rax", "rcx", "rdx", "rdi", "rsi", "memory", "cc"

#define LAT_I_NO_STORES ""
/* Any operand, through rax, which is free once the header is written;
 * offset: 4104 + 8 * number. */
#define LAT_I_STORE_M(n, offset) "movq %[w" #n "], %%rax\n movq %%rax, " #offset "(%%rcx, %%rdi)\n"
#define LAT_I_WORD_M(n) , [w##n] "rme"(w##n)
#define LAT_I_STORE_P(n, offset) LAT_I_STORE_M(n, offset)
#define LAT_I_WORD_P(n) LAT_I_WORD_M(n)
#define LAT_I_WORDS_P
#ifdef __OPTIMIZE__
/* A register or an immediate. */
#define LAT_I_STORE_R(n, offset) "movq %[w" #n "], " #offset "(%%rcx, %%rdi)\n"
#define LAT_I_WORD_R(n) , [w##n] "re"(w##n)
#else
/* Here there would not always be enough registers. */
#define LAT_I_STORE_R(n, offset) LAT_I_STORE_M(n, offset)
#define LAT_I_WORD_R(n) LAT_I_WORD_M(n)
#endif

/* Body of a write function. `size`: record bytes rounded up, as text. Returns 1 on success,
 * continues at `slow` otherwise. */
#define LAT_I_RESERVE_STORE_COMMIT_ANY(size, stores, words)                                    \
    __asm__ goto(LAT_I_RSEQ_RESERVE(size) stores "addq %[slack], %%rsi\n" LAT_I_RSEQ_COMMIT    \
                 :                                                                             \
                 : LAT_I_RSEQ_INPUTS, [slack] "rme"(slack)words                                \
                 : LAT_I_RSEQ_CLOBBERS                                                         \
                 : slow);                                                                      \
    return 1;                                                                                  \
    slow:
#ifdef __OPTIMIZE__
/* `slack` is a compile-time constant: one instruction less. */
#define LAT_I_RESERVE_STORE_COMMIT(size, stores, words)                                        \
    __asm__ goto(LAT_I_RSEQ_RESERVE("%c[distance]") stores LAT_I_RSEQ_COMMIT                   \
                 :                                                                             \
                 : LAT_I_RSEQ_INPUTS, [distance] "i"(LAT_I_SIZE(size) + slack)words            \
                 : LAT_I_RSEQ_CLOBBERS                                                         \
                 : slow);                                                                      \
    return 1;                                                                                  \
    slow:
#else
#define LAT_I_RESERVE_STORE_COMMIT LAT_I_RESERVE_STORE_COMMIT_ANY
#endif

#endif
