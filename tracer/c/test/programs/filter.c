// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Filters: each comparison, fields across the pieces of a payload, and safety for
 * arbitrary bytes of a filter.
 */
#include "../support/check.h"

#include "filter.h"

#include <stdint.h>

#define RANDOM_FILTERS 200000u

static uint64_t state = 0x9e3779b97f4a7c15u;
static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* One step on the first `bytes` bytes of a payload. */
static int one(uint8_t bytes, unsigned compare, uint64_t mask, uint64_t value, uint64_t payload)
{
    struct lat_area_filter filter = {.step_count = 1};
    const struct lat_i_piece piece = {&payload, 8};
    filter.steps[0] = (struct lat_filter_step){.bytes = bytes,
                                               .compare = (uint8_t)compare,
                                               .if_true = LAT_FILTER_ACCEPT,
                                               .if_false = LAT_FILTER_REJECT,
                                               .mask = mask,
                                               .value = value};
    return lat_i_filter_passes(&filter, &piece, 1);
}

static void comparisons(void)
{
    const uint64_t all = UINT64_MAX;
    CHECK(one(8, LAT_FILTER_EQ, all, 7, 7) && !one(8, LAT_FILTER_EQ, all, 7, 8));
    CHECK(one(8, LAT_FILTER_NE, all, 7, 8) && !one(8, LAT_FILTER_NE, all, 7, 7));
    CHECK(one(8, LAT_FILTER_LT, all, 7, 6) && !one(8, LAT_FILTER_LT, all, 7, 7));
    CHECK(one(8, LAT_FILTER_LE, all, 7, 7) && !one(8, LAT_FILTER_LE, all, 7, 8));
    CHECK(one(8, LAT_FILTER_GT, all, 7, 8) && !one(8, LAT_FILTER_GT, all, 7, 7));
    CHECK(one(8, LAT_FILTER_GE, all, 7, 7) && !one(8, LAT_FILTER_GE, all, 7, 6));
    CHECK(one(8, LAT_FILTER_EQ, 0xf0, 0x10, 0x1f) && !one(8, LAT_FILTER_EQ, 0xf0, 0x10, 0x2f));
    CHECK(one(8, LAT_FILTER_GT, all, INT64_MAX, UINT64_MAX));
    CHECK(!one(8, LAT_FILTER_GT | LAT_FILTER_SIGNED, all, INT64_MAX, UINT64_MAX));
    fact("a filter compares as numbers are compared");
    for (uint8_t bytes = 1; bytes <= 8; bytes = (uint8_t)(bytes * 2)) {
        const int8_t minus[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
        uint64_t payload;
        memcpy(&payload, minus, sizeof payload);
        const uint64_t unsigned_one = bytes == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
        CHECK(one(bytes, LAT_FILTER_EQ, all, unsigned_one, payload));
        CHECK(one(bytes, LAT_FILTER_EQ | LAT_FILTER_SIGNED, all, (uint64_t)-1, payload));
        CHECK(one(bytes, LAT_FILTER_LT | LAT_FILTER_SIGNED, all, 0, payload));
    }
    fact("a filter knows width and sign of a field");
}

static void pieces(void)
{
    const uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct lat_area_filter filter = {.step_count = 1};
    uint32_t expected;
    memcpy(&expected, bytes + 2, sizeof expected);
    for (size_t cut = 0; cut <= 8; cut++) {
        const struct lat_i_piece parts[3] = {{bytes, cut}, {NULL, 0}, {bytes + cut, 8 - cut}};
        filter.steps[0] = (struct lat_filter_step){2, 4, LAT_FILTER_EQ, LAT_FILTER_ACCEPT,
                                                   LAT_FILTER_REJECT, 0, UINT64_MAX, expected};
        CHECK(lat_i_filter_passes(&filter, parts, 3));
        filter.steps[0].value++;
        CHECK(!lat_i_filter_passes(&filter, parts, 3));
    }
    fact("a field may lie in several pieces");
    const struct lat_i_piece whole = {bytes, 8};
    for (unsigned offset = 5; offset <= UINT16_MAX; offset += 97) {
        filter.steps[0].offset = (uint16_t)offset;
        CHECK(lat_i_filter_passes(&filter, &whole, 1));
    }
    fact("what is behind the payload is not looked at: the event is recorded");
}

static void nonsense(void)
{
    const uint64_t word = 0;
    const struct lat_i_piece piece = {&word, 8};
    struct lat_area_filter filter = {.step_count = 2};
    for (unsigned i = 0; i < 2; i++)
        filter.steps[i] = (struct lat_filter_step){0, 8, LAT_FILTER_EQ, 0, 0, 0, UINT64_MAX, 0};
    CHECK(lat_i_filter_passes(&filter, &piece, 1)); /* back to the first */
    filter.steps[0].if_true = 1;
    filter.steps[1].if_true = 1;
    CHECK(lat_i_filter_passes(&filter, &piece, 1)); /* to itself */
    filter.steps[1].if_true = 2;
    CHECK(lat_i_filter_passes(&filter, &piece, 1)); /* beyond the last */
    filter.steps[1].if_true = LAT_FILTER_REJECT;
    CHECK(!lat_i_filter_passes(&filter, &piece, 1));
    filter.step_count = 0;
    CHECK(lat_i_filter_passes(&filter, &piece, 1));
    filter.step_count = LAT_FILTER_STEPS + 1;
    CHECK(lat_i_filter_passes(&filter, &piece, 1));
    fact("a filter that makes no sense lets events be recorded");

    unsigned rejected = 0;
    for (unsigned i = 0; i < RANDOM_FILTERS; i++) {
        for (size_t at = 0; at < sizeof filter; at += 8) {
            const uint64_t random = next_random();
            memcpy((char *)&filter + at, &random, 8);
        }
        /* Mostly filters whose steps lead somewhere. */
        filter.step_count = (uint32_t)(next_random() % 20);
        for (unsigned s = 0; s < LAT_FILTER_STEPS; s++) {
            filter.steps[s].offset &= 31;
            filter.steps[s].bytes = (uint8_t)(1u << (filter.steps[s].bytes & 3));
            filter.steps[s].if_true |= (next_random() & 1) != 0 ? 0xfe : 0;
        }
        /* Exact size, so that a sanitizer detects reads past its end. */
        const size_t bytes = (size_t)(next_random() % 24);
        uint8_t *payload = (uint8_t *)malloc(bytes + 1), *exact = payload + 1;
        const struct lat_i_piece parts[2] = {{exact, bytes / 2},
                                             {exact + bytes / 2, bytes - bytes / 2}};
        for (size_t b = 0; b < bytes; b++)
            exact[b] = (uint8_t)next_random();
        rejected += !lat_i_filter_passes(&filter, parts, 2);
        free(payload);
    }
    CHECK(rejected > 0 && rejected < RANDOM_FILTERS);
    fact("no bytes of a filter make it read elsewhere or go on for ever");
}

int main(void)
{
    comparisons();
    pieces();
    nonsense();
    return check_status();
}
