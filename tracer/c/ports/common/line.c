// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Records in a thread and in a timer's interrupts, and sends the packets over a line from the thread, as
 * an idle loop or a task of low priority would. Prints lines of text like example.c, on the console; on a
 * machine with one line only, between the frames.
 */
#include <items.h>
#include <lat/small_serial.h>

#include "lat_port.h"
#include "text.h"

#define ITEMS 300u
#define TIMERS 40u

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
static struct lat_serial serial;
static volatile uint32_t timers;
static volatile uint32_t timer_context;

/* Prints nothing, because it may run inside a frame. */
void on_timer(unsigned level, uintptr_t pc)
{
    (void)pc;
    timer_context = lat_port_context();
    lat_items_timer((uint8_t)level, timers);
    timers++;
    if (timers < TIMERS)
        board_arm(0, 50);
}

static void line(uint32_t context, const char *name)
{
    put_text("E 0");
    put_field(context == 0 ? LAT_SMALL_THREAD : context);
    board_put(' ');
    put_text(name);
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {board_area_bytes, 512, 4, LAT_SMALL_MODE_DISCARD, schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK)
        board_stop();
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
    lat_small_name("main");
    lat_serial_begin(&serial, 16, 0, LAT_SERIAL_TEXTS);
    board_arm(0, 50);
    for (uint32_t n = 0; n < ITEMS; n++) {
        lat_items_item_begin(n);
        line(lat_port_context(), "ITEM_BEGIN");
        put_field(n);
        lat_items_named("of a line", (uint16_t)n);
        board_put('\n');
        line(lat_port_context(), "NAMED");
        put_text(" \"of a line\"");
        put_field(n);
        board_put('\n');
        lat_items_item_end(n);
        line(lat_port_context(), "ITEM_END");
        put_field(n);
        board_put('\n');
        lat_small_keep_time();
        while (lat_serial_send(&serial) != 0) {
        }
    }
    while (timers < TIMERS) {
    }
    lat_serial_end(&serial);
    for (uint32_t n = 0; n < TIMERS; n++) {
        line(timer_context, "TIMER 0");
        put_field(n);
        board_put('\n');
    }
    put_text("\ndone\n");
    board_stop();
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}
