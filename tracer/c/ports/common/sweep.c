// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A timer's interrupt, and a second one inside it, come at every instruction of the record path in turn:
 *
 *   thread       arm 0, pause K, ITEM_BEGIN, ITEM_END
 *   interrupt 0  arm 1, pause J, TIMER, TIMER      interrupt 1  TIMER
 *
 * K goes over all of it, J too, by another step. Prints:
 *
 *   N CONTEXT COUNT    events of a context that were recorded or counted as lost
 *   H ADDRESS          interrupt 0 came before this instruction of lat_i_small_half
 *   A ADDRESS BYTES, and `done`
 */
#include <items.h>

#include "lat_port.h"
#include "text.h"

#ifndef SWEEP_TICKS
#define SWEEP_TICKS 6u
#endif
#ifndef SWEEP_STEPS
#define SWEEP_STEPS 256u /* of K */
#endif
#define INNER_STEPS 24u
#define PATH_BYTES 512u

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
static volatile uint32_t outer_came, inner_came, inner;
static uint32_t outer_count, inner_count;
static uint8_t hit[PATH_BYTES];

void on_timer(unsigned level, uintptr_t pc)
{
    if (level == 0) {
        const uintptr_t at = pc - ((uintptr_t)&lat_i_small_half & ~(uintptr_t)1);
        if (at < PATH_BYTES)
            hit[at] = 1;
        board_arm(1, SWEEP_TICKS);
        board_pause(inner);
        lat_items_timer(0, outer_count++);
        lat_items_timer(0, outer_count++);
        outer_came = 1;
        while (inner_came == 0) {
        }
    } else {
        lat_items_timer(1, inner_count++);
        inner_came = 1;
    }
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {board_area_bytes, 32768, 128, LAT_SMALL_MODE_DISCARD, schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK) {
        put_text("fault: no area\n");
        board_stop();
    }
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
    uint32_t n = 0, j = 0;
    for (uint32_t k = 0; k < SWEEP_STEPS; k++) {
        for (uint32_t i = 0; i < INNER_STEPS; i++) {
            /* 11 has no divisor in common with 256: all of J's positions come, each as often. */
            j = (j + 11u) & 255u;
            outer_came = inner_came = 0;
            inner = j;
            board_arm(0, SWEEP_TICKS);
            board_pause(k);
            lat_items_item_begin(n);
            lat_items_item_end(n);
            n++;
            while (outer_came == 0) {
            }
            lat_small_keep_time();
        }
    }
    put_text("N thread");
    put_field((uint64_t)n * 2u);
    put_text("\nN outer");
    put_field(outer_count);
    put_text("\nN inner");
    put_field(inner_count);
    for (uint32_t at = 0; at < PATH_BYTES; at++) {
        if (hit[at]) {
            put_text("\nH ");
            put_hex(((uintptr_t)&lat_i_small_half & ~(uintptr_t)1) + at);
        }
    }
    put_text("\nA ");
    put_hex((uintptr_t)lat_port_area);
    put_field(lat_small_left(board_area_bytes));
    put_text("\ndone\n");
    board_stop();
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}
