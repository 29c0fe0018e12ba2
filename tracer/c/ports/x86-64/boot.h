// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The start of a program on QEMU's microvm, for board.c and for kernels. */
#ifndef BOOT_H
#define BOOT_H

#include <stdint.h>

/* Registers of this core's interrupt controller [Intel SDM 3A, 10.4.1]. */
#define APIC(offset) (*(volatile uint32_t *)(0xfee00000ul + (offset)))
#define APIC_EOI 0xb0u
#define APIC_TIMER 0x320u
#define APIC_COUNT 0x380u

#define BOOT_STACK_SHIFT 14
/* A stack for each of LAT_PORT_CORES cores, which boot_start is called on. */
extern char boot_stacks[];
/* 4 GiB, each address its own, in pages of 2 MiB: one table, one, four. Not for user mode. */
extern uint64_t boot_pages[6][512];

/** The program's, on each core: in long mode, interrupts masked. The first one clears .bss. */
_Noreturn void boot_start(uint64_t core);
/** Starts the other cores; on the first one. */
void boot_others(void);
/** What GS points to on this core; and its interrupt controller is on, its timer stopped. */
void boot_own(uint64_t own);
/** An interrupt gate that code of a privilege level may call. */
void boot_describe(uint64_t descriptor[2], void (*entry)(void), unsigned level);
/** A character on the serial line; waits until there is room. */
void boot_put(char c);

#endif
