// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What the FreeRTOS images need of a machine beside board.h. */
#ifndef MACHINE_H
#define MACHINE_H

/** Makes ready what the kernel's port needs. Context: before the scheduler. */
void machine_begin(void);
/** The interrupt of the example comes soon after. Context: the tick's handler. */
void machine_interrupt_soon(void);
/** The example's: its interrupt came. */
void example_interrupt(void);

#endif
