// SPDX-License-Identifier: Apache-2.0 OR MIT
// Writes traces by the tracers that barectf makes of one.yaml and two.yaml.
#include <stdio.h>
#include <stdint.h>
#include "one.h"
#include "two.h"
#define BYTES 512
struct out { FILE *f; uint8_t buf[BYTES]; uint64_t now; void *ctx; };
static uint64_t tick(void *d) { struct out *o = d; return o->now += 37; }
static uint16_t slow(void *d) { struct out *o = d; return (uint16_t)(o->now += 37); }
static int never(void *d) { (void)d; return 0; }
static void one_open(void *d) { struct out *o = d; one_main_open_packet(o->ctx, 5); }
static void one_close(void *d) { struct out *o = d; one_main_close_packet(o->ctx); fwrite(o->buf, BYTES, 1, o->f); }
static void left_open(void *d) { struct out *o = d; two_left_open_packet(o->ctx); }
static void left_close(void *d) { struct out *o = d; two_left_close_packet(o->ctx); fwrite(o->buf, BYTES, 1, o->f); }
static void right_open(void *d) { struct out *o = d; two_right_open_packet(o->ctx); }
static void right_close(void *d) { struct out *o = d; two_right_close_packet(o->ctx); fwrite(o->buf, BYTES, 1, o->f); }
int main(void) {
    static struct out o1, ol, orr; static struct one_main_ctx c1; static struct two_left_ctx cl; static struct two_right_ctx cr;
    o1.f = fopen("one/stream", "wb"); o1.ctx = &c1; o1.now = 1000;
    struct one_platform_callbacks cb1 = { tick, never, one_open, one_close };
    one_init(&c1, o1.buf, BYTES, cb1, &o1); one_open(&o1);
    for (int i = 0; i < 300; i++) {
        int32_t list[4] = { i, -i, i * 1000, -8388608 }; uint8_t fixed[3] = { i & 127, 1, 127 };
        const char *names[2] = { "first", i & 1 ? "2" : "second" };
        one_main_trace_bits(&c1, i, i & 7, (int8_t)(i % 32 - 16), i & 1, -((int64_t)i << 38), ~(uint64_t)i * 77, i * 401 & 0x1ffff);
        one_main_trace_kinds(&c1, i, "because", i / 3.0, i / 7.0f, i % 12, (int16_t)(i * 13 % 2048 - 1024), i % 3 ? "text" : "none", i % 5 ? i % 4 : 0, list, fixed, i % 3, names);
        if (i % 4 == 0) one_main_trace_nothing(&c1, i);
    }
    if (one_packet_is_open(&c1) && !one_packet_is_empty(&c1)) one_close(&o1);
    fclose(o1.f);
    ol.f = fopen("two/left", "wb"); ol.ctx = &cl; orr.f = fopen("two/right", "wb"); orr.ctx = &cr;
    struct two_platform_callbacks cbl = { slow, never, left_open, left_close }, cbr = { slow, never, right_open, right_close };
    two_init(&cl, ol.buf, BYTES, cbl, &ol); two_init(&cr, orr.buf, BYTES, cbr, &orr); left_open(&ol); right_open(&orr);
    for (int i = 0; i < 300; i++) {
        int8_t d[5] = { -64, 63, 0, (int8_t)(i % 64), -1 }; uint16_t m[3] = { 511, i & 511, 0 };
        two_left_trace_bits(&cl, i & 7, (int16_t)(i * 13 % 8192 - 4096), -((int64_t)i << 50), d);
        if (i % 3 == 0) two_left_trace_text(&cl, i % 2 ? "odd" : "even");
        two_right_trace_only(&cr, i * 65537u, i % 4, m);
    }
    if (!two_packet_is_empty(&cl)) left_close(&ol);
    if (!two_packet_is_empty(&cr)) right_close(&orr);
    return fclose(ol.f) | fclose(orr.f);
}
