// SPDX-License-Identifier: Apache-2.0 OR MIT
/* MPS2 boards (QEMU's mps2-an385 with a Cortex-M3, mps2-an505 with a Cortex-M33 in secure state): reset,
 * serial line, two timers [AN385, AN505: memory maps]. */
#include "board.h"
#include "lat_port.h"

#define WORD(address) (*(volatile uint32_t *)(address))
#ifdef BOARD_AN505
#define UART0 0x50200000u
#define UART1 0x50201000u
#define TIMERS 0x50000000u
#define TIMER_INTERRUPT 3u /* and 4 */
#else
#define UART0 0x40004000u
#define UART1 0x40005000u
#define TIMERS 0x40000000u
#define TIMER_INTERRUPT 8u /* and 9 */
#endif
#define TIMER(level) (TIMERS + 0x1000u * (level))
#define NVIC_ENABLE 0xe000e100u
#define NVIC_PRIORITY 0xe000e400u

extern uint32_t board_stack_end[], board_data[], board_data_end[], board_data_image[], board_bss[],
    board_bss_end[];

#ifndef AREA_BYTES
#define AREA_BYTES 65536u
#endif
__attribute__((section(".noinit"))) uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;

void board_put(char c)
{
    while ((WORD(UART0 + 4u) & 1u) != 0) {
    }
    WORD(UART0) = (uint8_t)c;
}

/* Weak: a program may send its packets by other means. */
__attribute__((weak)) void lat_port_put(const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        while ((WORD(UART1 + 4u) & 1u) != 0) {
        }
        WORD(UART1) = ((const uint8_t *)bytes)[i];
    }
}

_Noreturn void board_stop(void)
{
    __asm__ volatile("cpsid i");
    for (;;)
        __asm__ volatile("wfi");
}

void board_arm(unsigned level, uint32_t ticks)
{
    WORD(TIMER(level)) = 0;
    WORD(TIMER(level) + 0xcu) = 1; /* clears a pending interrupt */
    WORD(TIMER(level) + 8u) = 0;   /* once only */
    WORD(TIMER(level) + 4u) = ticks;
    WORD(TIMER(level)) = 9; /* enabled, with its interrupt */
}

/* 255 times NOP, entered at a point where `count` remain. */
__attribute__((naked)) void board_pause(uint32_t count)
{
    __asm__ volatile("adr r1, 1f\n"
                     "sub r1, r1, r0, lsl #1\n"
                     "orr r1, r1, #1\n"
                     "bx r1\n"
                     ".rept 255\n"
                     "nop.n\n"
                     ".endr\n"
                     ".balign 4\n"
                     "1: bx lr\n");
}

void timer_interrupt(const uint32_t *frame, unsigned level);
void timer_interrupt(const uint32_t *frame, unsigned level)
{
    WORD(TIMER(level)) = 0;
    WORD(TIMER(level) + 0xcu) = 1;
    on_timer(level, frame[6]); /* the return address [ARMv7-M ARM, B1.5.6] */
}

#define HANDLER(name, level)                                                                    \
    __attribute__((naked)) static void name(void)                                               \
    {                                                                                           \
        __asm__ volatile("mov r0, sp\n\tmovs r1, #" #level "\n\tb timer_interrupt");            \
    }
HANDLER(timer0, 0)
HANDLER(timer1, 1)

static void fault(void)
{
    for (const char *c = "fault\n"; *c != '\0'; c++)
        board_put(*c);
    board_stop();
}

static void reset(void)
{
    for (uint32_t *from = board_data_image, *to = board_data; to < board_data_end;)
        *to++ = *from++;
    for (uint32_t *to = board_bss; to < board_bss_end;)
        *to++ = 0;
    WORD(UART0 + 0x10u) = 16; /* the smallest divisor */
    WORD(UART0 + 8u) = 1;     /* send */
    WORD(UART1 + 0x10u) = 16;
    WORD(UART1 + 8u) = 1;
    /* Lower numbers have higher priority. */
    ((volatile uint8_t *)NVIC_PRIORITY)[TIMER_INTERRUPT] = 0x80;
    ((volatile uint8_t *)NVIC_PRIORITY)[TIMER_INTERRUPT + 1u] = 0x40;
    WORD(NVIC_ENABLE) = 3u << TIMER_INTERRUPT;
    program();
}

#ifdef BOARD_FREERTOS
void SVC_Handler(void);
void PendSV_Handler(void);
void SysTick_Handler(void);
#endif

__attribute__((section(".vectors"), used)) static const void *const vectors[16 + 32] = {
    board_stack_end, (const void *)reset, (const void *)fault, (const void *)fault,
    (const void *)fault, (const void *)fault, (const void *)fault,
#ifdef BOARD_FREERTOS
    [11] = (const void *)SVC_Handler,
    [14] = (const void *)PendSV_Handler,
    [15] = (const void *)SysTick_Handler,
#endif
    [16 + TIMER_INTERRUPT] = (const void *)timer0,
    [17 + TIMER_INTERRUPT] = (const void *)timer1,
};
