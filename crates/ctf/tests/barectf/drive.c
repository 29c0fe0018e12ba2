// SPDX-License-Identifier: Apache-2.0 OR MIT
// Writes traces by the tracers that barectf makes of one.yaml and two.yaml.
#include <stdint.h>
#include <stdio.h>

#include "one.h"
#include "two.h"

// Packets are as long as the buffer: some tens of events.
#define BYTES 512
#define EVENTS 300

struct out {
    FILE *file;
    uint8_t buffer[BYTES];
    uint64_t now;
    void *context;
};

static struct out one, left, right;

static void write_packet(struct out *out)
{
    fwrite(out->buffer, BYTES, 1, out->file);
}

static uint64_t tick(void *data)
{
    struct out *out = data;
    return out->now += 37;
}

// A clock of 16 bits, which wraps often.
static uint16_t slow(void *data)
{
    return (uint16_t)tick(data);
}

static int never_full(void *data)
{
    (void)data;
    return 0;
}

static void one_open(void *data)
{
    (void)data;
    one_main_open_packet(one.context, 5);
}

static void one_close(void *data)
{
    one_main_close_packet(one.context);
    write_packet(data);
}

static void left_open(void *data)
{
    (void)data;
    two_left_open_packet(left.context);
}

static void left_close(void *data)
{
    two_left_close_packet(left.context);
    write_packet(data);
}

static void right_open(void *data)
{
    (void)data;
    two_right_open_packet(right.context);
}

static void right_close(void *data)
{
    two_right_close_packet(right.context);
    write_packet(data);
}

// One stream, fields of all kinds.
static void write_one(void)
{
    static struct one_main_ctx context;
    struct one_platform_callbacks callbacks = { tick, never_full, one_open, one_close };

    one.file = fopen("one/stream", "wb");
    one.context = &context;
    one.now = 1000;
    one_init(&context, one.buffer, BYTES, callbacks, &one);
    one_open(&one);
    for (int i = 0; i < EVENTS; i++) {
        int32_t list[4] = { i, -i, i * 1000, -8388608 };
        uint8_t fixed[3] = { i & 127, 1, 127 };
        const char *names[2] = { "first", i & 1 ? "2" : "second" };

        one_main_trace_bits(&context, i, i & 7, (int8_t)(i % 32 - 16), i & 1,
                            -((int64_t)i << 38), ~(uint64_t)i * 77, i * 401 & 0x1ffff);
        one_main_trace_kinds(&context, i, "because", i / 3.0, i / 7.0f, i % 12,
                             (int16_t)(i * 13 % 2048 - 1024), i % 3 ? "text" : "none",
                             i % 5 ? i % 4 : 0, list, fixed, i % 3, names);
        if (i % 4 == 0)
            one_main_trace_nothing(&context, i);
    }
    if (one_packet_is_open(&context) && !one_packet_is_empty(&context))
        one_close(&one);
    fclose(one.file);
}

// Two streams of different classes.
static void write_two(void)
{
    static struct two_left_ctx left_context;
    static struct two_right_ctx right_context;
    struct two_platform_callbacks of_left = { slow, never_full, left_open, left_close };
    struct two_platform_callbacks of_right = { slow, never_full, right_open, right_close };

    left.file = fopen("two/left", "wb");
    left.context = &left_context;
    right.file = fopen("two/right", "wb");
    right.context = &right_context;
    two_init(&left_context, left.buffer, BYTES, of_left, &left);
    two_init(&right_context, right.buffer, BYTES, of_right, &right);
    left_open(&left);
    right_open(&right);
    for (int i = 0; i < EVENTS; i++) {
        int8_t numbers[5] = { -64, 63, 0, (int8_t)(i % 64), -1 };
        uint16_t more[3] = { 511, i & 511, 0 };

        two_left_trace_bits(&left_context, i & 7, (int16_t)(i * 13 % 8192 - 4096),
                            -((int64_t)i << 50), numbers);
        if (i % 3 == 0)
            two_left_trace_text(&left_context, i % 2 ? "odd" : "even");
        two_right_trace_only(&right_context, i * 65537u, i % 4, more);
    }
    if (!two_packet_is_empty(&left_context))
        left_close(&left);
    if (!two_packet_is_empty(&right_context))
        right_close(&right);
    fclose(left.file);
    fclose(right.file);
}

int main(void)
{
    write_one();
    write_two();
    return 0;
}
