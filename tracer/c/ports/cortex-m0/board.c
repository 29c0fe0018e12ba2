// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The nRF51 with a Cortex-M0 (QEMU's microbit): reset, serial line, a timer [nRF51 Series Reference
 * Manual, "UART", "TIMER"]. */
#include "board.h"

#define WORD(address) (*(volatile uint32_t *)(address))
#define UART 0x40002000u
#define CLOCK 0x40008000u /* TIMER0 */
#define TIMER(level) (0x40009000u + 0x1000u * (level)) /* TIMER1, TIMER2 */
#define TIMER_INTERRUPT 9u                             /* and 10 */
#define NVIC_ENABLE 0xe000e100u
#define NVIC_PRIORITY 0xe000e400u /* words of four interrupts */

extern uint32_t board_stack_end[], board_data[], board_data_end[], board_data_image[], board_bss[],
    board_bss_end[];

#ifndef AREA_BYTES
#define AREA_BYTES 9216u
#endif
__attribute__((section(".noinit"))) uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;

void board_put(char c)
{
    WORD(UART + 0x11cu) = 0;
    WORD(UART + 0x51cu) = (uint8_t)c;
    while (WORD(UART + 0x11cu) == 0) {
    }
}

/* Weak: a program may send its packets by other means. */
__attribute__((weak)) void lat_port_put(const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        board_put(((const char *)bytes)[i]);
}

_Noreturn void board_stop(void)
{
    __asm__ volatile("cpsid i");
    for (;;)
        __asm__ volatile("wfi");
}

static void start_timer(uint32_t timer, uint32_t bits)
{
    WORD(timer + 4u) = 1;       /* stop */
    WORD(timer + 0x0cu) = 1;    /* clear */
    WORD(timer + 0x508u) = bits;
    WORD(timer + 0x510u) = 0;   /* 16 MHz */
    WORD(timer) = 1;
}

void board_arm(unsigned level, uint32_t ticks)
{
    WORD(TIMER(level) + 4u) = 1;
    WORD(TIMER(level) + 0x140u) = 0;
    WORD(TIMER(level) + 0x540u) = ticks;
    WORD(TIMER(level) + 0x304u) = 1u << 16;
    start_timer(TIMER(level), 0); /* 16 bits */
}

/* 255 times NOP, entered at a point where `count` remain. */
__attribute__((naked)) void board_pause(uint32_t count)
{
    __asm__ volatile("adr r1, 1f\n"
                     "lsls r0, r0, #1\n"
                     "subs r1, r1, r0\n"
                     "adds r1, #1\n"
                     "bx r1\n"
                     ".rept 255\n"
                     "nop\n"
                     ".endr\n"
                     ".balign 4\n"
                     "1: bx lr\n");
}

void timer_interrupt(const uint32_t *frame, unsigned level);
void timer_interrupt(const uint32_t *frame, unsigned level)
{
    WORD(TIMER(level) + 4u) = 1;
    WORD(TIMER(level) + 0x140u) = 0;
    on_timer(level, frame[6]); /* the return address [ARMv6-M ARM, B1.5.6] */
}

#define HANDLER(name, level)                                                                    \
    __attribute__((naked)) static void name(void)                                               \
    {                                                                                           \
        __asm__ volatile("mov r0, sp\n\tmovs r1, #" #level "\n\tldr r2, =timer_interrupt\n\t"   \
                         "bx r2");                                                              \
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
    WORD(UART + 0x500u) = 4; /* enable */
    WORD(UART + 8u) = 1;     /* send */
    start_timer(CLOCK, 3);   /* 32 bits */
    /* Two bits each; lower numbers have higher priority. 9 and 10 are bytes 1 and 2 of word 2. */
    WORD(NVIC_PRIORITY + 8u) = 0x80u << 8 | 0x40u << 16;
    WORD(NVIC_ENABLE) = 3u << TIMER_INTERRUPT;
    program();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16 + 32] = {
    board_stack_end, (const void *)reset, (const void *)fault, (const void *)fault,
    [16 + TIMER_INTERRUPT] = (const void *)timer0,
    [17 + TIMER_INTERRUPT] = (const void *)timer1,
};
