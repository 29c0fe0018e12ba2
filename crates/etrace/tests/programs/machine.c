// SPDX-License-Identifier: Apache-2.0 OR MIT
// Traps of the test programs: calls, faults that are skipped, and a timer.

#define TIMER_NOW (*(volatile unsigned long *)0x200bff8)
#define TIMER_NEXT (*(volatile unsigned long *)0x2004000)
#define POWER (*(volatile unsigned *)0x100000)

volatile unsigned long ticks, calls, faults;

void machine_start(void)
{
#ifdef TIMER
    TIMER_NEXT = TIMER_NOW + TIMER;
    // Timer interrupts reach user mode whatever its own flag is.
    __asm__ volatile("csrs mie, %0" ::"r"(1 << 7));
#endif
}

// Returns where execution continues.
unsigned long machine_trap(unsigned long value, unsigned long cause, unsigned long from,
                           unsigned long call)
{
    if (cause >> 63) {
        ticks++;
        TIMER_NEXT = TIMER_NOW + 11;
        return from;
    }
    if (cause == 8) {
        calls++;
        if (call == 93)
            POWER = 0x5555;
        return from + 4;
    }
    faults++;
    // The low bits of an instruction say how long it is.
    return from + ((*(unsigned short *)from & 3) == 3 ? 4 : 2);
}
