// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The nRF51 with a Cortex-M0 (QEMU's microbit): reset, serial line, a timer [nRF51 Series Reference
 * Manual, "UART", "TIMER"]. */
#include "board.h"

#define WORD(address) (*(volatile uint32_t *)(address))
#define UART 0x40002000u
#define CLOCK 0x40008000u /* TIMER0 */
#define TIMER 0x40009000u /* TIMER1 */
#define TIMER_INTERRUPT 9u
#define NVIC_ENABLE 0xe000e100u

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

/* One timer: level 1 is not there. */
void board_arm(unsigned level, uint32_t ticks)
{
    (void)level;
    WORD(TIMER + 4u) = 1;
    WORD(TIMER + 0x140u) = 0;
    WORD(TIMER + 0x540u) = ticks;
    WORD(TIMER + 0x304u) = 1u << 16;
    start_timer(TIMER, 0); /* 16 bits */
}

void board_pause(uint32_t count)
{
    while (count-- != 0)
        __asm__ volatile("");
}

static void timer(void)
{
    WORD(TIMER + 4u) = 1;
    WORD(TIMER + 0x140u) = 0;
    on_timer(0, 0);
}

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
    WORD(NVIC_ENABLE) = 1u << TIMER_INTERRUPT;
    program();
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16 + 32] = {
    board_stack_end, (const void *)reset, (const void *)fault, (const void *)fault,
    [16 + TIMER_INTERRUPT] = (const void *)timer,
};
