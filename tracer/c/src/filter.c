// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Filters of events: spec/ring-abi.md §11. Freestanding.
 *
 * A filter is in memory that others write, at any time and in any order, so each of its numbers is
 * read once and checked before use. An invalid filter accepts the event.
 */
#include "filter.h"

/* A number in native byte order. `bytes` is 1, 2, 4 or 8. */
static uint64_t number_at(const uint8_t *data, uint32_t bytes)
{
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1:
        return *data;
    case 2:
        __builtin_memcpy(&two, data, sizeof two);
        return two;
    case 4:
        __builtin_memcpy(&four, data, sizeof four);
        return four;
    default:
        __builtin_memcpy(&eight, data, sizeof eight);
        return eight;
    }
}

/* Loads the 1, 2, 4 or 8 bytes of the payload at `offset` as a number. @return whether the payload
 * contains them all. */
static int load(const struct lat_i_piece *pieces, uint32_t count, uint32_t offset, uint32_t bytes,
                uint64_t *value)
{
    uint32_t got = 0;
    size_t start = 0;
    /* The usual case: packed words are one piece. */
    if (count != 0 && offset + bytes <= pieces[0].bytes) {
        *value = number_at((const uint8_t *)pieces[0].data + offset, bytes);
        return 1;
    }
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

/* For each comparison, whether it holds if the field is greater (1), equal (2), less (4): EQ 2, NE 5,
 * LT 4, LE 6, GT 1, GE 3, four bits each from the lowest; always true for the two undefined ones. */
#define RELATIONS_THAT_HOLD 0x77316452u

static int compare(uint32_t how, uint64_t field, uint64_t value)
{
    /* Maps signed order to unsigned order. */
    const uint64_t flip = (uint64_t)(how & LAT_FILTER_SIGNED) << 60;
    const uint64_t a = field ^ flip, b = value ^ flip;
    const uint32_t relation = a > b ? 1u : a == b ? 2u : 4u;
    return (RELATIONS_THAT_HOLD >> 4u * (how & 7u) & relation) != 0;
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
    /* Each step leads to a later one, so there are at most as many iterations as steps. */
    for (;;) {
        const volatile struct lat_filter_step *step = &shared->steps[at];
        const uint32_t bytes = step->bytes, how = step->compare;
        uint64_t field;
        if (bytes == 0 || bytes > 8 || (bytes & (bytes - 1)) != 0 ||
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
    if (load(pieces, count, 0, 8, &word))
        return word;
    word = 0;
    for (uint32_t i = 0; i < 8 && load(pieces, count, i, 1, &byte); i++)
        word |= LAT_I_PACK(byte, 8u * i, 8);
    return word;
}
