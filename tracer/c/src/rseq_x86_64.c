// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The restartable sequences of the slow path, x86-64 Linux; contract in core.h.
 * How such a sequence works: include/lat/ring_cpu_x86_64.h. */
#include "core.h"

#if defined(__x86_64__)

#define SEQUENCE_BEGIN                                                                         \
    ".pushsection __rseq_cs, \"aw\"\n"                                                         \
    ".balign 32\n"                                                                             \
    "31: .long 0, 0\n"                                                                         \
    ".quad 32f, 33f - 32f, 34f\n"                                                              \
    ".popsection\n"                                                                            \
    "leaq 31b(%%rip), %%rax\n"                                                                 \
    "movq %%rax, %%fs:8(%[ro])\n"                                                              \
    "32:\n"                                                                                    \
    "cmpl %[cpu], %%fs:4(%[ro])\n"                                                             \
    "jne %l[failed]\n"                                                                         \
    "cmpq %[expect], (%[ring])\n"                                                              \
    "jne %l[failed]\n"

#define SEQUENCE_END                                                                           \
    "33:\n"                                                                                    \
    ".pushsection __rseq_failure, \"ax\"\n"                                                    \
    ".byte 0x0f, 0xb9, 0x3d\n"                                                                 \
    ".long 0x53053053\n"                                                                       \
    "34: jmp %l[failed]\n"                                                                     \
    ".popsection\n"

int lat_i_rseq_stores(struct lat_ring *ring, uint32_t cpu, uint64_t expect,
                      const struct lat_i_store *stores, uint64_t count, uint64_t *target,
                      uint64_t value)
{
    __asm__ goto(SEQUENCE_BEGIN
                 "xorl %%edx, %%edx\n"
                 "jmp 36f\n"
                 "35:\n"
                 "movq (%[stores], %%rdx), %%rax\n"
                 "movq 8(%[stores], %%rdx), %%rcx\n"
                 "movq %%rcx, (%%rax)\n"
                 "addq $16, %%rdx\n"
                 "36:\n"
                 "cmpq %[bytes], %%rdx\n"
                 "jb 35b\n"
                 "movq %[value], (%[target])\n" SEQUENCE_END
                 :
                 : [ro] "r"(lat_i_state.rseq_offset), [ring] "r"(ring), [cpu] "r"(cpu),
                   [expect] "r"(expect), [stores] "r"(stores), [bytes] "r"(count * 16),
                   [target] "r"(target), [value] "r"(value)
                 : "rax", "rcx", "rdx", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

int lat_i_rseq_record(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *place,
                      uint64_t id, const struct lat_i_piece *pieces, uint64_t count,
                      uint64_t cursor)
{
    /* Rounded-up end of the record: its last word is cleared before the pieces
     * are copied over it, so that the slack never shows older bytes. */
    uint64_t bytes = 8;
    for (uint64_t i = 0; i < count; i++)
        bytes += pieces[i].bytes;
    uint64_t *last = place + (bytes + 7) / 8 - 1;
    const struct lat_i_piece *end = pieces + count;

    __asm__ goto(SEQUENCE_BEGIN
                 "movq $0, (%[last])\n"
                 "rdtsc\n"
                 "shlq $32, %%rdx\n"
                 "orq %%rdx, %%rax\n"
                 "shlq $16, %%rax\n"
                 "orq %[id], %%rax\n"
                 "movq %[place], %%rdi\n"
                 "movq %%rax, (%%rdi)\n"
                 "addq $8, %%rdi\n"
                 "movq %[pieces], %%rdx\n"
                 "jmp 36f\n"
                 "35:\n"
                 "movq (%%rdx), %%rsi\n"
                 "movq 8(%%rdx), %%rcx\n"
                 "rep movsb\n"
                 "addq $16, %%rdx\n"
                 "36:\n"
                 "cmpq %[end], %%rdx\n"
                 "jb 35b\n"
                 "movq %[cursor], (%[ring])\n" SEQUENCE_END
                 :
                 : [ro] "r"(lat_i_state.rseq_offset), [ring] "r"(ring), [cpu] "r"(cpu),
                   [expect] "r"(expect), [last] "r"(last), [id] "rm"(id), [place] "rm"(place),
                   [pieces] "rm"(pieces), [end] "rm"(end), [cursor] "r"(cursor)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

#endif
