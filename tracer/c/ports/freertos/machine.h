// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What the FreeRTOS images need of a machine beside board.h. */
#ifndef MACHINE_H
#define MACHINE_H

/** The number of the example's interrupt: SIGALRM, the cause of a software interrupt, IRQ 3 or 8 as an
 * exception. */
#if defined(__unix__)
#define EXAMPLE_INTERRUPT 14u
#elif defined(__riscv)
#define EXAMPLE_INTERRUPT 3u
#elif defined(BOARD_AN505)
#define EXAMPLE_INTERRUPT 19u
#else
#define EXAMPLE_INTERRUPT 24u
#endif

/** Makes ready what the kernel's port needs. Context: before the scheduler. */
void machine_begin(void);
/** The interrupt of the example comes soon after. Context: the tick's handler. */
void machine_interrupt_soon(void);
/** The example's: its interrupt came. */
void example_interrupt(void);

#endif
