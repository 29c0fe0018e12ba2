// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Functions that the FreeRTOS images need from a machine in addition to board.h. */
#ifndef MACHINE_H
#define MACHINE_H

/** Number of the example's interrupt: SIGALRM, the cause of a software interrupt, or IRQ 3 or 8 as an
 * exception number. */
#if defined(__unix__)
#define EXAMPLE_INTERRUPT 14u
#elif defined(__riscv)
#define EXAMPLE_INTERRUPT 3u
#elif defined(BOARD_AN505)
#define EXAMPLE_INTERRUPT 19u
#else
#define EXAMPLE_INTERRUPT 24u
#endif

/** Prepares the machine for the kernel's port. Context: before the scheduler. */
void machine_begin(void);
/** Requests the interrupt of the example shortly. Context: the tick's handler. */
void machine_interrupt_soon(void);
/** Defined by the example: its interrupt occurred. */
void example_interrupt(void);

#endif
