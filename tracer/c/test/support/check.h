// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Output of tests: one line per fact, `ok NAME`, `FAIL NAME why` or `SKIPPED: NAME why`.
 * TEST_VARIANT of the environment, the build variant, is appended to the name.
 */
#ifndef TEST_CHECK_H
#define TEST_CHECK_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures;
static char check_why[512];

static void check_line(const char *word, const char *name, const char *why)
{
    const char *variant = getenv("TEST_VARIANT");
    printf("%s %s%s%s%s%s%s\n", word, name, variant != NULL ? " [" : "",
           variant != NULL ? variant : "", variant != NULL ? "]" : "", why[0] != 0 ? " " : "", why);
    fflush(stdout);
}

/** Notes the first failure of the fact under test. */
static inline __attribute__((format(printf, 2, 3))) int check(int holds, const char *format, ...)
{
    va_list arguments;
    if (holds || check_why[0] != 0)
        return holds;
    va_start(arguments, format);
    vsnprintf(check_why, sizeof check_why, format, arguments);
    va_end(arguments);
    for (char *at = check_why; *at != 0; at++)
        if (*at == '\n')
            *at = ' ';
    if (check_why[0] == 0)
        strcpy(check_why, "failed");
    return holds;
}
#define CHECK(condition)                                                                       \
    check((condition) != 0, "%s (line %d)", #condition, __LINE__)
/** Compares two unsigned numbers and shows both. */
static inline int check_equal(const char *what, unsigned long long found,
                              unsigned long long expected, int line)
{
    return check(found == expected, "%s is %llu and not %llu (line %d)", what, found, expected,
                 line);
}
#define CHECK_EQUAL(found, expected)                                                           \
    check_equal(#found, (unsigned long long)(found), (unsigned long long)(expected), __LINE__)

/** Ends a fact: prints its line. */
static inline void fact(const char *name)
{
    if (check_why[0] == 0) {
        check_line("ok", name, "");
    } else {
        check_line("FAIL", name, check_why);
        check_failures++;
    }
    check_why[0] = 0;
}

static inline void skip_fact(const char *name, const char *why)
{
    check_line("SKIPPED:", name, why);
    check_why[0] = 0;
}

/** The exit status of a test. */
static inline int check_status(void)
{
    return check_failures != 0;
}

#endif
