// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The content of the memory if the program ends at any instruction of a record: an unmaskable
 * interrupt copies the area, at each instruction in turn. The ring is full, so that the record opens a packet
 * in the place of another one. Prints
 *
 *   C OFFSET BYTES COUNT    offset, length and number of the copies in memory; then `done`
 */
#include <items.h>

#include "lat_port.h"
#include "text.h"

#define PACKET_BYTES 256u
#define PACKETS 2u
/* A packet: header of 32 bytes, WRITER record and events of 16 bytes each. */
#define EVENTS (PACKETS * ((PACKET_BYTES - 32u - 16u) / 16u))
#define TICKS 8u
#define STEPS 256u
#define COPIES_OFFSET 4096u

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
static volatile uint32_t came;
static uint32_t area_words, step;

void on_timer(unsigned level, uintptr_t pc)
{
    (void)level;
    (void)pc;
    uint64_t *copy = lat_port_area + COPIES_OFFSET / 8u + step * area_words;
    for (uint32_t i = 0; i < area_words; i++)
        copy[i] = lat_port_area[i];
    came = 1;
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {
        COPIES_OFFSET, PACKET_BYTES, PACKETS, LAT_SMALL_MODE_OVERWRITE, schemas, 1};
    area_words = lat_small_bytes(PACKET_BYTES, PACKETS, 1) / 8u;
    for (step = 0; step < STEPS; step++) {
        if (lat_small_init(&setup) != LAT_SMALL_OK) {
            put_text("fault: no area\n");
            board_stop();
        }
        lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
        uint32_t n = 0;
        while (n < EVENTS)
            lat_items_item_begin(n++);
        came = 0;
        board_arm(0, TICKS);
        board_pause(step);
        lat_items_item_begin(n);
        lat_items_item_begin(n + 1u);
        while (came == 0) {
        }
    }
    put_text("C");
    put_field(COPIES_OFFSET);
    put_field(area_words * 8u);
    put_field(STEPS);
    put_text("\ndone\n");
    board_stop();
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}
