// SPDX-License-Identifier: Apache-2.0 OR MIT
// A loop with calls to the machine, faults, and whatever the timer interrupts.

__attribute__((noinline)) static long call(long n)
{
    register long a7 __asm__("a7") = 1;
    register long a0 __asm__("a0") = n;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a7) : "memory");
    return a0;
}

__attribute__((noinline)) static void illegal(void)
{
    __asm__ volatile(".balign 4; .word 0x0000000b; c.nop; .short 0; c.nop");
}

__attribute__((noinline)) static void bad_load(void)
{
    __asm__ volatile("ld t0, 0(zero)" ::: "t0");
}

// The first instruction at the target of an indirect jump faults.
__attribute__((noinline)) static void bad_target(void)
{
    __asm__ volatile("la t0, 1f; jr t0; nop; .balign 4; 1: .word 0x0000000b" ::: "t0");
}

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 120; i++) {
        sum += call(i);
        if (i % 3 == 0)
            illegal();
        if (i % 5 == 0)
            bad_load();
        if (i % 7 == 0)
            bad_target();
        __asm__ volatile("ebreak");
        for (volatile int k = 0; k < 20; k++)
            sum += k;
    }
    return (int)sum;
}
