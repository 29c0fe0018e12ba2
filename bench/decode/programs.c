// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Programs with one kind of branch each:
 *
 *     programs calls|indirect|random|loop COUNT
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile uint64_t kept;

/* Calls and returns. */
__attribute__((noinline)) static uint64_t fibonacci(uint64_t n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

/* Jumps to addresses from a table. */
typedef uint64_t step(uint64_t n, uint64_t product);
static step *volatile steps[2];
__attribute__((noinline)) static uint64_t factorial(uint64_t n, uint64_t product)
{
    return n < 2 ? product : steps[n & 1](n - 1, product * n);
}

/* Branches that are taken at random. */
static uint32_t number = 42;
static uint32_t next_number(void)
{
    number ^= number << 13;
    number ^= number >> 17;
    return number ^= number << 5;
}
__attribute__((noinline)) static uint64_t random_branches(uint64_t count)
{
    uint64_t sum = 0;
    while (count-- > 0) {
        const uint32_t of = next_number();
        if (of & 1)
            sum += count;
        if (of & 2)
            sum ^= of;
        if (of & 4)
            kept = sum;
    }
    return sum;
}

/* A branch that is always taken. */
__attribute__((noinline)) static uint64_t loop(uint64_t count)
{
    uint64_t sum = 0;
    while (count-- > 0)
        kept = sum += count;
    return sum;
}

int main(int count, char **words)
{
    if (count != 3)
        return 2;
    const uint64_t times = strtoull(words[2], NULL, 10);
    steps[0] = steps[1] = factorial;
    if (strcmp(words[1], "calls") == 0)
        kept = fibonacci(times);
    else if (strcmp(words[1], "indirect") == 0)
        for (uint64_t at = 0; at < times; at++)
            kept = factorial(20, 1);
    else if (strcmp(words[1], "random") == 0)
        kept = random_branches(times);
    else
        kept = loop(times);
    return 0;
}
