// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Filters of events: spec/ring-abi.md §11. Freestanding.
 *
 * A filter lies in memory that others write, at any time and in any order: so each number of it is
 * read once and checked before it is used. Whatever does not make sense lets the event be recorded.
 */
#include "filter.h"

/* The bytes of the payload from `offset` on, as a number. @return whether it has them all. */
static int load(const struct lat_i_piece *pieces, uint32_t count, uint32_t offset, uint32_t bytes,
                uint64_t *value)
{
    uint32_t got = 0;
    size_t start = 0;
    *value = 0;
    for (uint32_t i = 0; i < count && got < bytes; i++) {
        const uint8_t *data = (const uint8_t *)pieces[i].data;
        for (; got < bytes && offset + got - start < pieces[i].bytes; got++) {
            const uint64_t byte = data[offset + got - start];
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            *value |= byte << (8u * got);
#else
            *value = *value << 8 | byte;
#endif
        }
        start += pieces[i].bytes;
    }
    return got == bytes;
}

static int compare(uint32_t how, uint64_t field, uint64_t value)
{
    /* Signed numbers in the order of unsigned ones. */
    const uint64_t flip = (how & LAT_FILTER_SIGNED) != 0 ? UINT64_C(1) << 63 : 0;
    const uint64_t a = field ^ flip, b = value ^ flip;
    switch (how & 7u) {
    case LAT_FILTER_EQ:
        return a == b;
    case LAT_FILTER_NE:
        return a != b;
    case LAT_FILTER_LT:
        return a < b;
    case LAT_FILTER_LE:
        return a <= b;
    case LAT_FILTER_GT:
        return a > b;
    case LAT_FILTER_GE:
        return a >= b;
    default:
        return 1;
    }
}

static uint64_t extend_sign(uint64_t field, uint32_t bytes)
{
    const uint64_t sign = UINT64_C(1) << (8u * bytes - 1u);
    return (field ^ sign) - sign;
}

int lat_i_filter_passes(const struct lat_area_filter *filter, const struct lat_i_piece *pieces,
                        uint32_t count)
{
    const volatile struct lat_area_filter *shared = filter;
    const uint32_t step_count = shared->step_count;
    uint32_t at = 0;
    if (step_count == 0 || step_count > LAT_FILTER_STEPS)
        return 1;
    /* Each step leads to a later one: as many turns as there are steps, at most. */
    for (;;) {
        const volatile struct lat_filter_step *step = &shared->steps[at];
        const uint32_t bytes = step->bytes, how = step->compare;
        uint64_t field;
        if ((bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) ||
            !load(pieces, count, step->offset, bytes, &field))
            return 1;
        if ((how & LAT_FILTER_SIGNED) != 0)
            field = extend_sign(field, bytes);
        const int holds = compare(how, field & step->mask, step->value);
        const uint32_t next = holds ? step->if_true : step->if_false;
        if (next == LAT_FILTER_REJECT)
            return 0;
        if (next <= at || next >= step_count)
            return 1; /* LAT_FILTER_ACCEPT, too */
        at = next;
    }
}

uint64_t lat_i_first_word(const struct lat_i_piece *pieces, uint32_t count)
{
    uint64_t word = 0, byte;
    for (uint32_t i = 0; i < 8 && load(pieces, count, i, 1, &byte); i++)
        word |= LAT_I_PACK(byte, 8u * i, 8);
    return word;
}
