// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The rows of bench/cost, written by code that barectf generated from config.yaml: one thread, no
 * signal handlers, a ring of eight packets of 64 KiB, the oldest of which is overwritten.
 *
 *     barectf [--rounds N]        measures
 *     barectf count N FILE        writes N events of each kind into a stream file
 */
#include "bc_.h"

#include "../../harness/rows.h"

#define PACKET_BYTES 65536u
static uint8_t memory[8 * PACKET_BYTES];
static struct bc__s_ctx stream;
static uint64_t packets;
static FILE *file;

static uint64_t clock_value(void *unused)
{
    (void)unused;
    return ticks();
}
static int is_full(void *unused)
{
    (void)unused;
    return 0;
}
static void open_packet(void *unused)
{
    (void)unused;
    bc__s_open_packet(&stream);
}
static void close_packet(void *unused)
{
    (void)unused;
    bc__s_close_packet(&stream);
    if (file != NULL && fwrite(bc__packet_buf(&stream), PACKET_BYTES, 1, file) != 1)
        exit(2);
    packets++;
    bc__packet_set_buf(&stream, memory + packets % 8 * PACKET_BYTES, PACKET_BYTES);
}

static const char text[] = "twenty characters ..";
LOOP_4(body_0, bc__s_trace_e0(&stream))
LOOP_4(body_1, bc__s_trace_e1(&stream, i))
LOOP_4(body_4, bc__s_trace_e4(&stream, i, 1, 2, 3))
LOOP_4(body_8, bc__s_trace_e8(&stream, i, 1, 2, 3, 4, 5, 6, 7))
LOOP_4(body_u32, bc__s_trace_barrelfish(&stream, (uint32_t)i))
LOOP_4(body_text, bc__s_trace_text(&stream, text))
static NOINLINE void body_off(uint64_t i)
{
    bc__enable_tracing(&stream, 0);
    do {
        TIMES_4(TIMES_4(bc__s_trace_barrelfish(&stream, (uint32_t)i)));
    } while (--i != 0);
    bc__enable_tracing(&stream, 1);
}

int main(int argc, char **argv)
{
    const struct bc__platform_callbacks callbacks = {
        .tsc_clock_get_value = clock_value,
        .is_backend_full = is_full,
        .open_packet = open_packet,
        .close_packet = close_packet,
    };
    bc__init(&stream, memory, PACKET_BYTES, callbacks, NULL);
    open_packet(NULL);
    if (argc == 4 && strcmp(argv[1], "count") == 0) {
        const uint64_t events = strtoull(argv[2], NULL, 10);
        void (*const bodies[])(uint64_t) = {body_0, body_1, body_4, body_8, body_u32, body_text};
        file = fopen(argv[3], "wb");
        if (file == NULL)
            return 2;
        for (unsigned b = 0; b < sizeof bodies / sizeof *bodies; b++)
            bodies[b](events / 4);
        close_packet(NULL);
        return fclose(file) != 0;
    }
    rows_options(argc, argv);
    rows_add_references();
    rows_add("disabled", body_off, 500, 16);
    rows_add("0 u64", body_0, 500, 4);
    rows_add("1 u64", body_1, 500, 4);
    rows_add("4 u64", body_4, 500, 4);
    rows_add("8 u64", body_8, 500, 4);
    rows_add("u32 (Barrelfish)", body_u32, 500, 4);
    rows_add("string of 20", body_text, 500, 4);
    return rows_run();
}
