// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Frames of a small area's packets on a byte stream (spec/serial.md), encoded directly from the source
 * in two passes, so that there is no buffer. If the caller lets the data change meanwhile, the frame
 * is damaged, and the receiver counts it.
 */
#include <lat/small_serial.h>

#ifndef LAT_PORT_HEADER
#define LAT_PORT_HEADER "lat_port.h"
#endif
#include LAT_PORT_HEADER

#define AREA ((const struct lat_small_header *)(uintptr_t)(LAT_PORT_AREA))
#define PACKET_HEADER_BYTES ((uint32_t)sizeof(struct lat_small_packet))

/* Maximum number of non-zero bytes that an 8-bit COBS code covers [Cheshire & Baker 1999, table 1]. */
#define RUN_MAX 254u

/* A contiguous part of a frame. */
struct piece {
    const uint8_t *bytes;
    uint32_t count;
};

/* head, up to three parts of payload, checksum */
#define PIECES 5u

static const struct lat_small_ring *core_ring(uint32_t core)
{
    const char *const first = (const char *)AREA + sizeof(struct lat_small_header);
    return (const struct lat_small_ring *)(const void *)(first + core * AREA->ring_stride);
}

static void put_u16(uint8_t *place, uint32_t value)
{
    place[0] = (uint8_t)value;
    place[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t *place, uint32_t value)
{
    put_u16(place, value);
    put_u16(place + 2, value >> 16);
}

/* CRC-32C (Castagnoli), reflected: polynomial 0x82f63b78, four bits a step. The entry of i is i divided by
 * the polynomial, four times: i = i odd ? i/2 ^ 0x82f63b78 : i/2. */
static uint32_t checksum(uint32_t sum, const struct piece *piece)
{
    static const uint32_t steps[16] = {
        0x00000000u, 0x105ec76fu, 0x20bd8edeu, 0x30e349b1u, 0x417b1dbcu, 0x5125dad3u,
        0x61c69362u, 0x7198540du, 0x82f63b78u, 0x92a8fc17u, 0xa24bb5a6u, 0xb21572c9u,
        0xc38d26c4u, 0xd3d3e1abu, 0xe330a81au, 0xf36e6f75u};
    for (uint32_t i = 0; i < piece->count; i++) {
        sum ^= piece->bytes[i];
        sum = (sum >> 4) ^ steps[sum & 15u];
        sum = (sum >> 4) ^ steps[sum & 15u];
    }
    return sum;
}

/* Sends the pieces as one COBS block between two zeros. */
static void put_block(const struct piece *pieces)
{
    static const uint8_t zero = 0;
    uint32_t at = 0, offset = 0;
    lat_port_put(&zero, 1);
    for (;;) {
        /* Distance to the next zero, across pieces, up to the maximum of a code. */
        uint32_t ahead = at, place = offset, run = 0;
        while (ahead < PIECES && run < RUN_MAX) {
            if (place == pieces[ahead].count) {
                ahead++;
                place = 0;
            } else if (pieces[ahead].bytes[place] != 0) {
                place++;
                run++;
            } else {
                break;
            }
        }
        while (ahead < PIECES && place == pieces[ahead].count) {
            ahead++;
            place = 0;
        }
        const uint8_t code = (uint8_t)(run + 1u);
        lat_port_put(&code, 1);
        for (uint32_t left = run; left != 0;) {
            const uint32_t here = pieces[at].count - offset;
            const uint32_t count = left < here ? left : here;
            if (count != 0)
                lat_port_put(pieces[at].bytes + offset, count);
            left -= count;
            offset += count;
            if (left != 0) {
                at++;
                offset = 0;
            }
        }
        at = ahead;
        offset = place;
        if (at == PIECES)
            break;
        if (run < RUN_MAX) /* the code also covers the following zero */
            offset++;
    }
    lat_port_put(&zero, 1);
}

/* Sends a frame; pieces 1 to 3 are its payload. */
static void put_frame(struct lat_serial *serial, uint32_t kind, struct piece *pieces)
{
    uint8_t head[8], tail[4];
    uint32_t sum = 0xffffffffu;
    head[0] = LAT_SERIAL_VERSION;
    head[1] = (uint8_t)kind;
    put_u16(head + 2, serial->run ^ AREA->generation);
    put_u32(head + 4, serial->sequence++);
    pieces[0].bytes = head;
    pieces[0].count = sizeof head;
    for (uint32_t i = 0; i < PIECES - 1u; i++)
        sum = checksum(sum, &pieces[i]);
    put_u32(tail, ~sum);
    pieces[PIECES - 1u].bytes = tail;
    pieces[PIECES - 1u].count = sizeof tail;
    put_block(pieces);
}

static void set_piece(struct piece *piece, const void *bytes, uint32_t count)
{
    piece->bytes = (const uint8_t *)bytes;
    piece->count = count;
}

/* The 64-bit clock; for a 32-bit clock, extended by the wraps counted on this core. */
static void clock_now(uint32_t *low, uint32_t *high)
{
#if LAT_PORT_CLOCK_BITS == 32
#if LAT_PORT_CORES == 1
    const struct lat_small_ring *const ring = core_ring(0);
#else
    const struct lat_small_ring *const ring = core_ring(lat_port_core());
#endif
    const lat_port_mask_t before = lat_port_mask();
    *low = lat_port_clock();
    *high = ring->clock_high + (*low < ring->clock_last);
    lat_port_unmask(before);
#else
    const uint64_t now = lat_port_clock();
    *low = (uint32_t)now;
    *high = (uint32_t)(now >> 32);
#endif
}

static void put_hello(struct lat_serial *serial)
{
    const struct lat_small_header *const header = AREA;
    uint8_t front[16];
    struct piece pieces[PIECES];
    uint32_t low, high;
    clock_now(&low, &high);
    put_u32(front, serial->flags);
    put_u32(front + 4, serial->run);
    put_u32(front + 8, low);
    put_u32(front + 12, high);
    set_piece(&pieces[1], front, sizeof front);
    set_piece(&pieces[2], header, (uint32_t)sizeof *header);
    set_piece(&pieces[3], (const char *)header + header->schema_offset,
              header->schema_count * (uint32_t)sizeof(struct lat_small_schema));
    put_frame(serial, LAT_SERIAL_HELLO, pieces);
}

static void put_texts(struct lat_serial *serial)
{
    const struct lat_small_schema *schema =
        (const void *)((const char *)AREA + AREA->schema_offset);
    struct piece pieces[PIECES];
    uint8_t front[8];
    for (uint32_t index = 0; index < AREA->schema_count; index++, schema++) {
        for (uint32_t offset = 0; offset < schema->text_bytes; offset += LAT_SERIAL_TEXT_BYTES) {
            const uint32_t left = schema->text_bytes - offset;
            put_u32(front, index);
            put_u32(front + 4, offset);
            set_piece(&pieces[1], front, sizeof front);
            set_piece(&pieces[2], (const char *)(uintptr_t)schema->text + offset,
                      left < LAT_SERIAL_TEXT_BYTES ? left : LAT_SERIAL_TEXT_BYTES);
            set_piece(&pieces[3], front, 0);
            put_frame(serial, LAT_SERIAL_TEXT, pieces);
        }
    }
}

/* Sends the counters of a core; `next` is the next packet to be sent. */
static void put_status(struct lat_serial *serial, uint32_t core, uint32_t next, uint32_t flags)
{
    const struct lat_small_ring *const ring = core_ring(core);
    struct piece pieces[PIECES];
    uint8_t words[24];
    put_u16(words, core);
    put_u16(words + 2, flags);
    put_u32(words + 4, next);
    put_u32(words + 8, ring->lost_full);
    put_u32(words + 12, ring->lost_too_big);
    put_u32(words + 16, ring->lost_nested);
    put_u32(words + 20, ring->clock_backward);
    set_piece(&pieces[1], words, sizeof words);
    set_piece(&pieces[2], words, 0);
    set_piece(&pieces[3], words, 0);
    put_frame(serial, LAT_SERIAL_STATUS, pieces);
}

static void put_packet(struct lat_serial *serial, const struct lat_small_packet *packet, uint32_t bytes)
{
    struct piece pieces[PIECES];
    set_piece(&pieces[1], packet, bytes);
    set_piece(&pieces[2], packet, 0);
    set_piece(&pieces[3], packet, 0);
    put_frame(serial, LAT_SERIAL_PACKET, pieces);
}

static int can_send(void)
{
    return AREA->magic == LAT_SMALL_MAGIC && AREA->magic_complement == ~LAT_SMALL_MAGIC &&
           AREA->schema_count <= LAT_SERIAL_SCHEMAS_MAX;
}

void lat_serial_begin(struct lat_serial *serial, uint32_t hello_every, uint32_t run, uint32_t flags)
{
    serial->sequence = 0;
    serial->run = run;
    serial->hello_every = hello_every == 0 ? 1u : hello_every;
    serial->until_hello = 0;
    serial->flags = flags & LAT_SERIAL_TEXTS;
    serial->core = 0;
}

static void introduce(struct lat_serial *serial)
{
    put_hello(serial);
    if ((serial->flags & LAT_SERIAL_TEXTS) != 0)
        put_texts(serial);
    serial->until_hello = serial->hello_every;
}

void lat_serial_introduce(struct lat_serial *serial)
{
    if (!can_send())
        return;
    introduce(serial);
    /* In overwrite mode no packet is sent during the run. */
    for (uint32_t core = 0; core < AREA->core_count; core++)
        put_status(serial, core, core_ring(core)->consumed, 0);
}

int lat_serial_send(struct lat_serial *serial)
{
    if (!can_send())
        return 0;
    for (uint32_t tried = 0; tried < LAT_PORT_CORES; tried++) {
        const uint32_t core = serial->core;
        uint32_t bytes;
        const struct lat_small_packet *const packet = lat_small_take(core, &bytes);
        serial->core = core + 1u == LAT_PORT_CORES ? 0u : core + 1u;
        if (packet == NULL)
            continue;
        if (serial->until_hello == 0)
            lat_serial_introduce(serial);
        serial->until_hello--;
        put_packet(serial, packet, bytes);
        lat_small_give_back(core);
        return 1;
    }
    return 0;
}

void lat_serial_end(struct lat_serial *serial)
{
    if (!can_send())
        return;
    lat_small_close();
    while (lat_serial_send(serial) != 0) {
    }
    for (uint32_t core = 0; core < AREA->core_count; core++)
        put_status(serial, core, core_ring(core)->consumed, LAT_SERIAL_LAST);
}

/* Bytes of packet `sequence` of an idle ring, 0 if it is not there. The length of an open one comes from the
 * cursor. */
static uint32_t packet_left(const struct lat_small_ring *ring, uint32_t sequence,
                            const struct lat_small_packet **found)
{
    const uint32_t slot = sequence & (AREA->packets_per_ring - 1u);
    const uint32_t offset = (uint32_t)sizeof *ring + slot * AREA->packet_bytes;
    struct lat_small_packet *const packet =
        (struct lat_small_packet *)(uintptr_t)((uintptr_t)ring + offset);
    if (packet->magic != LAT_SMALL_PACKET_MAGIC || packet->sequence != sequence)
        return 0;
    if (packet->content_bytes == 0 && ring->cursor > offset &&
        ring->cursor - offset <= AREA->packet_bytes)
        packet->content_bytes = (uint16_t)(ring->cursor - offset);
    if (packet->content_bytes < PACKET_HEADER_BYTES || packet->content_bytes > AREA->packet_bytes ||
        packet->content_bytes % 8u != 0)
        return 0;
    *found = packet;
    return packet->content_bytes;
}

uint32_t lat_serial_send_area(struct lat_serial *serial, uint32_t area_bytes)
{
    uint32_t sent = 0;
    if (lat_small_left(area_bytes) == 0 || !can_send())
        return 0;
    introduce(serial);
    for (uint32_t core = 0; core < AREA->core_count; core++) {
        const struct lat_small_ring *const ring = core_ring(core);
        const uint32_t end = ring->sequence + 1u;
        uint32_t next = end - AREA->packets_per_ring;
        if (AREA->mode == LAT_SMALL_MODE_DISCARD &&
            end - ring->consumed <= AREA->packets_per_ring)
            next = ring->consumed;
        for (; next != end; next++) {
            const struct lat_small_packet *packet;
            const uint32_t bytes = packet_left(ring, next, &packet);
            if (bytes == 0)
                continue;
            if (serial->until_hello == 0)
                introduce(serial);
            serial->until_hello--;
            put_packet(serial, packet, bytes);
            sent++;
        }
        put_status(serial, core, end, LAT_SERIAL_LAST);
    }
    return sent;
}
