// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Functions that the example programs need from a machine besides the tracer's port. */
#ifndef BOARD_H
#define BOARD_H

#include <stddef.h>
#include <stdint.h>

/** Writes one character to the serial line; waits until there is room. Context: any. */
void board_put(char c);
/** Stops this core forever. The runner then dumps the memory. */
_Noreturn void board_stop(void);
/** First word and size in bytes of the memory of the area. */
extern uint64_t lat_port_area[];
extern const uint32_t board_area_bytes;

/** Requests interrupt `level` (0, or 1, which interrupts 0) in about `ticks` of its timer. */
void board_arm(unsigned level, uint32_t ticks);
/** Executes exactly `count` NOPs, 0 to 255, and a few more instructions. */
void board_pause(uint32_t count);
/** Defined by the program: interrupt `level` occurred at the instruction at `pc`. */
void on_timer(unsigned level, uintptr_t pc);
/** Defined by the program, called on the first core. Never returns. */
_Noreturn void program(void);
/** Defined by the program, called on each other core. */
_Noreturn void program_other(uint32_t core);

#endif
