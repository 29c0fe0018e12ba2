// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The core over the small area (spec/small-area.md). One file, no C library; it calls only
 * the port. Numbers of 64 bits are only added and shifted: no division, no 64-bit atomics.
 */
#include <lat/small.h>

#ifndef LAT_PORT_HEADER
#define LAT_PORT_HEADER "lat_port.h"
#endif
#include LAT_PORT_HEADER

/* Words that an interrupt or a reader may access between any two instructions. */
#define NOW(word) (*(volatile uint32_t *)&(word))

/* Compiler barrier: all earlier writes have been emitted. */
#define HERE() __asm__ volatile("" ::: "memory")

#if LAT_PORT_CORES == 1
#define ORDER() HERE()
#else
/* Pairs with the fence of a reader on another core: lat_small_take, or code that stops the cores. */
#define ORDER() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#endif

#define HEADER ((struct lat_small_header *)(uintptr_t)(LAT_PORT_AREA))
#define CONTROL_BYTES ((uint32_t)sizeof(struct lat_small_ring))
#define PACKET_HEADER_BYTES ((uint32_t)sizeof(struct lat_small_packet))
#define WRITER_BYTES 16u

/* Ids have 16 bits; the first ones are internal. */
#define EVENTS_MAX (65536u - LAT_SMALL_FIRST_ID)

static LAT_INLINE struct lat_small_ring *ring_of(uint32_t core)
{
    char *const first = (char *)HEADER + sizeof(struct lat_small_header);
#if LAT_PORT_CORES == 1
    (void)core;
    return (struct lat_small_ring *)(void *)first;
#else
    return (struct lat_small_ring *)(void *)(first + (size_t)core * HEADER->ring_stride);
#endif
}

static LAT_INLINE struct lat_small_ring *my_ring(void)
{
#if LAT_PORT_CORES == 1
    return ring_of(0);
#else
    return ring_of(lat_port_core());
#endif
}

static LAT_INLINE struct lat_small_packet *packet_of(struct lat_small_ring *ring, uint32_t offset)
{
    return (struct lat_small_packet *)(void *)((char *)ring + offset);
}

/* Offset of packet `sequence` from the control block. */
static uint32_t offset_of(uint32_t sequence)
{
    return CONTROL_BYTES + (sequence & (HEADER->packets_per_ring - 1u)) * HEADER->packet_bytes;
}

/* Offset of the open packet; the cursor is past its header. */
static uint32_t open_offset(const struct lat_small_ring *ring)
{
    return CONTROL_BYTES + ((ring->cursor - CONTROL_BYTES - 1u) & ~(HEADER->packet_bytes - 1u));
}

/* Writes the record header: id in the low 16 bits, time in the high 48; here as two words. */
static LAT_INLINE void put_header(uint32_t *record, uint32_t id)
{
#if LAT_PORT_CLOCK_BITS == 32
    const uint32_t low = lat_port_clock(), high = 0;
#else
    const uint64_t now = lat_port_clock();
    const uint32_t low = (uint32_t)now, high = (uint32_t)(now >> 32);
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    record[0] = low << 16 | id;
    record[1] = high << 16 | low >> 16;
#else
    record[0] = id << 16 | (high & 0xffffu);
    record[1] = low;
#endif
}

/* The 64-bit clock, extended across the wraps of a 32-bit one. Context: masked. */
static void read_clock(struct lat_small_ring *ring, uint32_t *low, uint32_t *high)
{
#if LAT_PORT_CLOCK_BITS == 32
    const uint32_t now = lat_port_clock();
    if (now - ring->clock_last >= 0x80000000u) {
        ring->clock_backward++;
    } else {
        ring->clock_high += now < ring->clock_last;
        ring->clock_last = now;
    }
    *low = ring->clock_last;
    *high = ring->clock_high;
#else
    const uint64_t now = lat_port_clock();
    (void)ring;
    *low = (uint32_t)now;
    *high = (uint32_t)(now >> 32);
#endif
}

static void close_packet(struct lat_small_ring *ring)
{
    if (ring->cursor == 0)
        return;
    const uint32_t offset = open_offset(ring);
    struct lat_small_packet *packet = packet_of(ring, offset);
    packet->lost_full = ring->lost_full;
    packet->lost_too_big = (uint16_t)ring->lost_too_big;
    packet->lost_nested = (uint16_t)ring->lost_nested;
    ORDER();
    packet->content_bytes = (uint16_t)(ring->cursor - offset);
    ORDER();
}

/* Opens the next packet; returns 0 if none is free. Context: masked, busy. */
static int open_packet(struct lat_small_ring *ring)
{
    const uint32_t next = ring->sequence + 1u;
    if (HEADER->mode == LAT_SMALL_MODE_DISCARD &&
        next - NOW(ring->consumed) >= HEADER->packets_per_ring)
        return 0;
    close_packet(ring);
    const uint32_t offset = offset_of(next);
    struct lat_small_packet *packet = packet_of(ring, offset);
    packet->magic = 0;
    ORDER();
    ring->sequence_high += next == 0;
    packet->sequence = next;
    packet->sequence_high = (uint16_t)ring->sequence_high;
    packet->content_bytes = 0;
    packet->core = (uint16_t)ring->core;
    packet->reserved = 0;
    read_clock(ring, &ring->begin, &ring->begin_high);
    packet->begin = (uint64_t)ring->begin_high << 32 | ring->begin;
    packet->lost_full = ring->lost_full;
    packet->lost_too_big = (uint16_t)ring->lost_too_big;
    packet->lost_nested = (uint16_t)ring->lost_nested;
    ORDER();
    packet->magic = LAT_SMALL_PACKET_MAGIC;
    ORDER();
    ring->sequence = next;
    ring->context = LAT_SMALL_CONTEXT_NONE;
    ring->limit = offset + HEADER->packet_bytes;
    ORDER();
    NOW(ring->cursor) = offset + PACKET_HEADER_BYTES;
    return 1;
}

/* Thread 0 of a trace is an idle processor. */
static uint32_t thread_of(uint32_t context)
{
    return context == 0 ? LAT_SMALL_THREAD : context;
}

/* The process of the context: the one program, or as returned by the port. */
static LAT_INLINE uint32_t this_process(void)
{
#ifdef LAT_PORT_PROCESSES
    return lat_port_process();
#else
    return LAT_SMALL_PROCESS;
#endif
}

/* Makes room if the usual path found none: opens a packet, writes a WRITER record.
 * @return 0: the event is lost, and counted. Context: masked, busy. */
static __attribute__((noinline)) int make_room(struct lat_small_ring *ring, uint32_t bytes,
                                               uint32_t context)
{
    if (bytes > HEADER->packet_bytes - PACKET_HEADER_BYTES - WRITER_BYTES) {
        ring->lost_too_big++;
        return 0;
    }
    const uint32_t writer = ring->context == context ? 0u : WRITER_BYTES;
    if (ring->cursor + writer + bytes > ring->limit && !open_packet(ring)) {
        ring->lost_full++;
        return 0;
    }
    if (ring->context != context) {
        uint32_t *record = (uint32_t *)(void *)((char *)ring + ring->cursor);
        put_header(record, LAT_SMALL_ID_WRITER);
        record[2] = this_process();
        record[3] = thread_of(context);
        ORDER();
        NOW(ring->cursor) = ring->cursor + WRITER_BYTES;
        ring->context = context;
    }
    return 1;
}

/* Records any event, including all cases that the usual path below leaves out. */
void lat_i_small_words(const uint64_t *words, uint32_t count, uint32_t id)
{
    /* A payload longer than any packet is too big; the limit also keeps sums from wrapping. */
    const uint32_t most = LAT_SMALL_PACKET_BYTES_MAX / 8u;
    const uint32_t bytes = 8u + 8u * (count > most ? most : count);
    const lat_port_mask_t before = lat_port_mask();
    struct lat_small_ring *const ring = my_ring();
    if (NOW(ring->busy) != 0) {
        ring->lost_nested++;
    } else {
        NOW(ring->busy) = 1u;
        const uint32_t context = lat_port_context();
        if (make_room(ring, bytes, context)) {
            const uint32_t cursor = ring->cursor;
            uint32_t *const record = (uint32_t *)(void *)((char *)ring + cursor);
            put_header(record, id);
            uint64_t *const payload = (uint64_t *)(void *)(record + 2);
            for (uint32_t i = 0; i < count; i++)
                payload[i] = words[i];
            HERE(); /* the commit comes last */
            NOW(ring->cursor) = cursor + bytes;
        }
        NOW(ring->busy) = 0;
    }
    lat_port_unmask(before);
}

/* The usual record: the packet has room, and this context wrote the last record. Otherwise the macro calls
 * OTHER before it changes anything; OTHER is a separate function, so that no register is saved for it. */
#define RECORD(ID, BYTES, STORE, OTHER)                                                         \
    const lat_port_mask_t before = lat_port_mask();                                             \
    struct lat_small_ring *ring = my_ring();                                                    \
    /* Keeps the ring's address in a register, instead of that of the area. */                  \
    __asm__("" : "+r"(ring));                                                                   \
    if (LAT_I_LIKELY(NOW(ring->busy) == 0)) {                                                   \
        NOW(ring->busy) = 1u;                                                                   \
        HERE();                                                                                 \
        const uint32_t end = ring->cursor + (BYTES);                                            \
        if (LAT_I_LIKELY(end <= ring->limit && ring->context == lat_port_context())) {          \
            uint32_t *const record = (uint32_t *)(void *)((char *)ring + (end - (BYTES)));      \
            put_header(record, (ID));                                                           \
            uint64_t *const payload = (uint64_t *)(void *)(record + 2);                         \
            (void)payload;                                                                      \
            STORE;                                                                              \
            HERE(); /* the commit comes last */                                                 \
            NOW(ring->cursor) = end;                                                            \
            NOW(ring->busy) = 0;                                                                \
            lat_port_unmask(before);                                                            \
            return;                                                                             \
        }                                                                                       \
        NOW(ring->busy) = 0;                                                                    \
    }                                                                                           \
    lat_port_unmask(before);                                                                    \
    OTHER

static __attribute__((noinline)) void other_0(uint32_t id)
{
    lat_i_small_words((const uint64_t *)0, 0, id);
}

static __attribute__((noinline)) void other_half(uint32_t first, uint32_t id)
{
    /* In memory order, for either byte order. */
    const union { uint32_t halves[2]; uint64_t word; } payload = {{first, 0}};
    lat_i_small_words(&payload.word, 1, id);
}

static __attribute__((noinline)) void other_1(uint64_t w0, uint32_t id)
{
    const uint64_t words[] = {w0};
    lat_i_small_words(words, 1, id);
}

static __attribute__((noinline)) void other_2(uint64_t w0, uint64_t w1, uint32_t id)
{
    const uint64_t words[] = {w0, w1};
    lat_i_small_words(words, 2, id);
}

void lat_i_small_0(uint32_t id)
{
    RECORD(id, 8u, , other_0(id));
}

void lat_i_small_half(uint32_t first, uint32_t id)
{
    RECORD(id, 16u, record[2] = first, other_half(first, id));
}

void lat_i_small_1(uint64_t w0, uint32_t id)
{
    RECORD(id, 16u, payload[0] = w0, other_1(w0, id));
}

void lat_i_small_2(uint64_t w0, uint64_t w1, uint32_t id)
{
    RECORD(id, 24u, payload[0] = w0; payload[1] = w1, other_2(w0, w1, id));
}

/* ---- records whose length is known only at run time -------------------------- */

void lat_i_small_put(struct lat_i_build *build, const void *data, uint32_t bytes, uint32_t align)
{
    uint8_t *const payload = (uint8_t *)build->words;
    const uint32_t start = (build->bytes + align - 1u) & ~(align - 1u);
    uint32_t at = build->bytes;
    build->bytes = start + bytes;
    if (start + bytes > sizeof build->words || start + bytes < start) {
        build->bytes = LAT_SMALL_PACKET_BYTES_MAX; /* and remains so: start is beyond the buffer */
        return;
    }
    for (; at < start; at++)
        payload[at] = 0;
    for (uint32_t i = 0; i < bytes; i++)
        payload[start + i] = ((const uint8_t *)data)[i];
}

void lat_i_small_put_text(struct lat_i_build *build, const char *text)
{
    uint32_t bytes = 0;
    if (text == NULL)
        text = "";
    /* Reads no more than fits: an unterminated text is too big. */
    while (bytes < sizeof build->words && text[bytes] != '\0')
        bytes++;
    lat_i_small_put(build, text, bytes + 1u, 1u);
}

void lat_i_small_built(struct lat_i_build *build, uint32_t id)
{
    if (build->bytes > sizeof build->words) {
        lat_i_small_words(build->words, LAT_SMALL_PACKET_BYTES_MAX / 8u, id);
        return;
    }
    const uint32_t bytes = build->bytes, count = (bytes + 7u) / 8u;
    /* The padding after the last field is zero, too. */
    for (uint32_t i = bytes; i < 8u * count; i++)
        ((uint8_t *)build->words)[i] = 0;
    lat_i_small_words(build->words, count, id);
}

/* Whether there is an area. Needed for internal events, which have no switch. */
static int is_ready(void)
{
    return HEADER->magic == LAT_SMALL_MAGIC && HEADER->magic_complement == ~LAT_SMALL_MAGIC &&
           HEADER->address == (uintptr_t)HEADER;
}

void lat_small_name(const char *name)
{
    struct lat_i_build build;
    if (!is_ready())
        return;
    lat_i_build_init(&build);
    lat_i_put_u32(&build, this_process());
    lat_i_put_u32(&build, thread_of(lat_port_context()));
    lat_i_put_string(&build, name);
    lat_i_small_built(&build, LAT_SMALL_ID_THREAD_NAME);
}

#ifdef LAT_PORT_PROCESSES
void lat_small_name_process(uint32_t process, const char *name)
{
    struct lat_i_build build;
    if (!is_ready())
        return;
    lat_i_build_init(&build);
    lat_i_put_u32(&build, process);
    lat_i_put_u32(&build, 0); /* no parent */
    lat_i_put_string(&build, name);
    lat_i_small_built(&build, LAT_SMALL_ID_PROCESS);
}
#endif

void lat_mark(const char *text)
{
    struct lat_i_build build;
    if (!is_ready())
        return;
    lat_i_build_init(&build);
    lat_i_put_string(&build, text);
    lat_i_small_built(&build, LAT_SMALL_ID_MARK);
}

/* ---- set-up ------------------------------------------------------------------ */

static int is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1u)) == 0;
}

static int packet_bytes_fit(uint32_t bytes)
{
    return is_power_of_two(bytes) && bytes >= LAT_SMALL_PACKET_BYTES_MIN &&
           bytes <= LAT_SMALL_PACKET_BYTES_MAX;
}

static int packets_fit(uint32_t packets)
{
    return is_power_of_two(packets) && packets >= LAT_SMALL_PACKETS_MIN &&
           packets <= LAT_SMALL_PACKETS_MAX;
}

uint32_t lat_small_bytes(uint32_t packet_bytes, uint32_t packets_per_ring, uint32_t schema_count)
{
    if (!packet_bytes_fit(packet_bytes) || !packets_fit(packets_per_ring) || schema_count > 0xffffu)
        return 0;
    /* At most 2^15 times 2^16 bytes of packets per ring, and 2^31 in all rings; descriptors are at most
     * 2^16 times 2^5: no sum exceeds 32 bits. */
    const uint32_t ring = packet_bytes * packets_per_ring + CONTROL_BYTES;
    if (ring > LAT_SMALL_AREA_BYTES_MAX / LAT_PORT_CORES)
        return 0;
    const uint32_t all = (uint32_t)sizeof(struct lat_small_header) + ring * LAT_PORT_CORES +
                         schema_count * (uint32_t)sizeof(struct lat_small_schema);
    return all > LAT_SMALL_AREA_BYTES_MAX ? 0u : all;
}

uint32_t lat_small_left(uint32_t area_bytes)
{
    const struct lat_small_header *header = HEADER;
    if (area_bytes < sizeof *header || ((uintptr_t)header & 7u) != 0 || !is_ready() ||
        header->abi_version != LAT_SMALL_ABI_VERSION ||
        header->byte_order != LAT_SMALL_BYTE_ORDER_MARK || header->state != LAT_SMALL_STATE_READY ||
        header->core_count != LAT_PORT_CORES)
        return 0;
    const uint32_t bytes =
        lat_small_bytes(header->packet_bytes, header->packets_per_ring, header->schema_count);
    return bytes != 0 && bytes == header->area_bytes && bytes <= area_bytes ? bytes : 0u;
}

static void zero(void *memory, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes / 4u; i++)
        ((volatile uint32_t *)memory)[i] = 0;
}

enum lat_small_error lat_small_init(const struct lat_small_setup *setup)
{
    struct lat_small_header *const header = HEADER;
    if (((uintptr_t)header & 7u) != 0)
        return LAT_SMALL_MISALIGNED;
    if (!packet_bytes_fit(setup->packet_bytes))
        return LAT_SMALL_PACKET_BYTES;
    if (!packets_fit(setup->packets_per_ring))
        return LAT_SMALL_PACKETS;
    if (setup->mode > LAT_SMALL_MODE_OVERWRITE)
        return LAT_SMALL_MODE;
    uint32_t events = 0;
    for (uint32_t i = 0; i < setup->schema_count; i++) {
        if (setup->schemas[i]->event_count > EVENTS_MAX - events)
            return LAT_SMALL_SCHEMAS;
        events += setup->schemas[i]->event_count;
    }
    const uint32_t bytes =
        lat_small_bytes(setup->packet_bytes, setup->packets_per_ring, setup->schema_count);
    if (bytes == 0 || bytes > setup->area_bytes)
        return LAT_SMALL_TOO_SMALL;
    const uint32_t generation = lat_small_left(setup->area_bytes) == 0 ? 0u : header->generation;
    for (uint32_t i = 0; i < setup->schema_count; i++)
        lat_small_enable(setup->schemas[i], LAT_SMALL_ALL, 0);
    zero(header, sizeof *header);
    ORDER();
    header->abi_version = LAT_SMALL_ABI_VERSION;
    header->byte_order = LAT_SMALL_BYTE_ORDER_MARK;
    header->header_bytes = (uint32_t)sizeof *header;
    header->area_bytes = bytes;
    header->address = (uintptr_t)header;
    header->core_count = (uint16_t)LAT_PORT_CORES;
    header->schema_count = (uint16_t)setup->schema_count;
    header->event_count = events;
    header->packet_bytes = setup->packet_bytes;
    header->packets_per_ring = setup->packets_per_ring;
    header->ring_offset = (uint32_t)sizeof *header;
    header->ring_stride = CONTROL_BYTES + setup->packet_bytes * setup->packets_per_ring;
    header->schema_offset = header->ring_offset + LAT_PORT_CORES * header->ring_stride;
    header->mode = setup->mode;
    header->clock_hz = LAT_PORT_CLOCK_HZ;
    header->clock_bits = LAT_PORT_CLOCK_BITS;
    header->pointer_bytes = (uint32_t)sizeof(void *);
    header->state = LAT_SMALL_STATE_READY;
    header->generation = generation + 1u;
    for (uint32_t core = 0; core < LAT_PORT_CORES; core++) {
        struct lat_small_ring *ring = ring_of(core);
        zero(ring, CONTROL_BYTES);
        ring->context = LAT_SMALL_CONTEXT_NONE;
        ring->sequence = 0xffffffffu; /* the first packet is 0; the high word wraps with it */
        ring->sequence_high = 0xffffffffu;
        ring->core = core;
#if LAT_PORT_CLOCK_BITS == 32
        ring->clock_last = lat_port_clock();
#endif
        for (uint32_t i = 0; i < setup->packets_per_ring; i++)
            packet_of(ring, offset_of(i))->magic = 0;
    }
    struct lat_small_schema *entry =
        (struct lat_small_schema *)(void *)((char *)header + header->schema_offset);
    uint32_t base_id = LAT_SMALL_FIRST_ID;
    for (uint32_t i = 0; i < setup->schema_count; i++, entry++) {
        const struct lat_schema *schema = setup->schemas[i];
        schema->events[0] = (uint16_t)base_id;
        entry->hash = schema->hash;
        entry->text = (uintptr_t)schema->text;
        entry->text_bytes = schema->text_bytes;
        entry->base_id = (uint16_t)base_id;
        entry->event_count = (uint16_t)schema->event_count;
        entry->switches = (uintptr_t)(schema->events + 1);
        base_id += schema->event_count;
    }
    ORDER();
    header->magic_complement = ~LAT_SMALL_MAGIC;
    header->magic = LAT_SMALL_MAGIC;
    ORDER();
    return LAT_SMALL_OK;
}

void lat_small_enable(const struct lat_schema *schema, uint32_t index, int on)
{
    volatile uint16_t *const events = schema->events;
    /* A schema in no area has base id 0: its events stay off. */
    for (uint32_t i = 0; i < schema->event_count; i++)
        if (index == LAT_SMALL_ALL || index == i)
            events[1u + i] = (uint16_t)(on && events[0] != 0 ? events[0] + i : 0u);
}

/* ---- while it runs --------------------------------------------------------------- */

void lat_small_keep_time(void)
{
#if LAT_PORT_CLOCK_BITS == 32
    if (!is_ready())
        return;
    const lat_port_mask_t before = lat_port_mask();
    struct lat_small_ring *const ring = my_ring();
    if (NOW(ring->busy) == 0) {
        uint32_t low, high;
        NOW(ring->busy) = 1u;
        read_clock(ring, &low, &high);
        /* 2^30 ticks: the record before the next call is less than 2^31 old. */
        const uint64_t age = ((uint64_t)high << 32 | low) - ((uint64_t)ring->begin_high << 32 | ring->begin);
        if (ring->cursor != 0 && age >> 30 != 0) {
            close_packet(ring);
            ring->limit = LAT_SMALL_LIMIT_CLOSED;
        }
        NOW(ring->busy) = 0;
    }
    lat_port_unmask(before);
#endif
}

void lat_small_close(void)
{
    if (!is_ready())
        return;
    const lat_port_mask_t before = lat_port_mask();
    struct lat_small_ring *const ring = my_ring();
    if (NOW(ring->busy) == 0 && ring->limit != LAT_SMALL_LIMIT_CLOSED) {
        NOW(ring->busy) = 1u;
        close_packet(ring);
        ring->limit = LAT_SMALL_LIMIT_CLOSED;
        NOW(ring->busy) = 0;
    }
    lat_port_unmask(before);
}

const struct lat_small_packet *lat_small_take(uint32_t core, uint32_t *bytes)
{
    if (!is_ready() || HEADER->mode != LAT_SMALL_MODE_DISCARD || core >= LAT_PORT_CORES)
        return NULL;
    struct lat_small_ring *const ring = ring_of(core);
    struct lat_small_packet *packet = packet_of(ring, offset_of(ring->consumed));
    if (NOW(packet->magic) != LAT_SMALL_PACKET_MAGIC || packet->sequence != ring->consumed)
        return NULL;
    const uint16_t content = *(volatile uint16_t *)&packet->content_bytes;
    if (content == 0)
        return NULL;
    ORDER();
    *bytes = content;
    return packet;
}

void lat_small_give_back(uint32_t core)
{
    struct lat_small_ring *const ring = ring_of(core);
    ORDER();
    NOW(ring->consumed) = ring->consumed + 1u;
}
