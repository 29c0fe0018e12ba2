// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The boards of ../cortex-m: their first timer is the interrupt. */
#include "board.h"
#include "machine.h"

void machine_begin(void)
{
}

void machine_interrupt_soon(void)
{
    board_arm(0, 100);
}

void on_timer(unsigned level, uintptr_t pc)
{
    (void)level;
    (void)pc;
    example_interrupt();
}
