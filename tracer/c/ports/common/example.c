// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The example image of every port: creates the area in memory full of garbage, records events of every
 * shape in the thread and in a timer's interrupts, and prints each on the serial line as well:
 *
 *   R WHAT CODE                a set-up that was refused, and the error number
 *   E CORE CONTEXT NAME VALUES an event that was recorded, in the order of its context
 *   L WHAT COUNT               events that must be counted as lost, by cause
 *   A ADDRESS BYTES            address and size of the area; the last line is `done`
 */
#include <items.h>

#include "lat_port.h"
#include "text.h"

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(items)};

#ifdef EXAMPLE_OVERWRITES
#define MODE LAT_SMALL_MODE_OVERWRITE
#else
#define MODE LAT_SMALL_MODE_DISCARD
#endif
#ifndef PACKETS
#define PACKETS 64u
#define ROUNDS 40u
#endif
#define TIMERS 20u
static volatile uint32_t timers;
#if LAT_PORT_CORES > 1
static uint32_t stopped;
extern volatile uint32_t board_is_ready;
static uint8_t printing;
#endif

static void line(const char *name)
{
    put_text("E ");
#if LAT_PORT_CORES == 1
    put_number(0);
#else
    put_number(lat_port_core());
#endif
    /* The number as it is recorded. */
    put_field(lat_port_context() == 0 ? LAT_SMALL_THREAD : lat_port_context());
    board_put(' ');
    put_text(name);
}

/* Masks interrupts, so that a line printed by the interrupt does not split one of the thread. */
static lat_port_mask_t begin(const char *name)
{
    const lat_port_mask_t before = lat_port_mask();
#if LAT_PORT_CORES > 1
    while (__atomic_exchange_n(&printing, 1, __ATOMIC_ACQUIRE) != 0) {
    }
#endif
    line(name);
    return before;
}

static void end(lat_port_mask_t before)
{
    board_put('\n');
#if LAT_PORT_CORES > 1
    __atomic_store_n(&printing, 0, __ATOMIC_RELEASE);
#endif
    lat_port_unmask(before);
}

void on_timer(unsigned level, uintptr_t pc)
{
    (void)pc;
    lat_items_timer((uint8_t)level, timers);
    const lat_port_mask_t before = begin("TIMER");
    put_field(level);
    put_field(timers);
    end(before);
    timers++;
    if (timers < TIMERS)
        board_arm(0, 50);
}

/* Each shape of payload once, with values derived from `n`. */
static void every_shape(uint32_t n)
{
    /* An empty string only before all others: babeltrace2 2.0 prints the previous one for later ones. */
    static const char *const names[] = {"a", "seven b", "with \"quotes\"",
                                        "the quick brown fox jumps over the lazy dog"};
    const char *const name = n == 0 && LAT_PORT_CORES == 1u ? "" : names[n & 3u];
    lat_port_mask_t before;

    lat_items_item_begin(n);
    before = begin("ITEM_BEGIN");
    put_field(n);
    end(before);

    lat_items_idle();
    end(begin("IDLE"));

    const uint64_t wide = UINT64_C(0x123456789abcdef0) + n;
    lat_items_wide(wide);
    before = begin("WIDE");
    put_field(wide);
    end(before);

    lat_items_mixed(wide << 1, -(int32_t)n - 1, (uint8_t)(n & 255u), (n & 1u) != 0);
    before = begin("MIXED");
    put_field(wide << 1);
    put_text(" -");
    put_number((uint64_t)n + 1u);
    put_field(n & 255u);
    put_field(n & 1u);
    end(before);

    lat_items_four(n, n + 1u, n + 2u, 0xffffffffu - n);
    before = begin("FOUR");
    put_field(n);
    put_field(n + 1u);
    put_field(n + 2u);
    put_field(0xffffffffu - n);
    end(before);

    const uint64_t values[4] = {n, wide, 0, UINT64_MAX - n};
    lat_items_long(values, 0.5f);
    before = begin("LONG");
    for (unsigned i = 0; i < 4; i++)
        put_field(values[i]);
    put_text(" 0.5");
    end(before);

    lat_items_named(name, (uint16_t)n);
    before = begin("NAMED");
    put_text(" \"");
    for (const char *c = name; *c != '\0'; c++) {
        if (*c == '"')
            board_put('\\');
        board_put(*c);
    }
    board_put('"');
    put_field((uint16_t)n);
    end(before);

    uint16_t samples[3];
    for (uint16_t i = 0; i < 3; i++)
        samples[i] = (uint16_t)(n * 3u + i);
    const uint32_t count = n & 3u;
    lat_items_samples(samples, count);
    before = begin("SAMPLES");
    for (uint32_t i = 0; i < count; i++)
        put_field(samples[i]);
    end(before);

    lat_items_item_end(n);
    before = begin("ITEM_END");
    put_field(n);
    end(before);
}

static void refused(const char *what, const struct lat_small_setup *setup)
{
    put_text("R ");
    put_text(what);
    put_field(lat_small_init(setup));
    board_put('\n');
}

static uint64_t garbage(uint32_t i)
{
    return (uint64_t)((i + 1u) * 0x9e3779b9u) << 32 | (0x5a5aa5a5u ^ i);
}

static void set_up(void)
{
    struct lat_small_setup setup = {board_area_bytes, 512, PACKETS, MODE, schemas, 1};
    /* Simulates uninitialised memory, or memory left by a program before a reset. */
    for (uint32_t i = 0; i < board_area_bytes / 8u; i++)
        lat_port_area[i] = garbage(i);
    /* An event before set-up. */
    lat_items_wide(1);
    lat_mark("before set-up");
    setup.packet_bytes = 0;
    refused("packet-bytes=0", &setup);
    setup.packet_bytes = 384;
    refused("packet-bytes=384", &setup);
    setup.packet_bytes = 128;
    refused("packet-bytes=128", &setup);
    setup.packet_bytes = 65536;
    refused("packet-bytes=65536", &setup);
    setup.packet_bytes = 512;
    setup.packets_per_ring = 0;
    refused("packets=0", &setup);
    setup.packets_per_ring = 3;
    refused("packets=3", &setup);
    setup.packets_per_ring = PACKETS;
    setup.mode = 2;
    refused("mode=2", &setup);
    setup.mode = MODE;
    setup.area_bytes = lat_small_bytes(512, PACKETS, 1) - 1u;
    refused("one-byte-too-small", &setup);
    refused("nothing-left-here", &setup);
    put_text("R left-before");
    put_field(lat_small_left(board_area_bytes));
    /* None of that changed the memory. */
    int same = 1;
    for (uint32_t i = 0; i < board_area_bytes / 8u; i++)
        same &= lat_port_area[i] == garbage(i);
    put_text("\nR memory-unchanged");
    put_field((uint64_t)same);
    board_put('\n');
    setup.area_bytes = board_area_bytes;
    refused("good", &setup);
    /* Like after a reset that kept the memory: the area is recognised, and the next one has a new
     * generation. */
    put_text("R left-by-the-first");
    put_field(lat_small_left(board_area_bytes) == lat_small_bytes(512, PACKETS, 1));
    board_put('\n');
    refused("good-again", &setup);
    put_text("A ");
    put_hex((uintptr_t)lat_port_area);
    put_field(lat_small_left(board_area_bytes));
    board_put('\n');
}

_Noreturn void program(void)
{
    set_up();
    lat_small_enable(LAT_SCHEMA(items), LAT_SMALL_ALL, 1);
    lat_small_name("main");
    lat_mark("the example begins");
#if LAT_PORT_CORES > 1
    __atomic_store_n(&board_is_ready, 1, __ATOMIC_RELEASE);
#endif
    board_arm(0, 50);
    for (uint32_t n = 0; n < ROUNDS; n++) {
        every_shape(n);
        lat_small_keep_time();
    }
    while (timers < TIMERS) {
    }
#if LAT_PORT_CORES > 1
    while (__atomic_load_n(&stopped, __ATOMIC_ACQUIRE) != LAT_PORT_CORES - 1u) {
    }
#endif
    /* Disabled: neither recorded nor lost. */
    lat_small_enable(LAT_SCHEMA(items), 3, 0);
    lat_items_wide(2);
    lat_small_enable(LAT_SCHEMA(items), 3, 1);
    /* Longer than the builder, and longer than a packet. */
    uint16_t many[100];
    for (uint32_t i = 0; i < 100; i++)
        many[i] = (uint16_t)i;
    lat_items_samples(many, 100);
    lat_items_samples(many, 0x80000000u);
    put_text("L too-big 2\n");
#ifdef EXAMPLE_FILLS
    /* The ring is full in the end: further events are counted, and the recorded ones stay. */
    uint32_t full = 0;
    for (uint32_t n = 0; n < 3000; n++) {
        const struct lat_small_ring *ring = (const void *)((const char *)lat_port_area + 128);
        const uint32_t lost = ring->lost_full;
        lat_items_item_end(n);
        if (ring->lost_full != lost) {
            full++;
            continue;
        }
        const lat_port_mask_t before = begin("ITEM_END");
        put_field(n);
        end(before);
    }
    put_text("L full");
    put_field(full);
    board_put('\n');
#endif
    put_text("done\n");
    board_stop();
}

_Noreturn void program_other(uint32_t core)
{
    for (uint32_t n = 0; n < ROUNDS; n++) {
        every_shape(1000u * core + n);
        lat_small_keep_time();
    }
#if LAT_PORT_CORES > 1
    __atomic_fetch_add(&stopped, 1, __ATOMIC_RELEASE);
#endif
    board_stop();
}
