// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Events with self-checking payloads: writer, number, and a hash of both. */
#ifndef TEST_VALUES_H
#define TEST_VALUES_H

#include "area_reader.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define VALUE_NUMBERS (UINT64_C(1) << 32)

static inline uint64_t value_make(uint64_t writer, uint64_t number)
{
    const uint64_t both = writer << 48 | number << 16;
    return both | ((both * UINT64_C(0x9e3779b97f4a7c15)) >> 48);
}
static inline int value_holds(uint64_t value)
{
    return value_make(value >> 48, value >> 16 & 0xffffffff) == value;
}
static inline uint64_t value_writer(uint64_t value)
{
    return value >> 48;
}
static inline uint64_t value_number(uint64_t value)
{
    return value >> 16 & 0xffffffff;
}

/** Records event `number` of a writer: mostly small ones, occasionally each other kind. */
static inline void value_emit(uint64_t writer, uint64_t number)
{
    const uint64_t v = value_make(writer, number);
    char text[40];
    switch (number % 64) {
    case 7:
        lat_t_four(v, v ^ 1, v ^ 2, v ^ 3);
        break;
    case 23:
        lat_t_eight(v, v ^ 1, v ^ 2, v ^ 3, v ^ 4, v ^ 5, v ^ 6, v ^ 7);
        break;
    case 31:
        snprintf(text, sizeof text, "%.*s%llx", (int)(number / 64 % 9), "........",
                 (unsigned long long)v);
        lat_t_text(v, text);
        break;
    case 47:
        lat_t_sixteen(v, v ^ 1, v ^ 2, v ^ 3, v ^ 4, v ^ 5, v ^ 6, v ^ 7, v ^ 8, v ^ 9, v ^ 10,
                      v ^ 11, v ^ 12, v ^ 13, v ^ 14, v ^ 15);
        break;
    default:
        lat_t_one(v);
    }
}

/** Whether a record of value_emit is valid; returns its first word. `event` is relative to the base. */
static inline int value_read(const struct record *record, uint32_t event, uint64_t *value)
{
    uint64_t words[16];
    char text[40];
    const size_t count = record->bytes / 8;
    memcpy(value, record->payload, 8);
    if (!value_holds(*value))
        return 0;
    if (event == 6) { /* TEXT */
        snprintf(text, sizeof text, "%.*s%llx", (int)(value_number(*value) / 64 % 9), "........",
                 (unsigned long long)*value);
        return strcmp((const char *)record->payload + 8, text) == 0;
    }
    memcpy(words, record->payload, count * 8);
    for (size_t i = 0; i < count; i++)
        if (words[i] != (*value ^ i))
            return 0;
    return 1;
}

#endif
