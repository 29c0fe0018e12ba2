// SPDX-License-Identifier: Apache-2.0 OR MIT
#include <stdint.h>
#include <string.h>

void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ((volatile uint8_t *)to)[i] = (uint8_t)value;
    return to;
}

int memcmp(const void *one, const void *other, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        const int difference = ((const uint8_t *)one)[i] - ((const uint8_t *)other)[i];
        if (difference != 0)
            return difference;
    }
    return 0;
}

size_t strlen(const char *text)
{
    size_t length = 0;
    while (((const volatile char *)text)[length] != '\0')
        length++;
    return length;
}

#ifdef __arm__
/* A function that compilers call by the run-time ABI [RTABI32, 4.3.4]: memset with swapped arguments. */
void __aeabi_memset(void *to, size_t bytes, int value);
void __aeabi_memset(void *to, size_t bytes, int value)
{
    memset(to, value, bytes);
}
void __aeabi_memclr(void *to, size_t bytes);
void __aeabi_memclr(void *to, size_t bytes)
{
    memset(to, 0, bytes);
}
void __aeabi_memset4(void *, size_t, int) __attribute__((alias("__aeabi_memset")));
void __aeabi_memset8(void *, size_t, int) __attribute__((alias("__aeabi_memset")));
void __aeabi_memclr4(void *, size_t) __attribute__((alias("__aeabi_memclr")));
void __aeabi_memclr8(void *, size_t) __attribute__((alias("__aeabi_memclr")));
void *__aeabi_memcpy(void *, const void *, size_t) __attribute__((alias("memcpy")));
void *__aeabi_memcpy4(void *, const void *, size_t) __attribute__((alias("memcpy")));
void *__aeabi_memcpy8(void *, const void *, size_t) __attribute__((alias("memcpy")));
#endif
