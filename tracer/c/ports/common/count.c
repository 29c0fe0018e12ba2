// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The cost of an event: the runner counts the instructions between the markers. Prints
 *
 *   S WHAT BYTES    sizes: the area for 32 events and 4 packets of 512 bytes, and the switches
 *   I WHAT          the operation between the markers, in their order
 */
#include <many.h>

#include "lat_port.h"
#include "text.h"

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(many)};

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

/* An event as in a program: a function of its own, with arguments in registers. */
__attribute__((noinline)) static void nothing(uint32_t a)
{
    __asm__ volatile("" : : "r"(a) : "memory");
}
__attribute__((noinline)) static void event_0(uint32_t a)
{
    (void)a;
    lat_many_e0();
}
__attribute__((noinline)) static void event_1(uint32_t a)
{
    lat_many_e1(a);
}
__attribute__((noinline)) static void event_4(uint32_t a)
{
    lat_many_e4(a, a + 1u, a + 2u, a + 3u);
}
__attribute__((noinline)) static void event_off(uint32_t a)
{
    lat_many_off(a);
}

/* With `opens` the packet is closed first, so that the event opens one and writes a WRITER record. */
static void count(const char *name, void (*event)(uint32_t), int opens, int is_printed)
{
    if (is_printed) {
        put_text("I ");
        put_text(name);
        board_put('\n');
        return;
    }
    if (opens)
        lat_small_close();
    mark_begin();
    event(7);
    mark_end();
}

void on_timer(unsigned level, uintptr_t pc)
{
    (void)level;
    (void)pc;
}

/* The measurement first, then the name: printing is executed outside of the markers. */
static void each(int is_printed)
{
    count("nothing", nothing, 0, is_printed);
    count("disabled", event_off, 0, is_printed);
    count("0 arguments", event_0, 0, is_printed);
    count("1 argument", event_1, 0, is_printed);
    count("4 arguments", event_4, 0, is_printed);
    count("1 argument and a packet", event_1, 1, is_printed);
}

_Noreturn void program(void)
{
    const struct lat_small_setup setup = {lat_small_bytes(512, 4, 1), 512, 4, LAT_SMALL_MODE_OVERWRITE,
                                          schemas, 1};
    if (lat_small_init(&setup) != LAT_SMALL_OK) {
        put_text("fault: no area\n");
        board_stop();
    }
    lat_small_enable(LAT_SCHEMA(many), LAT_SMALL_ALL, 1);
    lat_small_enable(LAT_SCHEMA(many), 3, 0);
    /* The first event opens a packet and writes a WRITER record: the next one is the usual case. */
    lat_many_e0();
    each(0);
    put_text("S area");
    put_field(lat_small_bytes(512, 4, 1));
    put_text("\nS switches");
    put_field(sizeof lat_schema_many);
    board_put('\n');
    each(1);
    put_text("done\n");
    board_stop();
}

_Noreturn void program_other(uint32_t core)
{
    (void)core;
    board_stop();
}
