// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// The same work in each run, ten calls deep. Prints the CPU time that it took, which includes the cost of
// samples for the program.

#include <stdio.h>
#include <time.h>

static volatile unsigned long sink;

static __attribute__((noinline)) void deep(int depth, unsigned long count) {
    if (depth > 0)
        deep(depth - 1, count);
    else
        for (unsigned long i = 0; i < count; i++) sink += i;
    __asm__ volatile("" ::: "memory");
}

int main(void) {
    struct timespec used;
    for (int i = 0; i < 400; i++) deep(9, 10000000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%.3f\n", used.tv_sec * 1e3 + used.tv_nsec / 1e6);
}
