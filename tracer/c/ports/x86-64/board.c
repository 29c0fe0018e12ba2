// SPDX-License-Identifier: Apache-2.0 OR MIT
/* QEMU's microvm for x86-64: serial line (16550), the timer of each core's APIC. boot.c starts it. */
#include "board.h"
#include "boot.h"
#include "lat_port.h"

#define TIMER_VECTOR(level) (0x40u + 0x10u * (level)) /* a priority class each */
#define TICKS 100u /* APIC ticks, at 1 GHz, per tick of the programs */

#ifndef AREA_BYTES
#define AREA_BYTES 65536u
#endif
__attribute__((section(".noinit"), aligned(8))) uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;

/* Set by the first core when memory is initialised; the others wait for it. */
volatile uint32_t board_is_ready;

/* Per-core data, addressed by GS. */
static struct {
    uint32_t core, context;
} cores[LAT_PORT_CORES];

static uint64_t descriptors[256][2]; /* IDT */

void board_put(char c)
{
    boot_put(c);
}

/* Weak: a program may send its packets by other means. */
__attribute__((weak)) void lat_port_put(const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        board_put(((const char *)bytes)[i]);
}

_Noreturn void board_stop(void)
{
    for (;;)
        __asm__ volatile("cli\n\thlt");
}

/* One timer per core: level 1 is the same one again inside its own handler, by a vector of higher priority,
 * which allows it. */
void board_arm(unsigned level, uint32_t ticks)
{
    APIC(APIC_TIMER) = TIMER_VECTOR(level); /* one-shot */
    APIC(APIC_COUNT) = ticks * TICKS;       /* initial count */
    if (level != 0)
        __asm__ volatile("sti");
}

/* 255 times NOP, entered at a point where `count` remain. */
__attribute__((naked)) void board_pause(__attribute__((unused)) uint32_t count)
{
    __asm__ volatile("leaq 1f(%rip), %rax\n"
                     "movl %edi, %edi\n"
                     "subq %rdi, %rax\n"
                     "jmpq *%rax\n"
                     ".rept 255\n"
                     "nop\n"
                     ".endr\n"
                     "1: retq\n");
}

static void put_text(const char *text)
{
    while (*text != '\0')
        board_put(*text++);
}

__attribute__((used)) static void interrupt(uintptr_t pc)
{
    const uint32_t core = lat_port_core();
    const uint32_t context = cores[core].context;
    cores[core].context = context + 0x100u;
    __asm__ volatile("" : : : "memory");
    on_timer(context >> 8, pc);
    __asm__ volatile("cli" : : : "memory");
    cores[core].context = context;
    APIC(APIC_EOI) = 0; /* end of interrupt */
}

__attribute__((used)) static _Noreturn void exception(void)
{
    put_text("fault\n");
    board_stop();
}

void timer_entry(void);
void exception_entry(void);

_Noreturn void boot_start(uint64_t core)
{
    extern uint64_t board_bss[], board_bss_end[];
    if (core == 0) {
        for (uint64_t *to = board_bss; to < board_bss_end;)
            *to++ = 0;
        for (uint32_t vector = 0; vector < 256; vector++)
            boot_describe(descriptors[vector], exception_entry, 0);
        boot_describe(descriptors[TIMER_VECTOR(0)], timer_entry, 0);
        boot_describe(descriptors[TIMER_VECTOR(1)], timer_entry, 0);
    }
    const struct __attribute__((packed)) {
        uint16_t last;
        uint64_t address;
    } table = {sizeof descriptors - 1u, (uintptr_t)descriptors};
    __asm__ volatile("lidt %0" : : "m"(table));
    cores[core].core = (uint32_t)core;
    cores[core].context = (uint32_t)core + 1u;
    boot_own((uintptr_t)&cores[core]);
    __asm__ volatile("sti");
    if (core == 0) {
#if LAT_PORT_CORES > 1
        boot_others();
#endif
        program();
    }
    while (__atomic_load_n(&board_is_ready, __ATOMIC_ACQUIRE) == 0) {
    }
    program_other((uint32_t)core);
}

/* Entries of interrupts and exceptions. */
__asm__(".pushsection .text.entries, \"ax\"\n"
        ".global timer_entry, exception_entry\n"
        "timer_entry:\n"
        "pushq %rbp\n"
        "movq %rsp, %rbp\n"
        "pushq %rax\n pushq %rcx\n pushq %rdx\n pushq %rsi\n pushq %rdi\n"
        "pushq %r8\n pushq %r9\n pushq %r10\n pushq %r11\n"
        "subq $528, %rsp\n"
        "andq $-16, %rsp\n"
        "fxsave64 (%rsp)\n"
        "cld\n"
        "movq 8(%rbp), %rdi\n"
        "call interrupt\n"
        "fxrstor64 (%rsp)\n"
        "leaq -72(%rbp), %rsp\n"
        "popq %r11\n popq %r10\n popq %r9\n popq %r8\n"
        "popq %rdi\n popq %rsi\n popq %rdx\n popq %rcx\n popq %rax\n"
        "popq %rbp\n"
        "iretq\n"
        "exception_entry:\n"
        "andq $-16, %rsp\n"
        "call exception\n"
        ".popsection\n");
