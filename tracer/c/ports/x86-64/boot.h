// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The start of a program on QEMU's microvm, used by board.c and by kernels. */
#ifndef BOOT_H
#define BOOT_H

#include <stdint.h>

/* A register of this core's interrupt controller [Intel SDM 3A, 10.4.1]. */
#define APIC(offset) (*(volatile uint32_t *)(0xfee00000ul + (offset)))
#define APIC_EOI 0xb0u
#define APIC_TIMER 0x320u
#define APIC_COUNT 0x380u

#define BOOT_STACK_SHIFT 14
/* A stack for each of LAT_PORT_CORES cores, on which boot_start is called. */
extern char boot_stacks[];
/* 4 GiB, identity-mapped in pages of 2 MiB: one table, one, four. Not accessible in user mode. */
extern uint64_t boot_pages[6][512];

/** Defined by the program, called on each core: in long mode, interrupts masked. The first one clears
 * .bss. */
_Noreturn void boot_start(uint64_t core);
/** Starts the other cores. Context: the first core. */
void boot_others(void);
/** Sets GS of this core, and enables its interrupt controller with the timer stopped. */
void boot_own(uint64_t own);
/** Builds an interrupt gate that code of a privilege level may call. */
void boot_describe(uint64_t descriptor[2], void (*entry)(void), unsigned level);
/** Writes a character to the serial line; waits until there is room. */
void boot_put(char c);

#endif
