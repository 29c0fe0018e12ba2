// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Text on the serial line, without a C library. */
#ifndef TEXT_H
#define TEXT_H

#include "board.h"

static inline void put_text(const char *text)
{
    while (*text != '\0')
        board_put(*text++);
}

/* Decimal without a division, and with shifts by constants only: other 64-bit operations would need library
 * functions on 32-bit machines. */
static inline void put_number(uint64_t value)
{
    uint64_t power = UINT64_C(10000000000000000000);
    int started = 0;
    static const uint64_t powers[] = {
        UINT64_C(10000000000000000000), UINT64_C(1000000000000000000), UINT64_C(100000000000000000),
        UINT64_C(10000000000000000), UINT64_C(1000000000000000), UINT64_C(100000000000000),
        UINT64_C(10000000000000), UINT64_C(1000000000000), UINT64_C(100000000000),
        UINT64_C(10000000000), UINT64_C(1000000000), UINT64_C(100000000), UINT64_C(10000000),
        UINT64_C(1000000), UINT64_C(100000), UINT64_C(10000), UINT64_C(1000), UINT64_C(100),
        UINT64_C(10), UINT64_C(1)};
    for (unsigned i = 0; i < 20; i++) {
        char digit = '0';
        power = powers[i];
        while (value >= power) {
            value -= power;
            digit++;
        }
        started |= digit != '0' || i == 19;
        if (started)
            board_put(digit);
    }
}

static inline void put_hex(uint64_t value)
{
    put_text("0x");
    const uint32_t halves[2] = {(uint32_t)(value >> 32), (uint32_t)value};
    for (unsigned half = 0; half < 2; half++)
        for (int shift = 28; shift >= 0; shift -= 4)
            board_put("0123456789abcdef"[(halves[half] >> shift) & 15u]);
}

/* " VALUE" */
static inline void put_field(uint64_t value)
{
    board_put(' ');
    put_number(value);
}

#endif
