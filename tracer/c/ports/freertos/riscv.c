// SPDX-License-Identifier: Apache-2.0 OR MIT
/* QEMU's virt, one hart: the kernel uses the timer, so the interrupt is the software interrupt of the CLINT
 * [SiFive FU540-C000 manual, 9.2: MSIP of hart 0]. */
#include "board.h"
#include "machine.h"

#define SOFTWARE_INTERRUPT (*(volatile uint32_t *)0x02000000ul)

void freertos_risc_v_trap_handler(void);

void machine_begin(void)
{
    __asm__ volatile("csrci mstatus, 8\n\t"
                     "csrw mtvec, %0\n\t"
                     "csrs mie, %1"
                     :
                     : "r"(freertos_risc_v_trap_handler), "r"(8ul)
                     : "memory");
}

void machine_interrupt_soon(void)
{
    SOFTWARE_INTERRUPT = 1;
}

/* Called by the kernel's port for all interrupts except the timer's. */
void freertos_risc_v_application_interrupt_handler(void);
void freertos_risc_v_application_interrupt_handler(void)
{
    SOFTWARE_INTERRUPT = 0;
    example_interrupt();
}

void on_timer(unsigned level, uintptr_t pc)
{
    (void)level;
    (void)pc;
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}
