// SPDX-License-Identifier: Apache-2.0 OR MIT
/* RISC-V, 64 bits: everything that depends on registers. */
#ifndef MACHINE_H
#define MACHINE_H

#include <stdint.h>

#define MACHINE_WATCHED 3u /* a breakpoint */

/* Registers of a thread: machine.c depends on the offsets. */
struct frame {
    uint64_t pc;
    uint64_t x[32];
};
enum { SP = 2, A0 = 10, A1 = 11, A7 = 17 };

/* Number and arguments of a system call; the result replaces the first argument. */
static inline uint64_t *machine_number(struct frame *frame)
{
    return &frame->x[A7];
}
static inline uint64_t *machine_first(struct frame *frame)
{
    return &frame->x[A0];
}
static inline uint64_t *machine_second(struct frame *frame)
{
    return &frame->x[A1];
}

/* Creates a thread that begins with this function. */
static inline void machine_make(struct frame *frame, void (*entry)(uint64_t), uint64_t argument, char *stack)
{
    frame->pc = (uintptr_t)entry;
    frame->x[SP] = (uintptr_t)stack;
    frame->x[A0] = argument;
}

/* System call, from user mode. */
static inline uint64_t machine_call(uint64_t number, uint64_t first, uint64_t second)
{
    register uint64_t a0 __asm__("a0") = first;
    register uint64_t a1 __asm__("a1") = second;
    register uint64_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a7) : "memory");
    return a0;
}

static inline struct core *this_core(void)
{
    struct core *core;
    __asm__("mv %0, tp" : "=r"(core));
    return core;
}

/* Instructions since the start; with -icount shift=0 QEMU counts one per nanosecond. */
static inline uint64_t machine_cycles(void)
{
    uint64_t now;
    __asm__ volatile("csrr %0, mcycle" : "=r"(now) : : "memory");
    return now;
}

#endif
