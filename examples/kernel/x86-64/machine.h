// SPDX-License-Identifier: Apache-2.0 OR MIT
/* x86-64: everything that depends on registers. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define MACHINE_WATCHED 1u /* a debug exception */

/* Registers of a thread, in the order in which an entry of machine.c and the processor push them. */
struct frame {
    uint64_t r15, r14, r13, r12, r11, r10, r9, r8, rbp, rdi, rsi, rdx, rcx, rbx, rax;
    uint64_t vector, error;
    uint64_t pc, cs, flags, sp, ss;
};

/* Segments of user mode, with its privilege level; interrupts are enabled there. */
#define MACHINE_USER_DATA (4u << 3 | 3u)
#define MACHINE_USER_CODE (5u << 3 | 3u)
#define MACHINE_USER_FLAGS 0x202u

/* Number and arguments of a system call; the result replaces the first argument. */
static inline uint64_t *machine_number(struct frame *frame)
{
    return &frame->rax;
}
static inline uint64_t *machine_first(struct frame *frame)
{
    return &frame->rdi;
}
static inline uint64_t *machine_second(struct frame *frame)
{
    return &frame->rsi;
}

/* Creates a thread that begins with this function; its stack is as after a call. */
static inline void machine_make(struct frame *frame, void (*entry)(uint64_t), uint64_t argument, char *stack)
{
    frame->pc = (uintptr_t)entry;
    frame->cs = MACHINE_USER_CODE;
    frame->flags = MACHINE_USER_FLAGS;
    frame->sp = (uintptr_t)stack - 8u;
    frame->ss = MACHINE_USER_DATA;
    frame->rdi = argument;
}

/* System call, from user mode. */
static inline uint64_t machine_call(uint64_t number, uint64_t first, uint64_t second)
{
    __asm__ volatile("int $0x80" : "+D"(first) : "a"(number), "S"(second) : "memory");
    return first;
}

/* In the kernel GS points to the core, whose third word is its own address. */
static inline struct core *this_core(void)
{
    struct core *core;
    __asm__("movq %%gs:16, %0" : "=r"(core));
    return core;
}

/* The time stamp counter; with -icount shift=0 QEMU counts one instruction per nanosecond. */
static inline uint64_t machine_cycles(void)
{
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

#endif
