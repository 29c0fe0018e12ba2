// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Checks of the test programs on the C library, with the tracer or without. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                         \
    do {                                                                                         \
        if (!(condition)) {                                                                      \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                       \
            exit(1);                                                                             \
        }                                                                                        \
    } while (0)

#endif
