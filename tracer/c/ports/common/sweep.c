// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A timer's interrupt, and a second one nested in it, occur at every instruction of the record path in turn:
 *
 *   thread       arm 0, pause K, ITEM_BEGIN, ITEM_END
 *   interrupt 0  arm 1, pause J, TIMER, TIMER      interrupt 1  TIMER
 *
 * K covers all of it, and so does J, with another step. Then once more with the packet closed first, so that
 * the first event opens one, which takes longer: two ranges of K, one after the other. Before all that the
 * events are recorded between `mark_begin` and `mark_end` without an interrupt, so that the runner knows the
 * executed instructions; there the level of TIMER is 2. With SWEEP_SENDS the packets are sent between the
 * lines of text (for a machine whose memory does not hold them), else they stay in memory. Prints:
 *
 *   marked             the code between the marks has been executed
 *   N CONTEXT COUNT    events of a context that were recorded or counted as lost
 *   H LEVEL ADDRESS    an interrupt of this level occurred before this instruction
 *   A ADDRESS BYTES, and `done`
 */
#include <items.h>
#ifdef SWEEP_SENDS
#include <lat/small_serial.h>
#endif

#include "lat_port.h"
#include "text.h"

#ifndef SWEEP_TICKS
#define SWEEP_TICKS 6u
#endif
#ifndef SWEEP_FAR_TICKS
#define SWEEP_FAR_TICKS 11u /* as many more instructions as K has steps, or fewer */
#endif
#ifndef SWEEP_PACKETS
#define SWEEP_PACKETS 8192u
#endif
#define STEPS 256u /* of K */
#ifndef INNER_STEPS
#define INNER_STEPS 24u
#endif
#ifndef OPEN_STEPS
#define OPEN_STEPS 4u
#endif
#ifndef CODE_BYTES
#define CODE_BYTES 16384u /* of the image */
#endif

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
static volatile uint32_t outer_came, inner_came, inner, inner_ticks;
static uint32_t thread_count, outer_count, inner_count;
static uint8_t hit[2][CODE_BYTES / 8u];
#ifdef SWEEP_SENDS
static struct lat_serial serial;
#endif

/* Not inlined, so that no code moves across. */
__attribute__((noinline)) void mark_begin(void);
__attribute__((noinline)) void mark_end(void);
void mark_begin(void)
{
    __asm__ volatile("" ::: "memory");
}
void mark_end(void)
{
    __asm__ volatile("" ::: "memory");
}

/* The code is at the start of a memory with this alignment. */
static uintptr_t code_begin(void)
{
    return (uintptr_t)&mark_begin & ~(uintptr_t)(CODE_BYTES - 1u);
}

static void note(unsigned level, uintptr_t pc)
{
    const uintptr_t at = pc - code_begin();
    if (at < CODE_BYTES)
        hit[level][at / 8u] = (uint8_t)(hit[level][at / 8u] | 1u << (at & 7u));
}

/* Separate functions: both are executed from two places. */
__attribute__((noinline)) static void outer_events(uint8_t level)
{
    lat_items_timer(level, outer_count++);
    lat_items_timer(level, outer_count++);
}

__attribute__((noinline)) static void thread_events(void)
{
    lat_items_item_begin(thread_count);
    lat_items_item_end(thread_count);
    thread_count++;
}

void on_timer(unsigned level, uintptr_t pc)
{
    note(level, pc);
    if (level == 0) {
        board_arm(1, inner_ticks);
        board_pause(inner);
        outer_events(0);
        outer_came = 1;
        while (inner_came == 0) {
        }
    } else {
        lat_items_timer(1, inner_count++);
        inner_came = 1;
    }
}

static void give_packets(void)
{
#ifdef SWEEP_SENDS
    while (lat_serial_send(&serial) != 0) {
    }
#endif
}

static void sweep(uint32_t ticks, uint32_t inner_steps, int opens)
{
    static uint32_t step;
    for (uint32_t k = 0; k < STEPS; k++) {
        for (uint32_t i = 0; i < inner_steps; i++) {
            outer_came = inner_came = 0;
            /* 11 and 256 are coprime: all positions of J occur in 256 steps, and in the next ones with
             * another tick, which may be as long as half of what J covers. */
            inner = step * 11u & 255u;
            inner_ticks = SWEEP_TICKS + (step >> 8 & 1u);
            step++;
            if (opens)
                lat_small_close();
            /* The wait loop sees a tick one, two or three instructions late, not always the same number. */
            board_pause(i);
            board_arm(0, ticks);
            board_pause(k);
            thread_events();
            while (outer_came == 0) {
            }
            lat_small_keep_time();
            give_packets();
        }
    }
}

static void put_hits(unsigned level)
{
    for (uint32_t at = 0; at < CODE_BYTES; at++) {
        if ((hit[level][at / 8u] >> (at & 7u) & 1u) != 0) {
            put_text("H");
            put_field(level);
            board_put(' ');
            put_hex(code_begin() + at);
            board_put('\n');
        }
    }
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {board_area_bytes, 512, SWEEP_PACKETS, LAT_SMALL_MODE_DISCARD,
                                          schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK) {
        put_text("fault: no area\n");
        board_stop();
    }
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
#ifdef SWEEP_SENDS
    lat_serial_begin(&serial, 256, 0, LAT_SERIAL_TEXTS);
#endif
    for (int closed = 0; closed < 2; closed++) {
        thread_events(); /* opens a packet and writes a WRITER record */
        if (closed)
            lat_small_close();
        mark_begin();
        thread_events();
        mark_end();
        mark_begin();
        outer_events(2);
        mark_end();
    }
    outer_count = 0;
    put_text("marked\n");
    sweep(SWEEP_TICKS, INNER_STEPS, 0);
    sweep(SWEEP_TICKS, OPEN_STEPS, 1);
    sweep(SWEEP_FAR_TICKS, OPEN_STEPS, 1);
    lat_small_close();
    give_packets();
#ifdef SWEEP_SENDS
    lat_serial_end(&serial);
    board_put('\n');
#endif
    put_text("N thread");
    put_field((uint64_t)thread_count * 2u);
    put_text("\nN outer");
    put_field(outer_count);
    put_text("\nN inner");
    put_field(inner_count);
    board_put('\n');
    put_hits(0);
    put_hits(1);
    put_text("A ");
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
