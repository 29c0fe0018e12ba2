// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The restartable sequences of the slow path, AArch64 Linux; contract in core.h. */
#include "core.h"

#if defined(__aarch64__)

#define SEQUENCE_BEGIN                                                                         \
    ".pushsection __rseq_cs, \"aw\"\n"                                                         \
    ".balign 32\n"                                                                             \
    "31: .long 0, 0\n"                                                                         \
    ".quad 32f, 33f - 32f, 34f\n"                                                              \
    ".popsection\n"                                                                            \
    "adrp x9, 31b\n"                                                                           \
    "add x9, x9, :lo12:31b\n"                                                                  \
    "str x9, [%[rseq], #8]\n"                                                                  \
    "32:\n"                                                                                    \
    "ldr w9, [%[rseq], #4]\n"                                                                  \
    "cmp w9, %w[cpu]\n"                                                                        \
    "b.ne %l[failed]\n"                                                                        \
    "ldr x9, [%[ring]]\n"                                                                      \
    "cmp x9, %[expect]\n"                                                                      \
    "b.ne %l[failed]\n"

#define SEQUENCE_END                                                                           \
    "33:\n"                                                                                    \
    ".pushsection __rseq_failure, \"ax\"\n"                                                    \
    ".inst 0xd428bc00\n"                                                                       \
    "34: b %l[failed]\n"                                                                       \
    ".popsection\n"

static char *rseq_area(void)
{
    char *thread_pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(thread_pointer));
    return thread_pointer + lat_i_state.rseq_offset;
}

int lat_i_rseq_stores(struct lat_ring *ring, uint32_t cpu, uint64_t expect,
                      const struct lat_i_store *stores, uint64_t count, uint64_t *target,
                      uint64_t value)
{
    __asm__ goto(SEQUENCE_BEGIN
                 "mov x10, #0\n"
                 "b 36f\n"
                 "35:\n"
                 "add x13, %[stores], x10\n"
                 "ldp x11, x12, [x13]\n"
                 "str x12, [x11]\n"
                 "add x10, x10, #16\n"
                 "36:\n"
                 "cmp x10, %[bytes]\n"
                 "b.lo 35b\n"
                 "stlr %[value], [%[target]]\n" SEQUENCE_END
                 :
                 : [rseq] "r"(rseq_area()), [ring] "r"(ring), [cpu] "r"(cpu), [expect] "r"(expect),
                   [stores] "r"(stores), [bytes] "r"(count * 16), [target] "r"(target),
                   [value] "r"(value)
                 : "x9", "x10", "x11", "x12", "x13", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

int lat_i_rseq_record(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *place,
                      uint64_t id, const struct lat_i_piece *pieces, uint64_t count,
                      uint64_t cursor)
{
    uint64_t bytes = 8;
    for (uint64_t i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    uint64_t *last = place + (bytes + 7) / 8 - 1;
    const struct lat_i_piece *end = pieces + count;

    __asm__ goto(SEQUENCE_BEGIN
                 "str xzr, [%[last]]\n"
                 "mrs x9, cntvct_el0\n"
                 "orr x9, %[id], x9, lsl #16\n"
                 "mov x10, %[place]\n"
                 "str x9, [x10], #8\n"
                 "mov x11, %[pieces]\n"
                 "b 36f\n"
                 "35:\n"
                 "ldp x12, x13, [x11], #16\n"
                 "cbz x13, 36f\n"
                 "37:\n"
                 "ldrb w14, [x12], #1\n"
                 "strb w14, [x10], #1\n"
                 "subs x13, x13, #1\n"
                 "b.ne 37b\n"
                 "36:\n"
                 "cmp x11, %[end]\n"
                 "b.lo 35b\n"
                 "stlr %[cursor], [%[ring]]\n" SEQUENCE_END
                 :
                 : [rseq] "r"(rseq_area()), [ring] "r"(ring), [cpu] "r"(cpu), [expect] "r"(expect),
                   [last] "r"(last), [id] "r"(id), [place] "r"(place), [pieces] "r"(pieces),
                   [end] "r"(end), [cursor] "r"(cursor)
                 : "x9", "x10", "x11", "x12", "x13", "x14", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

int lat_i_rseq_count(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *counter)
{
    __asm__ goto(SEQUENCE_BEGIN
                 "ldr x10, [%[counter]]\n"
                 "add x10, x10, #1\n"
                 "str x10, [%[counter]]\n" SEQUENCE_END
                 :
                 : [rseq] "r"(rseq_area()), [ring] "r"(ring), [cpu] "r"(cpu), [expect] "r"(expect),
                   [counter] "r"(counter)
                 : "x9", "x10", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

#endif
