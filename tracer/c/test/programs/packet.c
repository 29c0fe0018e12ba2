// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Network packets: both lengths are recorded; too long ones are truncated, not lost. */
#define _GNU_SOURCE
#include "../support/area_reader.h"
#include "../support/check.h"
#include "../support/traced.h"

#include <lat/packet.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#define RING_PACKET 4096u
#define LONG_BYTES 9000u
#define THREAD_PACKETS 200u

static uint8_t frame[LONG_BYTES];
static const struct lat_interface uplink = {"uplink", LAT_LINK_ETHERNET, 64};
static const struct lat_interface tunnel = {"tun.0 \"x\"", LAT_LINK_IP, 0};
static const struct lat_interface nameless = {NULL, LAT_LINK_CAN, 8};

/* ---- the traced program ------------------------------------------------------------ */

static void handle(int number)
{
    (void)number;
    lat_record_packet(&nameless, LAT_PACKET_INBOUND, frame, 5);
}

static void *send_some(void *interface)
{
    for (size_t i = 0; i < THREAD_PACKETS; i++)
        lat_record_packet((const struct lat_interface *)interface, LAT_PACKET_OUTBOUND, frame, i);
    return NULL;
}

static void fill_frame(void)
{
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)(i * 7 + i / 256);
}

static int program(void)
{
    pthread_t thread;
    fill_frame();
    errno = 77;
    lat_record_packet(&uplink, LAT_PACKET_INBOUND, frame, 60);
    lat_record_packet(&uplink, LAT_PACKET_OUTBOUND, frame, 100);
    lat_record_packet(&tunnel, LAT_PACKET_UNKNOWN, frame, sizeof frame);
    lat_record_packet_part(&tunnel, LAT_PACKET_INBOUND, frame, 10, 1500);
    lat_record_packet_part(&tunnel, LAT_PACKET_INBOUND, NULL, 10, (size_t)1 << 40);
    if (errno != 77)
        return 1;
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
    if (pthread_create(&thread, NULL, send_some, (void *)(uintptr_t)&tunnel) != 0)
        return 1;
    pthread_join(thread, NULL);
    return 0;
}

/* ---- the recorded trace ---------------------------------------------------------------- */

struct packet {
    char interface[64];
    uint8_t direction;
    uint16_t link_type;
    uint32_t captured, original, flags, data_bytes;
    const uint8_t *data;
    size_t bytes; /* of the record */
};

/* Decodes spec/packets.pleco by hand. @return 0 if it does not fit. */
static int parse(struct packet *packet, const uint8_t *payload, size_t left)
{
    const size_t name = strnlen((const char *)payload, left);
    size_t at = name + 1;
    if (name + 32 > left || name >= sizeof packet->interface)
        return 0;
    memcpy(packet->interface, payload, name + 1);
    packet->direction = payload[at++];
    at = (at + 1) & ~(size_t)1;
    memcpy(&packet->link_type, payload + at, 2);
    at = (at + 2 + 3) & ~(size_t)3;
    memcpy(&packet->captured, payload + at, 4);
    memcpy(&packet->original, payload + at + 4, 4);
    memcpy(&packet->flags, payload + at + 8, 4);
    memcpy(&packet->data_bytes, payload + at + 12, 4);
    packet->data = payload + at + 16;
    packet->bytes = at + 16 + packet->data_bytes;
    return packet->bytes <= left;
}

/* The reader's `size`. The last packets of a ring may be shorter than `parse` requires. */
static size_t size(void *context, uint32_t id, const uint8_t *payload, size_t left)
{
    struct packet packet;
    (void)context, (void)id;
    uint8_t padded[RING_PACKET + 64] = {0};
    if (left > RING_PACKET)
        return SIZE_MAX;
    memcpy(padded, payload, left);
    return parse(&packet, padded, sizeof padded) ? packet.bytes : SIZE_MAX;
}

struct seen {
    struct packet packet[16]; /* of the main thread */
    uint32_t tid[16];
    unsigned count;
    uint64_t of_thread; /* one more than the number of bytes of its next packet */
    unsigned wrong;
    uint32_t thread;
};

static void visit(void *context, const struct record *record)
{
    struct seen *seen = (struct seen *)context;
    struct packet packet;
    uint8_t padded[RING_PACKET + 64] = {0};
    if (record->id < LAT_INTERNAL_EVENT_COUNT)
        return;
    memcpy(padded, record->payload, record->bytes);
    if (!parse(&packet, padded, sizeof padded) || memcmp(packet.data, frame, packet.data_bytes) != 0 ||
        packet.captured != packet.data_bytes || packet.flags != packet.direction ||
        packet.bytes != record->bytes) {
        seen->wrong++;
        return;
    }
    if (packet.direction == 2 && strcmp(packet.interface, tunnel.name) == 0) {
        seen->wrong += packet.original >= THREAD_PACKETS || packet.captured != packet.original;
        seen->wrong += seen->thread != 0 && seen->thread != record->tid;
        seen->thread = record->tid;
        seen->of_thread += packet.original + 1;
        return;
    }
    if (seen->count < 16) {
        seen->packet[seen->count] = packet;
        seen->tid[seen->count] = record->tid;
    }
    seen->count++;
}

static const struct packet *find(const struct seen *seen, uint32_t original)
{
    for (unsigned i = 0; i < seen->count && i < 16; i++)
        if (seen->packet[i].original == original)
            return &seen->packet[i];
    check(0, "no packet of %u bytes", original);
    return &seen->packet[15];
}

static void check_packet(const struct seen *seen, uint32_t original, uint32_t captured,
                         const char *interface, uint8_t direction, uint16_t link_type)
{
    const struct packet *packet = find(seen, original);
    check(strcmp(packet->interface, interface) == 0, "interface %s and not %s", packet->interface,
          interface);
    CHECK_EQUAL(packet->captured, captured);
    CHECK_EQUAL(packet->direction, direction);
    CHECK_EQUAL(packet->link_type, link_type);
}

int main(int count, char **arguments)
{
    static struct seen seen;
    struct traced traced;
    struct reader reader;
    if (count > 1)
        return strcmp(arguments[1], "program") == 0 ? program() : 1;
    fill_frame();
    traced_make(&traced, 262144, RING_PACKET, "discard");
    traced_start(&traced, "program", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(reader_find(&reader, traced.directory))) {
        reader.visit = visit;
        reader.size = size;
        reader.context = &seen;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(seen.wrong, 0);
        CHECK_EQUAL(seen.count, 6);
        fact("packets are recorded as they are, by whom they are");
        check_packet(&seen, 60, 60, "uplink", 1, 1);
        check_packet(&seen, 100, 64, "uplink", 2, 1);
        check_packet(&seen, 1500, 10, "tun.0 \"x\"", 1, 101);
        check_packet(&seen, UINT32_MAX, 0, "tun.0 \"x\"", 1, 101);
        check_packet(&seen, 5, 5, "", 1, 227);
        fact("a packet is cut where its interface says so");
        const struct packet *cut = find(&seen, LONG_BYTES);
        const size_t most = RING_PACKET - 128 - 16 - 8 - 8;
        check(cut->bytes <= most && cut->bytes + 8 > most, "a record of %zu bytes", cut->bytes);
        CHECK_EQUAL(reader_losses(&reader), 0);
        fact("a packet longer than the ring's is cut, and not lost");
        CHECK_EQUAL(seen.of_thread, THREAD_PACKETS * (THREAD_PACKETS + 1) / 2);
        CHECK(seen.thread != 0 && seen.thread != seen.tid[0]);
        fact("packets of any length, by another thread");
        reader_close(&reader);
    }
    traced_remove(&traced);
    traced_make(&traced, 65536, RING_PACKET, "discard");
    strcpy(strstr(traced.record, "enable="), "enable=!*");
    traced_start(&traced, "program", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(reader_find(&reader, traced.directory))) {
        reader_drain(&reader, 0);
        CHECK_EQUAL(reader.records, 0);
        reader_close(&reader);
    }
    fact("packets that nobody wants are not recorded");
    traced_remove(&traced);
    return check_status();
}
