// SPDX-License-Identifier: Apache-2.0 OR MIT
/* `workloads NAME COUNT`: loops with one kind of branch each, after table 1 of "Hardware-Assisted
 * Instruction Profiling and Latency Detection" (Sharma and Dagenais, 2016). Prints the duration
 * in nanoseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An empty loop. */
static unsigned long epsilon(unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        __asm__ volatile("");
    return count;
}

/* The same with a branch whose two outcomes lead to the same place: listing 2 of the paper. */
static unsigned long omega(unsigned long count)
{
    for (unsigned long i = 0; i < count; i++)
        __asm__ volatile("mov $42, %%r8\n\tmov $42, %%r9\n\tcmp %%r8, %%r9\n\tje 1f\n1:\n\tnop"
                         :
                         :
                         : "r8", "r9", "cc");
    return count;
}

/* Calls in tail position, to an address in a register. */
static unsigned long last_call(unsigned long n, unsigned long product);
static unsigned long (*volatile next_call)(unsigned long, unsigned long) = last_call;

static unsigned long last_call(unsigned long n, unsigned long product)
{
    if (n <= 1)
        return product;
    return next_call(n - 1, product * n);
}

static unsigned long tail_fact(unsigned long count)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < count; i++)
        sum += next_call(20, 1);
    return sum;
}

/* Calls, returns and branches. */
static unsigned long fib_of(unsigned n)
{
    return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2);
}

static unsigned long fib(unsigned long count)
{
    unsigned long sum = 0;
    for (unsigned long i = 0; i < count; i++)
        sum += fib_of(20);
    return sum;
}

static unsigned long pi_sum(unsigned long count)
{
    double sum = 0;
    for (unsigned long i = 0; i < count; i++) {
        sum = 0;
        for (int k = 1; k <= 10000; k++)
            sum += 1.0 / ((double)k * k);
    }
    return (unsigned long)(sum * 1e6);
}

static const struct {
    const char *name;
    unsigned long (*run)(unsigned long);
} workloads[] = {
    {"Epsilon", epsilon}, {"Omega", omega}, {"TailFact", tail_fact}, {"Fib", fib}, {"PiSum", pi_sum},
};

int main(int count, char **words)
{
    for (size_t of = 0; count > 2 && of < sizeof workloads / sizeof workloads[0]; of++) {
        if (strcmp(words[1], workloads[of].name) != 0)
            continue;
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        const volatile unsigned long result = workloads[of].run(strtoul(words[2], NULL, 10));
        clock_gettime(CLOCK_MONOTONIC, &end);
        (void)result;
        printf("%ld\n", (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
        return 0;
    }
    return 2;
}
