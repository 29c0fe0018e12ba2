// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What the example programs need of a machine besides the tracer's port. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/** Writes one character to the serial line; waits until there is room. Context: any. */
void board_put(char c);
/** Stops this core for ever. The runner dumps the memory then. */
_Noreturn void board_stop(void);
/** The first word of the memory of the area, and how many bytes it has. */
extern uint64_t lat_port_area[];
extern const uint32_t board_area_bytes;

/** Interrupt `level` (0, or 1 that interrupts 0) comes in about `ticks` of its timer. */
void board_arm(unsigned level, uint32_t ticks);
/** Executes exactly `count` instructions that do nothing, 0 to 255, and a few more. */
void board_pause(uint32_t count);
/** The program's: interrupt `level` came, and interrupted the instruction at `pc`. */
void on_timer(unsigned level, uintptr_t pc);
/** The program's, on the first core. It returns never. */
_Noreturn void program(void);
/** The program's, on each other core. */
_Noreturn void program_other(uint32_t core);

#endif
