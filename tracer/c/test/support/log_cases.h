// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Format-string events of every kind, for programs/log.c and programs/log_cpp.cc. BOTH records an
 * event and prints the same arguments with printf. */
#ifndef TEST_LOG_CASES_H
#define TEST_LOG_CASES_H

#include <lat/log.h>

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BOTH(...)                                                                              \
    do {                                                                                       \
        LAT_LOG(__VA_ARGS__);                                                                  \
        printf(__VA_ARGS__);                                                                   \
        putchar('\n');                                                                         \
    } while (0)

static inline void log_in_header(int value)
{
    BOTH("from a header: %d", value);
}

static int log_counter;
static inline int log_count_up(void)
{
    return ++log_counter;
}

enum log_colour { LOG_RED = 3, LOG_GREEN };

static inline void log_cases(void)
{
    char buffer[8] = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}; /* no NUL */
    char name[] = "array";
    const char *nothing = NULL;
    int local = 0;
    BOTH("no arguments");
    BOTH("100%% of \"quotes\", \\ backslashes,\ttabs, \x01\x32 and \xc3\xbc");
    BOTH("%u us for %s", 42u, "a name");
    BOTH("%d %i %u %x %X %o", -1, INT32_MIN, UINT32_MAX, 0xabcu, 0xdefu, 8u);
    BOTH("%hhd %hhu %hd %hu", (signed char)-5, (unsigned char)250, (short)-300,
         (unsigned short)60000);
    BOTH("%ld %lu %lld %llu", -5000000000L, 5000000000UL, INT64_MIN + 0LL, UINT64_MAX + 0ULL);
    BOTH("%" PRId64 " %" PRIu64 " %" PRIx64, INT64_C(-7), UINT64_C(7), UINT64_C(0xfeedface));
    BOTH("%zu %zd %jd %td", sizeof name, (ssize_t)-3, (intmax_t)-4, (ptrdiff_t)5);
    BOTH("%c%c%c", 'x', (int)'y', (char)'z');
    BOTH("%d %d", true, false);
    BOTH("%f %.3f %g %e %a", 1.5, 2.0 / 3, 1e100, 0.001, 0.5);
    BOTH("%f", (double)1.25f);
    BOTH("[%5d] [%-5d] [%05d] [%+d] [% d] [%#x]", 42, 42, 42, 42, 42, 42u);
    BOTH("[%10s] [%-10s] [%.2s]", "right", "left", "precise");
    BOTH("%s", name);
    BOTH("%.8s|%.3s|%.*s", buffer, buffer, 5, buffer);
    BOTH("%.*s %.*s", 2, "cut", -1, "not cut");
    BOTH("%p %p", (void *)&local, (const void *)name);
    BOTH("%p", (void *)NULL);
    BOTH("%d", LOG_GREEN);
    BOTH("%d %d %d %d %d %d %d %d %d %d %d %d %d %d %d %d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
         13, 14, 15, 16);
    BOTH("%s %d %s %u %s %lld %s %f %s", "a", -1, "b", 2u, "", -3LL, "c", 4.0, "end");
    LAT_LOG("%s", nothing); printf("\n");
    for (int i = 0; i < 3; i++)
        log_in_header(i);
    BOTH("same line %d", 1); BOTH("same line, another %d", 2);
    /* Evaluated once, and only when enabled: twice by the call sites, once by each printf. */
    LAT_LOG("once: %d", log_count_up()); printf("once: %d\n", log_counter);
    (void)local;
}

/* Arguments that do not match their conversions, which compilers warn about, and conversions that are
 * not kept. The recorded value is printed by a matching conversion. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wformat-pedantic"
#endif
#pragma GCC diagnostic ignored "-Wformat-zero-length"
static inline void log_odd_cases(void)
{
    char unterminated[2] = {'n', 'o'};
    LAT_LOG(""); printf(" \n");
    LAT_LOG("%f", 3); printf("3\n");
    LAT_LOG("%d", 2.5); printf("2.5\n");
    LAT_LOG("%d and"); printf("%%d and\n");
    LAT_LOG("more", 1, 2u); printf("more 1 2\n");
    LAT_LOG("%*d|%-*u", 5, 1, 6, 2u); printf("1|2\n");
    LAT_LOG("%2$d %1$d", 1, 2); printf("1 2\n");
    LAT_LOG("%y %d", 1, 2); printf("1 2\n");
    LAT_LOG("%m%d", 1); printf("%%m1\n");
    LAT_LOG("100%"); printf("100%%\n");
    LAT_LOG("%99999d", 1); printf("1\n");
    LAT_LOG("%p", unterminated); printf("%p\n", (void *)unterminated);
    LAT_LOG("%d", (long long)-1); printf("-1\n");
}
#pragma GCC diagnostic pop

#endif
