// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Records in a thread and in a timer's interrupts, and writes files on the machine of the debugger: the
 * packets as they are closed, to `line.bin`; then, with a new area in overwrite mode, the memory to
 * `ram.bin`.
 * Prints events as example.c does, `E` those of the first part and `M` those of the second, `W` and the
 * number of bytes not written, and `done`.
 */
#include <items.h>
#include <lat/small_semihosting.h>
#include <lat/small_serial.h>

#include "lat_port.h"
#include "text.h"

#define ITEMS 300u
#define TIMERS 40u
#define LATER_ITEMS 20u

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};
static struct lat_serial serial;
static intptr_t file;
static uint32_t missing;
static volatile uint32_t timers, timer_context;

void lat_port_put(const void *bytes, uint32_t count)
{
    missing += lat_semihosting_put(file, bytes, count);
}

void on_timer(unsigned level, uintptr_t pc)
{
    (void)pc;
    timer_context = lat_port_context();
    lat_items_timer((uint8_t)level, timers);
    timers++;
    if (timers < TIMERS)
        board_arm(0, 50);
}

static void line(char part, uint32_t context, const char *name)
{
    board_put(part);
    put_text(" 0");
    put_field(context == 0 ? LAT_SMALL_THREAD : context);
    board_put(' ');
    put_text(name);
}

static void put_event(char part, const char *name, uint32_t value)
{
    line(part, lat_port_context(), name);
    put_field(value);
    board_put('\n');
}

static void init(uint32_t packets, uint32_t mode)
{
    const struct lat_small_setup setup = {board_area_bytes, 512, packets, mode, schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK) {
        put_text("fault: no area\n");
        board_stop();
    }
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
}

_Noreturn void program(void)
{
    init(4, LAT_SMALL_MODE_DISCARD);
    file = lat_semihosting_open("line.bin");
    lat_serial_begin(&serial, 16, 0, LAT_SERIAL_TEXTS);
    board_arm(0, 50);
    for (uint32_t n = 0; n < ITEMS; n++) {
        lat_items_item_begin(n);
        put_event('E', "ITEM_BEGIN", n);
        lat_items_item_end(n);
        put_event('E', "ITEM_END", n);
        lat_small_keep_time();
        while (lat_serial_send(&serial) != 0) {
        }
    }
    while (timers < TIMERS) {
    }
    lat_serial_end(&serial);
    lat_semihosting_close(file);
    for (uint32_t n = 0; n < TIMERS; n++) {
        line('E', timer_context, "TIMER 0");
        put_field(n);
        board_put('\n');
    }
    init(16, LAT_SMALL_MODE_OVERWRITE);
    for (uint32_t n = 0; n < LATER_ITEMS; n++) {
        lat_items_item_begin(n);
        put_event('M', "ITEM_BEGIN", n);
    }
    missing += lat_semihosting_save("ram.bin", lat_port_area, lat_small_left(board_area_bytes));
    put_text("W");
    put_field(missing);
    put_text("\ndone\n");
    board_stop();
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}
