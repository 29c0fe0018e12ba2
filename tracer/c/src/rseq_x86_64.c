// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The restartable sequences of the slow path, x86-64 Linux; contract in core.h.
 * include/lat/ring_cpu_x86_64.h explains how such a sequence works. */
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
                 "addq $16, %%rdx\n"
                 /* `rep movsb` takes about 30 cycles to start: only for long pieces. Otherwise copies in
                  * steps, the last of which ends with the piece and overlaps the previous one. */
                 "cmpq $16, %%rcx\n"
                 "jb 41f\n"
                 "cmpq $512, %%rcx\n"
                 "jae 46f\n"
                 "40:\n"
                 "movdqu (%%rsi), %%xmm0\n"
                 "movdqu %%xmm0, (%%rdi)\n"
                 "addq $16, %%rsi\n"
                 "addq $16, %%rdi\n"
                 "subq $16, %%rcx\n"
                 "cmpq $16, %%rcx\n"
                 "jae 40b\n"
                 "movdqu -16(%%rsi, %%rcx), %%xmm0\n"
                 "movdqu %%xmm0, -16(%%rdi, %%rcx)\n"
                 "jmp 45f\n"
                 "41:\n"
                 "cmpq $8, %%rcx\n"
                 "jb 42f\n"
                 "movq (%%rsi), %%rax\n"
                 "movq -8(%%rsi, %%rcx), %%rsi\n"
                 "movq %%rax, (%%rdi)\n"
                 "movq %%rsi, -8(%%rdi, %%rcx)\n"
                 "jmp 45f\n"
                 "42:\n"
                 "cmpq $4, %%rcx\n"
                 "jb 43f\n"
                 "movl (%%rsi), %%eax\n"
                 "movl -4(%%rsi, %%rcx), %%esi\n"
                 "movl %%eax, (%%rdi)\n"
                 "movl %%esi, -4(%%rdi, %%rcx)\n"
                 "jmp 45f\n"
                 "43:\n"
                 "testq %%rcx, %%rcx\n"
                 "jz 36f\n"
                 "44:\n"
                 "movb -1(%%rsi, %%rcx), %%al\n"
                 "movb %%al, -1(%%rdi, %%rcx)\n"
                 "cmpq $1, %%rcx\n"
                 "je 45f\n"
                 "movzwl (%%rsi), %%eax\n"
                 "movw %%ax, (%%rdi)\n"
                 "45:\n"
                 "addq %%rcx, %%rdi\n"
                 "jmp 36f\n"
                 "46:\n"
                 "rep movsb\n"
                 "36:\n"
                 "cmpq %[end], %%rdx\n"
                 "jb 35b\n"
                 "movq %[cursor], (%[ring])\n" SEQUENCE_END
                 :
                 : [ro] "r"(lat_i_state.rseq_offset), [ring] "r"(ring), [cpu] "r"(cpu),
                   [expect] "r"(expect), [last] "r"(last), [id] "rm"(id), [place] "rm"(place),
                   [pieces] "rm"(pieces), [end] "rm"(end), [cursor] "r"(cursor)
                 : "rax", "rcx", "rdx", "rsi", "rdi", "xmm0", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

int lat_i_rseq_count(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *counter)
{
    __asm__ goto(SEQUENCE_BEGIN
                 "incq (%[counter])\n" SEQUENCE_END
                 :
                 : [ro] "r"(lat_i_state.rseq_offset), [ring] "r"(ring), [cpu] "r"(cpu),
                   [expect] "r"(expect), [counter] "r"(counter)
                 : "rax", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

/* Registers: r9 ring, r10 cursor and then the sequence number of the packet that must be free for the next
 * one. packet_room is packet_bytes less the tail of 8, and so also the mask of positions within a packet. A
 * ring that was never written has room in its packet. The index is valid because the thread has a writer id,
 * as in ring_cpu_x86_64.h. */
#if defined(__PIC__) && !defined(__PIE__)
#define LOST_FORGET "movq %[ro], %%r10\n movq $0, %%fs:8(%%r10)\n" /* as LAT_I_RSEQ_FORGET */
#else
#define LOST_FORGET
#endif
_Static_assert(LAT_PACKET_TAIL_BYTES == LAT_CURSOR_SLACK_MASK + 1, "one number is both");
static LAT_INLINE int is_lost(uint64_t record_bytes)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
                 ".balign 32\n"
                 "31: .long 0, 0\n"
                 ".quad 32f, 33f - 32f, 34f\n"
                 ".popsection\n"
                 "movq %[ro], %%r10\n"
                 "leaq 31b(%%rip), %%rax\n"
                 "movq %%rax, %%fs:8(%%r10)\n"
                 "32:\n"
                 "movl %%fs:(%%r10), %%r9d\n"
                 "imulq %[stride], %%r9\n"
                 "addq %[rings], %%r9\n"
                 "movq (%%r9), %%r10\n"
                 "movq %[room], %%rax\n"
                 "andq %%r10, %%rax\n"
                 "addq %[bytes], %%rax\n"
                 "cmpq %[room], %%rax\n"
                 "jbe %l[failed]\n"
                 "movl %[shift], %%ecx\n"
                 "shrq %%cl, %%r10\n"
                 "subq %[packets], %%r10\n"
                 "incq %%r10\n"
                 "cmpq 64(%%r9), %%r10\n" /* consumed */
                 "jl %l[failed]\n"
                 "incq 32(%%r9)\n" /* lost_full */
                 "33:\n" LOST_FORGET
                 ".pushsection __rseq_failure, \"ax\"\n"
                 ".byte 0x0f, 0xb9, 0x3d\n"
                 ".long 0x53053053\n"
                 "34: jmp %l[failed]\n"
                 ".popsection\n"
                 :
                 : [ro] "m"(lat_i_state.rseq_offset), [stride] "m"(lat_i_area.ring_stride),
                   [rings] "m"(lat_i_state.rings),
                   [room] "r"(lat_i_area.packet_room),
                   [bytes] "r"(record_bytes), [shift] "m"(lat_i_area.packet_shift),
                   [packets] "m"(lat_i_area.packets_per_ring)
                 : "rax", "rcx", "r9", "r10", "memory", "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

int lat_i_rseq_lost(uint64_t record_bytes)
{
    return is_lost(record_bytes);
}

void lat_i_rseq_words_or_lost(uint32_t id, uint32_t payload_bytes, const uint64_t *words)
{
    if (!is_lost(((uint64_t)payload_bytes + LAT_RECORD_HEADER_BYTES + 7u) & ~UINT64_C(7)))
        lat_i_emit_words_slowly(id, payload_bytes, words);
}

/*
 * Like the common case of ring_cpu_x86_64.h, with a string whose end is searched while it is
 * copied, 32 bytes at a time: the recorded bytes are those that were searched, even if another thread changes
 * the string meanwhile. Up to 31 bytes may be read past its end, but not past its page.
 * At most TEXT_ROOM bytes are written, of which the record keeps its own part.
 *
 * Registers: r9 ring, r10 start position, r11 place of the record and then of the string, rax/rdx
 * time, then scratch.
 */
#define TEXT_WORDS (LAT_I_TEXT_PREFIX / 8u)
#define TEXT_ROOM (8u + 8u * TEXT_WORDS + 64u + 16u) /* header, prefix, string, zeros */
#if defined(__PIC__) && !defined(__PIE__)
#define TEXT_FORGET "movq %[ro], %%rdx\n movq $0, %%fs:8(%%rdx)\n" /* as LAT_I_RSEQ_FORGET */
#else
#define TEXT_FORGET
#endif
/* 32 bytes of the string; if its end is among them, eax gets one bit for each NUL. */
#define TEXT_CHUNK(offset, second)                                                             \
    "movdqu " #offset "(%[text]), %%xmm0\n"                                                    \
    "movdqu " #second "(%[text]), %%xmm2\n"                                                    \
    "movdqu %%xmm0, " #offset "(%%r11)\n"                                                      \
    "movdqu %%xmm2, " #second "(%%r11)\n"                                                      \
    "pcmpeqb %%xmm1, %%xmm0\n"                                                                 \
    "pcmpeqb %%xmm1, %%xmm2\n"                                                                 \
    "pmovmskb %%xmm0, %%eax\n"                                                                 \
    "pmovmskb %%xmm2, %%edx\n"                                                                 \
    "shll $16, %%edx\n"                                                                        \
    "orl %%edx, %%eax\n"

int lat_i_emit_text(uint32_t id, uint8_t *prefix, uint32_t prefix_bytes, const char *text)
{
    /* NULL is left to the caller, together with strings at the start of a page: one comparison. */
    if ((((uintptr_t)text - 1u) & 4095u) > 4095u - 64u)
        return 0;
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n"
                 ".balign 32\n"
                 "31: .long 0, 0\n"
                 ".quad 32f, 33f - 32f, 34f\n"
                 ".popsection\n"
                 "pxor %%xmm1, %%xmm1\n"
                 "movq %[ro], %%rdx\n"
                 "leaq 31b(%%rip), %%rax\n"
                 "movq %%rax, %%fs:8(%%rdx)\n"
                 "32:\n"
                 "movl %%fs:(%%rdx), %%r9d\n"
                 "imulq %[stride], %%r9\n"
                 "addq %[rings], %%r9\n"
                 "rdtsc\n"
                 "movl %[writer], %%r10d\n"
                 "cmpl %%r10d, 16(%%r9)\n"
                 "jne %l[failed]\n"
                 "movq (%%r9), %%r10\n"
                 "andq $-8, %%r10\n"
                 "leaq %c[room](%%r10), %%r11\n"
                 "cmpq %%r11, 8(%%r9)\n"
                 "jb %l[failed]\n"
                 "movq %[mask], %%r11\n"
                 "andq %%r10, %%r11\n"
                 /* Another process can write the cursor: the whole record must lie in this ring. */
                 "addq $%c[room] - 8, %%r11\n"
                 "cmpq %[mask], %%r11\n"
                 "ja %l[failed]\n"
                 "leaq 4096 - %c[room] + 8(%%r9, %%r11), %%r11\n"
                 "movw %w[id], (%%r11)\n"
                 "movl %%eax, 2(%%r11)\n"
                 "movw %%dx, 6(%%r11)\n"
                 "leaq 7(%[bytes]), %%rdx\n"
                 "shrq $3, %%rdx\n"
                 "jz 36f\n"
                 "35:\n"
                 "movq -8(%[prefix], %%rdx, 8), %%rax\n"
                 "movq %%rax, (%%r11, %%rdx, 8)\n"
                 "decq %%rdx\n"
                 "jnz 35b\n"
                 "36:\n"
                 "leaq 8(%%r11, %[bytes]), %%r11\n"
                 TEXT_CHUNK(0, 16)
                 "jnz 37f\n"
                 TEXT_CHUNK(32, 48)
                 "jz %l[failed]\n"
                 "bsfl %%eax, %%edx\n"
                 "addl $32, %%edx\n"
                 "jmp 38f\n"
                 "37:\n"
                 "bsfl %%eax, %%edx\n"
                 "38:\n"
                 /* Bytes read past the string are the program's own: zeros replace them, in the slack and
                  * after it. */
                 "movdqu %%xmm1, 1(%%r11, %%rdx)\n"
                 "leaq 9(%%rdx, %[bytes]), %%rax\n"
                 "leaq 7(%%rax), %%rdx\n"
                 "andq $-8, %%rdx\n"
                 "leaq (%%r10, %%rdx, 2), %%r10\n"
                 "subq %%rax, %%r10\n" /* start, rounded length, and slack */
                 "movq %%r10, (%%r9)\n"
                 "33:\n" TEXT_FORGET
                 ".pushsection __rseq_failure, \"ax\"\n"
                 ".byte 0x0f, 0xb9, 0x3d\n"
                 ".long 0x53053053\n"
                 "34: jmp %l[failed]\n"
                 ".popsection\n"
                 :
                 : [ro] "m"(lat_i_state.rseq_offset), [stride] "m"(lat_i_state.ring_stride),
                   [rings] "m"(lat_i_state.rings), [mask] "m"(lat_i_state.mask),
                   [writer] "m"(lat_i_thread.writer), [id] "r"(id), [prefix] "r"(prefix),
                   [bytes] "r"((uint64_t)prefix_bytes), [text] "r"(text), [room] "i"(TEXT_ROOM)
                 : "rax", "rdx", "r9", "r10", "r11", "xmm0", "xmm1", "xmm2", "memory",
                   "cc"
                 : failed);
    return 1;
failed:
    return 0;
}

#endif
