// SPDX-License-Identifier: Apache-2.0 OR MIT
/* QEMU's virt for RISC-V: reset of all harts, serial line (16550), the timer of each hart (CLINT). */
#include "board.h"
#include "lat_port.h"

#define UART 0x10000000ul
#define TIME_COMPARE(hart) (0x02004000ul + 8ul * (hart))
#define STACK_BYTES 4096

#ifndef AREA_BYTES
#define AREA_BYTES 65536u
#endif
__attribute__((section(".noinit"))) uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;

__attribute__((section(".noinit"), used, aligned(16))) char board_stacks[STACK_BYTES * LAT_PORT_CORES];
/* Set by the first hart when memory is initialised; the others wait for it. */
volatile uint32_t board_is_ready;

void board_put(char c)
{
    while ((*(volatile uint8_t *)(UART + 5u) & 0x20u) == 0) {
    }
    *(volatile char *)UART = c;
}

/* Weak: a program may send its packets by other means. */
__attribute__((weak)) void lat_port_put(const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        board_put(((const char *)bytes)[i]);
}

_Noreturn void board_stop(void)
{
    __asm__ volatile("csrci mstatus, 8");
    for (;;)
        __asm__ volatile("wfi");
}

static void compare(uint64_t time)
{
    volatile uint32_t *const words = (volatile uint32_t *)TIME_COMPARE(lat_port_core());
    /* Between the two halves the value is never less than both old and new [Privileged ISA, 3.2.1]. */
    words[1] = 0xffffffffu;
    words[0] = (uint32_t)time;
    words[1] = (uint32_t)(time >> 32);
}

static uint64_t time_now(void)
{
    const volatile uint32_t *const words = (const volatile uint32_t *)0x0200bff8ul;
    uint32_t high, low;
    do {
        high = words[1];
        low = words[0];
    } while (words[1] != high);
    return (uint64_t)high << 32 | low;
}

/* One timer per hart: level 1 is the same one again inside its own handler, which allows it. */
void board_arm(unsigned level, uint32_t ticks)
{
    /* Starts at a tick, so that the number of instructions until the next ticks is always the same. */
    const uint32_t before = (uint32_t)time_now();
    while ((uint32_t)time_now() == before) {
    }
    compare(time_now() + ticks);
    if (level != 0)
        __asm__ volatile("csrsi mstatus, 8");
}

__attribute__((naked)) void board_pause(__attribute__((unused)) uint32_t count)
{
    __asm__ volatile("la t0, 1f\n"
                     "slli a0, a0, 1\n"
                     "sub t0, t0, a0\n"
                     "jr t0\n"
                     ".rept 255\n"
                     "c.nop\n"
                     ".endr\n"
                     "1: ret\n");
}

static void put_text(const char *text)
{
    while (*text != '\0')
        board_put(*text++);
}

/* A trap into machine mode has saved pc and mstatus in registers, and has masked interrupts. */
__attribute__((interrupt("machine"), aligned(4), used)) static void trap(void)
{
    unsigned long cause, pc, status, context;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    __asm__ volatile("csrr %0, mepc" : "=r"(pc));
    __asm__ volatile("csrr %0, mstatus" : "=r"(status));
    __asm__ volatile("csrr %0, mscratch" : "=r"(context));
    if (cause != ((1ul << (__riscv_xlen - 1)) | 7ul)) { /* machine timer interrupt */
        put_text("fault\n");
        board_stop();
    }
    compare(UINT64_MAX);
    __asm__ volatile("csrw mscratch, %0" : : "r"(context + 0x100ul) : "memory");
    on_timer((unsigned)(context >> 8), pc);
    __asm__ volatile("csrci mstatus, 8\n\t"
                     "csrw mscratch, %0\n\t"
                     "csrw mepc, %1\n\t"
                     "csrw mstatus, %2"
                     :
                     : "r"(context), "r"(pc), "r"(status)
                     : "memory");
}

__attribute__((used)) static _Noreturn void start(unsigned long hart)
{
    extern uint32_t board_bss[], board_bss_end[];
    __asm__ volatile("csrw mscratch, %0" : : "r"(hart + 1ul));
    __asm__ volatile("csrw mtvec, %0" : : "r"(trap));
    if (hart == 0) {
        for (uint32_t *to = board_bss; to < board_bss_end;)
            *to++ = 0;
    }
    compare(UINT64_MAX);
    __asm__ volatile("csrs mie, %0" : : "r"(1ul << 7)); /* timer */
    __asm__ volatile("csrsi mstatus, 8");
    if (hart == 0)
        program();
    while (__atomic_load_n(&board_is_ready, __ATOMIC_ACQUIRE) == 0) {
    }
    program_other((uint32_t)hart);
}

__attribute__((naked, section(".reset"), used)) void board_reset(void)
{
    __asm__ volatile("csrr a0, mhartid\n"
                     "li t0, %0\n"
                     "bgeu a0, t0, 2f\n" /* a hart beyond LAT_PORT_CORES */
                     "la sp, board_stacks\n"
                     "li t0, %1\n"
                     "addi t1, a0, 1\n"
                     "1: add sp, sp, t0\n"
                     "addi t1, t1, -1\n"
                     "bnez t1, 1b\n"
                     "j start\n"
                     "2: wfi\n"
                     "j 2b\n"
                     :
                     : "i"(LAT_PORT_CORES), "i"(STACK_BYTES));
}
