// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The functions of a C library that the kernel uses, for images without one. */
#ifndef STRING_H
#define STRING_H
#include <stddef.h>
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int value, size_t bytes);
int memcmp(const void *one, const void *other, size_t bytes);
size_t strlen(const char *text);
#endif
