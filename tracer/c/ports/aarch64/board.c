// SPDX-License-Identifier: Apache-2.0 OR MIT
/* QEMU's virt for AArch64: reset, further cores by PSCI, serial line (PL011), the physical and the virtual
 * timer of each core through a GICv2. The MMU stays off. */
#include "board.h"
#include "lat_port.h"

#define WORD(address) (*(volatile uint32_t *)(address))
#define UART 0x09000000ul
#define DISTRIBUTOR 0x08000000ul
#define INTERFACE 0x08010000ul
/* The physical and the virtual timer of EL1 [BSA, private interrupts]. */
#define PHYSICAL_INTERRUPT 30u
#define VIRTUAL_INTERRUPT 27u
#define STACK_BYTES 16384

#ifndef AREA_BYTES
#define AREA_BYTES 65536u
#endif
__attribute__((section(".noinit"))) uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;

__attribute__((section(".noinit"), used, aligned(16))) char board_stacks[STACK_BYTES * LAT_PORT_CORES];
volatile uint32_t board_is_ready;
void board_reset(void);

void board_put(char c)
{
    while ((WORD(UART + 0x18u) & 0x20u) != 0) {
    }
    WORD(UART) = (uint8_t)c;
}

/* Weak: a program may send its packets by other means. */
__attribute__((weak)) void lat_port_put(const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        board_put(((const char *)bytes)[i]);
}

_Noreturn void board_stop(void)
{
    __asm__ volatile("msr daifset, #2");
    for (;;)
        __asm__ volatile("wfi");
}

/* Level 0 is the physical timer, level 1 the virtual one, which the handler of level 0 allows to
 * interrupt. */
void board_arm(unsigned level, uint32_t ticks)
{
    /* Starts at a tick, so that the number of instructions until the next ticks is always the same. */
    const uint64_t before = lat_port_clock();
    while (lat_port_clock() == before) {
    }
    if (level == 0) {
        __asm__ volatile("msr cntp_tval_el0, %0\n\tmsr cntp_ctl_el0, %1" : : "r"((uint64_t)ticks), "r"(1ul));
    } else {
        __asm__ volatile("msr cntv_tval_el0, %0\n\tmsr cntv_ctl_el0, %1" : : "r"((uint64_t)ticks), "r"(1ul));
        __asm__ volatile("msr daifclr, #2");
    }
}

/* 255 times NOP, entered at a point where `count` remain. */
__attribute__((naked)) void board_pause(__attribute__((unused)) uint32_t count)
{
    __asm__ volatile("adr x1, 1f\n"
                     "sub x1, x1, w0, uxtw #2\n"
                     "br x1\n"
                     ".rept 255\n"
                     "nop\n"
                     ".endr\n"
                     "1: ret\n");
}

static void put_text(const char *text)
{
    while (*text != '\0')
        board_put(*text++);
}

__attribute__((used)) static void interrupt(uintptr_t pc)
{
    const uint32_t taken = WORD(INTERFACE + 0xcu);
    const uint32_t which = taken & 0x3ffu;
    uint64_t context;
    __asm__ volatile("mrs %0, tpidr_el1" : "=r"(context));
    if (which == PHYSICAL_INTERRUPT || which == VIRTUAL_INTERRUPT) {
        if (which == PHYSICAL_INTERRUPT)
            __asm__ volatile("msr cntp_ctl_el0, xzr");
        else
            __asm__ volatile("msr cntv_ctl_el0, xzr");
        __asm__ volatile("msr tpidr_el1, %0" : : "r"(context + 0x100u) : "memory");
        on_timer(which == VIRTUAL_INTERRUPT, pc);
        __asm__ volatile("msr daifset, #2\n\tmsr tpidr_el1, %0" : : "r"(context) : "memory");
    }
    WORD(INTERFACE + 0x10u) = taken;
}

__attribute__((used)) static _Noreturn void fault(void)
{
    put_text("fault\n");
    board_stop();
}

/* Sixteen entries of 128 bytes; the IRQ of the current level with its own stack is the sixth
 * [Arm ARM, D1.10.2]. */
__attribute__((naked, aligned(2048), used)) static void exceptions(void)
{
    __asm__ volatile(".rept 5\n b fault\n .balign 128\n .endr\n"
                     "b 1f\n .balign 128\n"
                     ".rept 10\n b fault\n .balign 128\n .endr\n"
                     "1: sub sp, sp, #176\n"
                     "stp x0, x1, [sp]\n stp x2, x3, [sp, #16]\n stp x4, x5, [sp, #32]\n"
                     "stp x6, x7, [sp, #48]\n stp x8, x9, [sp, #64]\n stp x10, x11, [sp, #80]\n"
                     "stp x12, x13, [sp, #96]\n stp x14, x15, [sp, #112]\n stp x16, x17, [sp, #128]\n"
                     "stp x18, x30, [sp, #144]\n mrs x0, elr_el1\n mrs x1, spsr_el1\n"
                     "stp x0, x1, [sp, #160]\n bl interrupt\n"
                     "ldp x0, x1, [sp, #160]\n msr elr_el1, x0\n msr spsr_el1, x1\n"
                     "ldp x18, x30, [sp, #144]\n ldp x16, x17, [sp, #128]\n ldp x14, x15, [sp, #112]\n"
                     "ldp x12, x13, [sp, #96]\n ldp x10, x11, [sp, #80]\n ldp x8, x9, [sp, #64]\n"
                     "ldp x6, x7, [sp, #48]\n ldp x4, x5, [sp, #32]\n ldp x2, x3, [sp, #16]\n"
                     "ldp x0, x1, [sp]\n add sp, sp, #176\n eret\n");
}

__attribute__((used)) static _Noreturn void start(uint64_t core)
{
    extern uint32_t board_bss[], board_bss_end[];
    __asm__ volatile("msr vbar_el1, %0\n\tmsr tpidr_el1, %1\n\tisb" : : "r"(exceptions), "r"(core + 1u));
    if (core == 0) {
        for (volatile uint32_t *to = board_bss; to < board_bss_end;)
            *to++ = 0;
        WORD(DISTRIBUTOR) = 1;
        /* PSCI's CPU_ON, 0xc4000003, by HVC [PSCI, 5.6]: virt has no EL2. */
        for (uint64_t other = 1; other < LAT_PORT_CORES; other++) {
            register uint64_t x0 __asm__("x0") = 0xc4000003u;
            register uint64_t x1 __asm__("x1") = other;
            register uint64_t x2 __asm__("x2") = (uintptr_t)board_reset;
            register uint64_t x3 __asm__("x3") = 0;
            __asm__ volatile("hvc #0" : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3) : : "memory");
        }
    }
    /* Lower numbers have higher priority; bytes 3 and 2 of the words of interrupts 24 and 28. */
    WORD(DISTRIBUTOR + 0x418u) = 0x40u << 24;
    WORD(DISTRIBUTOR + 0x41cu) = 0x80u << 16;
    WORD(DISTRIBUTOR + 0x100u) = 1u << PHYSICAL_INTERRUPT | 1u << VIRTUAL_INTERRUPT;
    WORD(INTERFACE + 4u) = 0xff;
    WORD(INTERFACE) = 1;
    __asm__ volatile("msr daifclr, #2");
    if (core == 0)
        program();
    while (__atomic_load_n(&board_is_ready, __ATOMIC_ACQUIRE) == 0) {
    }
    program_other((uint32_t)core);
}

__attribute__((naked, section(".reset"), used)) void board_reset(void)
{
    __asm__ volatile("mrs x0, mpidr_el1\n"
                     "and x0, x0, #0xff\n"
                     "add x1, x0, #1\n"
                     "mov x2, %0\n"
                     "adrp x3, board_stacks\n"
                     "add x3, x3, :lo12:board_stacks\n"
                     "madd x1, x1, x2, x3\n"
                     "mov sp, x1\n"
                     "b start\n"
                     :
                     : "i"(STACK_BYTES));
}
