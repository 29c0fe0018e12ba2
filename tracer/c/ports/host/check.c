// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Cases that no image covers: clocks that wrap, stop and run backwards, sequence numbers beyond 32 bits,
 * packets taken while recording. `check CASE FILE` writes the memory to FILE; the runner reads it. The value
 * of each event is its true time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <items.h>

#include "lat_port.h"

#define AREA_BYTES (1u << 20)
_Alignas(64) uint64_t lat_port_area[AREA_BYTES / 8u];
uint64_t test_clock = 5;
uint32_t test_context;

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
static struct lat_small_ring *const ring = (void *)((char *)lat_port_area + sizeof(struct lat_small_header));
static uint64_t state = 88172645463325252u;

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);                 \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

/* Marsaglia's xorshift64. */
static uint64_t next_number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void set_up(uint32_t packet_bytes, uint32_t packets, uint32_t mode)
{
    const struct lat_small_setup setup = {AREA_BYTES, packet_bytes, packets, mode, schemas, 1};
    CHECK(lat_small_init(&setup) == LAT_SMALL_OK);
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
}

/* Steps of all sizes, up to the maximum between two calls of lat_small_keep_time. */
static void clock_goes_round(void)
{
    test_clock = 0xfffffff0u;
    set_up(512, 512, LAT_SMALL_MODE_DISCARD);
    for (uint32_t i = 0; i < 3000; i++) {
        const uint64_t most = UINT64_C(1) << (next_number() % 31u);
        test_clock += next_number() % most;
        lat_small_keep_time();
        test_context = (uint32_t)(next_number() % 3u);
        lat_items_wide(test_clock);
        if (i % 500 == 0) /* the clock does not advance */
            lat_items_wide(test_clock);
    }
    CHECK(ring->lost_full == 0 && ring->clock_backward == 0);
}

static void clock_runs_backwards(void)
{
    set_up(512, 64, LAT_SMALL_MODE_DISCARD);
    test_clock = 1000000;
    for (uint32_t i = 0; i < 100; i++) {
        test_clock += i == 50 ? (uint64_t)-500 : 10; /* once within a packet */
        lat_items_wide(test_clock);
    }
    lat_small_close();
    test_clock -= 500; /* and once between two: the core orders their opening times */
    lat_items_wide(test_clock);
}

static void sequence_leaves_32_bits(void)
{
    set_up(256, 4, LAT_SMALL_MODE_OVERWRITE);
    ring->sequence = 0xfffffffcu;
    ring->sequence_high = 0;
    for (uint32_t i = 0; i < 80; i++) {
        test_clock += 10;
        lat_items_wide(test_clock);
    }
    CHECK(ring->sequence_high == 1);
}

static void packets_are_taken(void)
{
    uint32_t bytes = 0, events = 0;
    set_up(256, 4, LAT_SMALL_MODE_DISCARD);
    CHECK(lat_small_take(0, &bytes) == NULL && lat_small_take(1, &bytes) == NULL);
    for (uint32_t i = 0; i < 1000; i++) {
        test_clock += 10;
        lat_items_wide(test_clock);
        const struct lat_small_packet *packet = lat_small_take(0, &bytes);
        if (packet == NULL)
            continue;
        CHECK(packet->sequence == ring->consumed && bytes == 256 && packet->lost_full == 0);
        events += (bytes - 32u - 16u) / 16u;
        lat_small_give_back(0);
    }
    CHECK(ring->lost_full == 0);
    lat_small_close();
    lat_small_close();
    while (lat_small_take(0, &bytes) != NULL) {
        events += (bytes - 32u - 16u) / 16u;
        lat_small_give_back(0);
    }
    CHECK(events == 1000);
    /* Packets that are not taken fill the ring: further events are counted. 13 events a packet. */
    for (uint32_t i = 0; i < 100; i++)
        lat_items_wide(++test_clock);
    CHECK(ring->lost_full == 100u - 4u * 13u);
    /* Inside another record: counted, without any other change. */
    const uint32_t cursor = ring->cursor;
    ring->busy = 1;
    lat_items_wide(1);
    lat_items_idle();
    lat_items_named("nested", 1);
    lat_small_close();
    ring->busy = 0;
    CHECK(ring->lost_nested == 3 && ring->cursor == cursor);
}

static void before_and_after(void)
{
    CHECK(lat_small_left(AREA_BYTES) == 0);
    lat_small_keep_time();
    lat_small_close();
    lat_small_name("nobody");
    set_up(256, 4, LAT_SMALL_MODE_OVERWRITE);
    const uint32_t bytes = lat_small_bytes(256, 4, 1);
    CHECK(lat_small_left(AREA_BYTES) == bytes && lat_small_left(bytes) == bytes);
    CHECK(lat_small_left(bytes - 1) == 0 && lat_small_left(0) == 0);
    lat_items_wide(1);
    /* A reset that keeps the memory, and one that keeps all of it except one word. */
    set_up(256, 4, LAT_SMALL_MODE_OVERWRITE);
    struct lat_small_header *const header = (void *)lat_port_area;
    CHECK(header->generation == 2);
    header->packet_bytes = 384;
    CHECK(lat_small_left(AREA_BYTES) == 0);
    set_up(256, 4, LAT_SMALL_MODE_OVERWRITE);
    CHECK(header->generation == 1 && ring->cursor == 0);
    CHECK(lat_small_bytes(32768, 65536, 0) == 0);
    CHECK(lat_small_bytes(256, 2, 65536) == 0 && lat_small_bytes(0, 0, 0) == 0);
    lat_items_wide(test_clock);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"clock-goes-round", clock_goes_round},
        {"clock-runs-backwards", clock_runs_backwards},
        {"sequence-leaves-32-bits", sequence_leaves_32_bits},
        {"packets-are-taken", packets_are_taken},
        {"before-and-after", before_and_after},
    };
    CHECK(count == 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(arguments[1], cases[i].name) != 0)
            continue;
        cases[i].run();
        FILE *file = fopen(arguments[2], "wb");
        CHECK(file != NULL && fwrite(lat_port_area, 1, AREA_BYTES, file) == AREA_BYTES && fclose(file) == 0);
        return 0;
    }
    return 2;
}
