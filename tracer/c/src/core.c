// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The slow path of the tracer: everything that happens less often than once per
 * event. Freestanding: calls nothing but the port (core.h); `nm -u` shows no libc.
 *
 * The invariant (spec/ring-abi.md §4): a ring changes only by single
 * stores that are each valid by themselves. A thread that finds a ring between two
 * such stores completes the step and continues; a thread that dies leaves nothing to undo.
 */
#include "core.h"
#include "filter.h"

#include <stddef.h>

struct lat_i_area lat_i_area;
struct lat_ring lat_i_dummy_ring __attribute__((aligned(64)));
struct lat_i_state lat_i_state = {(char *)&lat_i_dummy_ring, 0, 0, 0};
/* Definition of the variable declared in lat.h. */
__thread struct lat_i_thread lat_i_thread __attribute__((tls_model("initial-exec"))) = {
    &lat_i_dummy_ring, 0, 0, 0, {0, 0, 0, 0}};

#define RELAXED __ATOMIC_RELAXED
#define ROUND_UP_8(x) (((x) + 7u) & ~UINT64_C(7))

static void count_loss(uint64_t *counter)
{
    /* A locked addition: a loss may be counted by a thread that has moved to
     * another CPU meanwhile. Pair: the recorder's relaxed read, and rseq_open's. */
    __atomic_fetch_add(counter, 1, RELAXED);
}

/* Counts a loss in a ring of this thread, which only its signal handlers can interrupt. */
static void count_own_loss(uint64_t *counter)
{
#if defined(__x86_64__)
    __asm__ volatile("incq %0" : "+m"(*counter)::"cc"); /* one instruction: no handler in between */
#else
    count_loss(counter);
#endif
}

static struct lat_packet *packet_at(struct lat_ring *ring, uint64_t sequence)
{
    const uint64_t index = sequence & (lat_i_area.packets_per_ring - 1);
    return (struct lat_packet *)(void *)((char *)ring + LAT_RING_CONTROL_BYTES +
                                         index * lat_i_area.packet_bytes);
}

static uint64_t *place_at(struct lat_ring *ring, uint64_t position)
{
    const uint64_t mask = lat_i_area.packet_bytes * lat_i_area.packets_per_ring - 1;
    return (uint64_t *)(void *)((char *)ring + LAT_RING_CONTROL_BYTES +
                                (position & mask & ~LAT_CURSOR_SLACK_MASK));
}

/* Maximum payload: it must fit after a packet's header and WRITER record. */
static uint64_t payload_bytes_max(void)
{
    return lat_i_area.packet_bytes - LAT_PACKET_HEADER_BYTES - 16u - LAT_PACKET_TAIL_BYTES -
           LAT_RECORD_HEADER_BYTES;
}

#define WRITER_RECORD_BYTES 16u
#define OPENING_STORES 17u
#define TEXT_OWN_MAX 4096u /* longer strings are rare, and their copy dominates the cost */

/* Packs the fields of a WRITER record. */
static uint64_t writer_payload(void)
{
    return LAT_I_PACK((uint64_t)lat_i_thread.pid, 0, 32) |
           LAT_I_PACK((uint64_t)lat_i_thread.writer, 32, 32);
}

/* Positions below this one have memory (spec/ring-abi.md §4.4). */
static uint64_t backed_end(const struct lat_ring *ring)
{
    /* Pair G1: the memory is allocated before the number is stored. */
    const uint64_t bytes = __atomic_load_n(&ring->backed_bytes, __ATOMIC_ACQUIRE);
    return bytes == 0 ? UINT64_MAX : bytes;
}

static uint64_t number_of(const struct lat_ring *ring)
{
    const char *rings = (const char *)lat_i_area.header + LAT_AREA_RINGS_OFFSET;
    return (uint64_t)((const char *)ring - rings) / lat_i_area.ring_stride;
}

/*
 * The stores that close the packet in which `cursor` lies and open the next one,
 * with its WRITER record. @return the position after that record, or 0 when no
 * packet is free.
 */
static uint64_t prepare_next_packet(struct lat_ring *ring, uint64_t cursor,
                                    struct lat_i_store stores[OPENING_STORES], uint64_t *count)
{
    const uint64_t bytes = lat_i_area.packet_bytes;
    const uint64_t position = cursor & ~LAT_CURSOR_SLACK_MASK;
    const uint64_t current = position >> lat_i_area.packet_shift;
    const uint64_t next = position == 0 ? 0 : current + 1;
    uint64_t n = 0;

    if (lat_i_area.header->ring_mode != LAT_MODE_OVERWRITE) {
        /* Pair W2: after this load the reader no longer accesses the packet. */
        const uint64_t consumed = __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE);
        if (next >= consumed + lat_i_area.packets_per_ring)
            return 0;
    }
    if (next * bytes + LAT_PACKET_HEADER_BYTES + WRITER_RECORD_BYTES > backed_end(ring))
        return 0;
    const uint64_t now = lat_i_clock();
    if (position != 0) {
        struct lat_packet *old = packet_at(ring, current);
        const uint64_t content = position - (cursor & LAT_CURSOR_SLACK_MASK) - current * bytes;
        const uint64_t full = __atomic_load_n(&ring->lost_full, RELAXED);
        const uint64_t big = __atomic_load_n(&ring->lost_too_big, RELAXED);
        const uint64_t contended = __atomic_load_n(&ring->lost_contended, RELAXED);
        const uint64_t no_ring = __atomic_load_n(&ring->lost_no_ring, RELAXED);
        stores[n++] = (struct lat_i_store){&old->timestamp_end, now};
        stores[n++] = (struct lat_i_store){&old->content_bits, content * 8};
        stores[n++] = (struct lat_i_store){&old->packet_bits, ROUND_UP_8(content) * 8};
        stores[n++] =
            (struct lat_i_store){&old->events_discarded, full + big + contended + no_ring};
        stores[n++] = (struct lat_i_store){&old->lost_full, full};
        stores[n++] = (struct lat_i_store){&old->lost_too_big, big};
        stores[n++] = (struct lat_i_store){&old->lost_contended, contended};
        stores[n++] = (struct lat_i_store){&old->lost_no_ring, no_ring};
    }
    struct lat_packet *packet = packet_at(ring, next);
    uint64_t *record = (uint64_t *)(void *)(packet + 1);
    /* Each word is stored whole: uuid, stream and checksum are set by the recorder, in its copy only. */
    stores[n++] = (struct lat_i_store){(uint64_t *)(void *)&packet->magic,
                                       LAT_I_PACK((uint64_t)LAT_PACKET_MAGIC, 0, 32)};
    stores[n++] = (struct lat_i_store){&packet->area_id, lat_i_area.header->area_id};
    stores[n++] = (struct lat_i_store){(uint64_t *)(void *)&packet->cpu_id,
                                       LAT_I_PACK(number_of(ring), 0, 32)};
    stores[n++] = (struct lat_i_store){&packet->content_bits, 0};
    stores[n++] = (struct lat_i_store){&packet->timestamp_begin, now};
    stores[n++] = (struct lat_i_store){&packet->sequence, next};
    stores[n++] = (struct lat_i_store){record, LAT_I_RECORD_HEADER((uint64_t)LAT_ID_WRITER, now)};
    stores[n++] = (struct lat_i_store){record + 1, writer_payload()};
    /* No fast path may succeed until the new writer is stored. The word
     * after last_writer is reserved, so one 64-bit store covers both. */
    stores[n++] = (struct lat_i_store){(uint64_t *)(void *)&ring->last_writer,
                                       LAT_I_PACK((uint64_t)LAT_WRITER_NONE, 0, 32)};
    *count = n;
    return next * bytes + LAT_PACKET_HEADER_BYTES + WRITER_RECORD_BYTES;
}

/* End of the space for records in the packet that contains `cursor`. */
static uint64_t packet_end(uint64_t cursor)
{
    const uint64_t bytes = lat_i_area.packet_bytes;
    return (cursor & ~(bytes - 1)) + bytes - LAT_PACKET_TAIL_BYTES;
}

/* Whether `bytes` bytes of records from `position` on end in its packet. Other processes can write the word
 * `position`: a record that passes this check lies in the ring, whatever its value. */
static int fits_packet(uint64_t position, uint64_t bytes)
{
    const uint64_t within = position & (lat_i_area.packet_bytes - 1) & ~LAT_CURSOR_SLACK_MASK;
    return within + bytes <= lat_i_area.packet_bytes - LAT_PACKET_TAIL_BYTES;
}

/* The limit of that packet, as far as it has memory. */
static uint64_t limit_of(const struct lat_ring *ring, uint64_t cursor)
{
    const uint64_t end = packet_end(cursor), backed = backed_end(ring);
    return end < backed ? end : backed;
}

/* last_writer, with the following reserved word. */
static uint64_t writer_word(void)
{
    return LAT_I_PACK((uint64_t)lat_i_thread.writer, 0, 32);
}

/* ---- per-CPU rings ---------------------------------------------------- */

/* Closes the packet of `cursor` and opens the next one. @return 0 when no packet is free; else the
 * caller reads the ring again, whether that succeeded or was restarted. */
static int open_packet(struct lat_ring *ring, uint32_t cpu, uint64_t cursor)
{
    struct lat_i_store stores[OPENING_STORES];
    uint64_t n;
    const uint64_t opened = prepare_next_packet(ring, cursor, stores, &n);
    if (opened == 0)
        return 0;
    if (lat_i_rseq_stores(ring, cpu, cursor, stores, n, &ring->cursor, opened)) {
        /* Pair W3: the packet is known to be reused before its bytes change. */
        __atomic_thread_fence(__ATOMIC_RELEASE);
        lat_i_rseq_stores(ring, cpu, opened, 0, 0, &ring->limit, limit_of(ring, opened));
        lat_i_rseq_stores(ring, cpu, opened, 0, 0, (uint64_t *)(void *)&ring->last_writer,
                          writer_word());
    }
    return 1;
}

/* For a record that ends past the limit. @return like open_packet. Not inlined: an event that finds room
 * must not pay for it. */
static __attribute__((noinline)) int make_room(struct lat_ring *ring, uint32_t cpu, uint64_t cursor,
                                               uint64_t record_bytes)
{
    const uint64_t end = (cursor & ~LAT_CURSOR_SLACK_MASK) + record_bytes;
    const uint64_t limit = limit_of(ring, cursor);
    if (cursor == 0 || !fits_packet(cursor, record_bytes))
        return open_packet(ring, cpu, cursor);
    if (end > limit)
        return 0; /* the packet has no memory yet for it */
    /* Another thread opened the packet without setting the limit, or the packet has got memory since. */
    lat_i_rseq_stores(ring, cpu, cursor, 0, 0, &ring->limit, limit);
    return 1;
}

/* Whether the packet contains only its opening WRITER record, written by this thread. */
static int opened_by_me(struct lat_ring *ring, uint64_t start)
{
    const uint64_t *record = place_at(ring, start - WRITER_RECORD_BYTES);
    return start % lat_i_area.packet_bytes == LAT_PACKET_HEADER_BYTES + WRITER_RECORD_BYTES &&
           record[1] == writer_payload();
}

/* Makes this thread the ring's last writer. @return like open_packet; also 0 if the packet has no
 * memory yet for the record. */
static int become_writer(struct lat_ring *ring, uint32_t cpu, uint64_t cursor,
                         uint64_t record_bytes)
{
    const uint64_t start = cursor & ~LAT_CURSOR_SLACK_MASK;
    const uint64_t end = start + WRITER_RECORD_BYTES;
    if (opened_by_me(ring, start)) {
        /* Interrupted before last_writer was stored. Without this a record that fits into no packet
         * after its opening WRITER record would open one packet after another. */
        lat_i_rseq_stores(ring, cpu, cursor, 0, 0, (uint64_t *)(void *)&ring->last_writer,
                          writer_word());
        return 1;
    }
    if (!fits_packet(start, WRITER_RECORD_BYTES + record_bytes))
        return open_packet(ring, cpu, cursor); /* the next packet begins with a WRITER anyway */
    if (end + record_bytes > backed_end(ring))
        return 0;
    const struct lat_i_store stores[3] = {
        {(uint64_t *)(void *)&ring->last_writer, LAT_I_PACK((uint64_t)LAT_WRITER_NONE, 0, 32)},
        {place_at(ring, start), LAT_I_RECORD_HEADER((uint64_t)LAT_ID_WRITER, lat_i_clock())},
        {place_at(ring, start) + 1, writer_payload()},
    };
    if (lat_i_rseq_stores(ring, cpu, cursor, stores, 3, &ring->cursor, end))
        lat_i_rseq_stores(ring, cpu, end, 0, 0, (uint64_t *)(void *)&ring->last_writer,
                          writer_word());
    return 1;
}

static void emit_per_cpu(uint32_t id, const struct lat_i_piece *pieces, uint32_t count,
                         uint64_t payload_bytes)
{
    const uint64_t record_bytes = ROUND_UP_8(LAT_RECORD_HEADER_BYTES + payload_bytes);
    const uint64_t slack = record_bytes - LAT_RECORD_HEADER_BYTES - payload_bytes;
    struct lat_ring *ring = 0;

    for (uint32_t tries = 0; tries < LAT_RETRY_LIMIT; tries++) {
        const int port_cpu = lat_i_port_cpu();
        const uint32_t cpu = (uint32_t)port_cpu;
        if (port_cpu < 0 || cpu >= lat_i_area.ring_count) {
            count_loss(&lat_i_area.header->lost_no_ring);
            return;
        }
        ring = (struct lat_ring *)(void *)(lat_i_state.rings + cpu * lat_i_area.ring_stride);
        if (payload_bytes > payload_bytes_max()) {
            count_loss(&ring->lost_too_big);
            return;
        }
        const uint64_t cursor = __atomic_load_n(&ring->cursor, RELAXED);
        const uint64_t start = cursor & ~LAT_CURSOR_SLACK_MASK;
        int free_packet = 1;

        if (start + record_bytes > __atomic_load_n(&ring->limit, RELAXED) ||
            !fits_packet(start, record_bytes)) {
            free_packet = make_room(ring, cpu, cursor, record_bytes);
        } else if (__atomic_load_n(&ring->last_writer, RELAXED) != lat_i_thread.writer) {
            free_packet = become_writer(ring, cpu, cursor, record_bytes);
        } else if (lat_i_rseq_record(ring, cpu, cursor, place_at(ring, start), id, pieces, count,
                                     start + record_bytes + slack)) {
            return;
        }
        /* Counted only on the ring's own CPU, which avoids a locked addition; that would cost as much as
         * an event. */
        if (!free_packet && lat_i_rseq_count(ring, cpu, cursor, &ring->lost_full))
            return;
    }
    count_loss(&ring->lost_contended);
}

/* ---- per-thread rings ------------------------------------------------- */

/* Claims the first free ring. The recorder releases those of killed threads,
 * because it may ask the kernel which threads have ended. */
static struct lat_ring *take_ring(void)
{
    for (uint32_t i = 0; i < lat_i_area.ring_count; i++) {
        struct lat_ring *ring =
            (struct lat_ring *)(void *)((char *)lat_i_area.header + LAT_AREA_RINGS_OFFSET +
                                        i * lat_i_area.ring_stride);
        uint64_t owner = __atomic_load_n(&ring->owner, RELAXED);
        if (owner != 0)
            continue;
        /* Pairs with the release of owner in lat_i_thread_end: the last owner's records. */
        if (__atomic_compare_exchange_n(&ring->owner, &owner, lat_i_thread.writer, 0,
                                        __ATOMIC_ACQUIRE, RELAXED))
            return ring;
    }
    return 0;
}

static int claim_ring(uint32_t level)
{
    struct lat_ring *ring = take_ring();
    if (ring == 0)
        return 0;
    /* Otherwise the first time of this owner may be read while the claim still waits for its memory, and
     * be less than the last time of the previous owner: up to 106 ticks were seen. */
    lat_i_clock_fence();
    /* An owner that died inside a record left LAT_LIMIT_BUSY; the cursor is valid. */
    __atomic_store_n(&ring->limit, 0, RELAXED);
    lat_i_thread.nested[level] = ring;
    if (level == 0)
        lat_i_thread.ring = ring;
    lat_i_port_thread_claimed();
    return 1;
}

/* Copies in steps, the last of which ends with the piece and overlaps the previous one. The empty assembly
 * keeps the compiler from emitting a call of memcpy, which does not exist here. */
static LAT_INLINE void copy_bytes(uint8_t *to, const uint8_t *from, size_t bytes)
{
    if (bytes >= 8) {
        uint64_t last;
        for (size_t at = 0; at + 8 < bytes; at += 8) {
            __builtin_memcpy(to + at, from + at, 8);
            __asm__ volatile("" ::: "memory");
        }
        __builtin_memcpy(&last, from + bytes - 8, 8);
        __builtin_memcpy(to + bytes - 8, &last, 8);
    } else if (bytes >= 4) {
        uint32_t first, last;
        __builtin_memcpy(&first, from, 4);
        __builtin_memcpy(&last, from + bytes - 4, 4);
        __builtin_memcpy(to, &first, 4);
        __builtin_memcpy(to + bytes - 4, &last, 4);
    } else if (bytes != 0) {
        to[0] = from[0];
        to[bytes / 2] = from[bytes / 2];
        to[bytes - 1] = from[bytes - 1];
    }
}
static void copy_pieces(uint8_t *to, const struct lat_i_piece *pieces, uint32_t count)
{
    for (uint32_t i = 0; i < count; to += pieces[i].bytes, i++)
        copy_bytes(to, (const uint8_t *)pieces[i].data, pieces[i].bytes);
}

/* Makes the calling thread the last writer of its ring, and makes room for a record at `cursor`, in the next
 * packet if needed. @return its position, or 0 if there is no room. Context: the ring is marked as busy. */
static uint64_t prepare_place(struct lat_ring *ring, uint64_t cursor, uint64_t record_bytes)
{
    const int writer_known = ring->last_writer == lat_i_thread.writer;
    const uint64_t room = backed_end(ring);
    uint64_t position = cursor & ~LAT_CURSOR_SLACK_MASK;
    const uint64_t bytes = record_bytes + (writer_known ? 0 : WRITER_RECORD_BYTES);
    const uint64_t end = position + bytes;
    if (cursor == 0 || !fits_packet(position, bytes)) {
        struct lat_i_store stores[OPENING_STORES];
        uint64_t n;
        position = prepare_next_packet(ring, cursor, stores, &n);
        if (position == 0 || position + record_bytes > room)
            return 0;
        for (uint64_t i = 0; i < n; i++)
            *(volatile uint64_t *)stores[i].address = stores[i].value;
        __atomic_store_n(&ring->cursor, position, __ATOMIC_RELEASE); /* pair W1 */
        __atomic_thread_fence(__ATOMIC_RELEASE); /* pair W3 */
    } else if (end > room) {
        return 0;
    } else if (!writer_known) {
        uint64_t *place = place_at(ring, position);
        place[0] = LAT_I_RECORD_HEADER((uint64_t)LAT_ID_WRITER, lat_i_clock());
        place[1] = writer_payload();
        position += WRITER_RECORD_BYTES;
    }
    ring->last_writer = lat_i_thread.writer;
    return position;
}

static void emit_per_thread(uint32_t id, const struct lat_i_piece *pieces, uint32_t count,
                            uint64_t payload_bytes)
{
    const uint64_t record_bytes = ROUND_UP_8(LAT_RECORD_HEADER_BYTES + payload_bytes);
    const uint64_t slack = record_bytes - LAT_RECORD_HEADER_BYTES - payload_bytes;
    struct lat_ring *ring = 0;
    uint64_t limit = LAT_LIMIT_BUSY;

    /* The first ring of this thread that is not being written. */
    for (uint32_t level = 0; level < LAT_I_NESTING_LEVELS; level++) {
        ring = lat_i_thread.nested[level];
        if (ring == 0) {
            if (!claim_ring(level)) {
                count_loss(&lat_i_area.header->lost_no_ring);
                return;
            }
            ring = lat_i_thread.nested[level];
        }
        limit = __atomic_load_n(&ring->limit, RELAXED);
        if (limit != LAT_LIMIT_BUSY)
            break;
    }
    if (limit == LAT_LIMIT_BUSY) {
        count_loss(&ring->lost_no_ring);
        return;
    }
    if (payload_bytes > payload_bytes_max()) {
        count_loss(&ring->lost_too_big);
        return;
    }
    __atomic_store_n(&ring->limit, LAT_LIMIT_BUSY, RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* pair: the same thread's signal handler */

    const uint64_t cursor = __atomic_load_n(&ring->cursor, RELAXED);
    uint64_t position = cursor & ~LAT_CURSOR_SLACK_MASK;
    /* If the old limit leaves room, it is kept, and no further checks are needed. */
    if (ring->last_writer != lat_i_thread.writer || position + record_bytes > limit ||
        !fits_packet(position, record_bytes)) {
        position = prepare_place(ring, cursor, record_bytes);
        if (position == 0) {
            count_own_loss(&ring->lost_full);
            __atomic_store_n(&ring->limit, 0, RELAXED);
            return;
        }
        limit = limit_of(ring, position);
    }
    if (ring == lat_i_thread.ring)
        lat_i_thread.base = (uintptr_t)place_at(ring, position) - (uintptr_t)position;

    uint64_t *place = place_at(ring, position);
    place[record_bytes / 8 - 1] = 0; /* the slack must not show older bytes */
    place[0] = LAT_I_RECORD_HEADER((uint64_t)id, lat_i_clock());
    copy_pieces((uint8_t *)(place + 1), pieces, count);
    __atomic_store_n(&ring->cursor, position + record_bytes + slack, __ATOMIC_RELEASE); /* W1 */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&ring->limit, limit, RELAXED);
}

/* The fast path of ring_thread.h, for a record with a string. Neither reads past the end of the string nor
 * writes past the end of the record. */
int lat_i_emit_text_own(uint32_t id, uint8_t *prefix, uint32_t prefix_bytes, const char *text,
                        size_t length)
{
    if (length > TEXT_OWN_MAX || prefix_bytes > LAT_I_TEXT_PREFIX)
        return 0;
    const uint64_t payload_bytes = prefix_bytes + length + 1;
    const uint64_t record_bytes = ROUND_UP_8(LAT_RECORD_HEADER_BYTES + payload_bytes);
    const uint64_t slack = record_bytes - LAT_RECORD_HEADER_BYTES - payload_bytes;
    struct lat_ring *ring = lat_i_thread.ring;
    const uint64_t limit = __atomic_load_n(&ring->limit, RELAXED);
    __atomic_store_n(&ring->limit, LAT_LIMIT_BUSY, RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* pair: the same thread's signal handler */
    const uint64_t start = __atomic_load_n(&ring->cursor, RELAXED) & ~LAT_CURSOR_SLACK_MASK;
    const uint64_t end = start + record_bytes + slack;
    const uint64_t now = lat_i_clock();
    if (end > limit) {
        __atomic_store_n(&ring->limit, limit, RELAXED);
        return 0;
    }
    uint64_t *place = (uint64_t *)(lat_i_thread.base + (uintptr_t)start);
    uint8_t *to = (uint8_t *)(place + 1);
    place[record_bytes / 8 - 1] = 0; /* the NUL, and the slack must not show older bytes */
    place[0] = LAT_I_RECORD_HEADER((uint64_t)id, now);
    copy_bytes(to, prefix, prefix_bytes);
    copy_bytes(to + prefix_bytes, (const uint8_t *)text, length);
    __atomic_store_n(&ring->cursor, end, __ATOMIC_RELEASE); /* pair W1 */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&ring->limit, limit, RELAXED);
    return 1;
}

void lat_i_thread_end(void)
{
    struct lat_i_thread *thread = &lat_i_thread;
    thread->ring = &lat_i_dummy_ring;
    if (lat_i_area.kind == LAT_RING_PER_THREAD && thread->writer != 0) {
        /* Searches by owner and not by the list: a handler may have claimed a ring that is not in it. */
        for (uint32_t i = 0; i < lat_i_area.ring_count; i++) {
            struct lat_ring *ring =
                (struct lat_ring *)(void *)((char *)lat_i_area.header + LAT_AREA_RINGS_OFFSET +
                                            i * lat_i_area.ring_stride);
            if (__atomic_load_n(&ring->owner, RELAXED) == thread->writer)
                __atomic_store_n(&ring->owner, 0, __ATOMIC_RELEASE); /* pair: claim_ring */
        }
    }
    lat_i_thread_forked();
}

void lat_i_thread_forked(void)
{
    lat_i_thread.ring = &lat_i_dummy_ring;
    lat_i_thread.writer = 0;
    lat_i_thread.pid = 0;
    for (uint32_t level = 0; level < LAT_I_NESTING_LEVELS; level++)
        lat_i_thread.nested[level] = 0;
}

/* ---- entry ------------------------------------------------------------ */

int lat_i_rings_usable(void)
{
    struct lat_area_header *header = lat_i_area.header;
    /* Pairs with the release at the end: geometry and lat_i_state. */
    if (__atomic_load_n(&lat_i_area.rings_usable, __ATOMIC_ACQUIRE))
        return 1;
    if (header == 0 || __atomic_load_n(&header->rings_ready, __ATOMIC_ACQUIRE) != 2) /* R1 */
        return 0;
    /* Copied once and checked: sites rely on these values from now on. */
    const uint64_t stride = header->ring_stride;
    const uint64_t packet = header->packet_bytes;
    const uint64_t packets = header->packets_per_ring;
    if (packet < 4096 || packet > (UINT64_C(1) << 24) || (packet & (packet - 1)) != 0 ||
        packets < 2 || packets > 65536 || (packets & (packets - 1)) != 0 ||
        stride < LAT_RING_CONTROL_BYTES + packet * packets || stride % 4096 != 0 ||
        stride > (lat_i_area.mapped_bytes - LAT_AREA_RINGS_OFFSET) / lat_i_area.ring_count ||
        !lat_i_port_open_rings(stride * lat_i_area.ring_count))
        return 0;
    lat_i_area.ring_stride = stride;
    lat_i_area.packet_bytes = packet;
    lat_i_area.packet_room = packet - LAT_PACKET_TAIL_BYTES;
    lat_i_area.packet_shift = (uint32_t)__builtin_ctzll(packet);
    lat_i_area.packets_per_ring = packets;
    if (lat_i_area.kind == LAT_RING_PER_CPU) {
        __atomic_store_n(&lat_i_state.mask, (packet * packets - 1) & ~LAT_CURSOR_SLACK_MASK, RELAXED);
        /* The base first: with the dummy's base any stride but 0 would lead outside of its memory. A site
         * that sees the new base and stride 0 finds ring 0 and is not its last writer. (On a
         * machine that reorders loads, a site tests for a writer id before it uses either.) */
        __atomic_store_n(&lat_i_state.rings, (char *)header + LAT_AREA_RINGS_OFFSET,
                         __ATOMIC_RELEASE);
        __atomic_store_n(&lat_i_state.ring_stride, stride, __ATOMIC_RELEASE);
    }
    /* Pair: can_be_lost. */
    __atomic_store_n(&lat_i_area.payload_end, payload_bytes_max() + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&lat_i_area.rings_usable, 1, __ATOMIC_RELEASE);
    return 1;
}

static void emit(uint32_t id, const struct lat_i_piece *pieces, uint32_t count,
                 uint64_t payload_bytes)
{
    if (lat_i_area.kind == LAT_RING_PER_CPU)
        emit_per_cpu(id, pieces, count, payload_bytes);
    else
        emit_per_thread(id, pieces, count, payload_bytes);
}

struct who {
    uint32_t pid, parent_or_tid;
    char name[16];
};

static void tell(uint32_t id, const struct who *who)
{
    uint64_t length = 0;
    while (length < sizeof who->name - 1 && who->name[length] != 0)
        length++;
    const struct lat_i_piece piece = {who, offsetof(struct who, name) + length + 1};
    emit(id, &piece, 1, piece.bytes);
}

/* Writes the records that identify a writer, before its first event (spec/lateralis.pleco). */
static void introduce(int first_of_process)
{
    struct who who = {lat_i_thread.pid, 0, {0}};
    if (first_of_process) {
        who.parent_or_tid = lat_i_port_parent_pid();
        lat_i_port_process_name(who.name);
        tell(LAT_ID_PROCESS, &who);
    }
    who.parent_or_tid = lat_i_thread.writer;
    lat_i_port_thread_name(who.name);
    tell(LAT_ID_THREAD_NAME, &who);
}

void lat_i_tell_thread_name(uint32_t thread, const char *name)
{
    struct who who = {lat_i_thread.pid, thread, {0}};
    if (lat_i_thread.writer == 0 || !lat_i_rings_usable())
        return;
    for (uint32_t at = 0; at < sizeof who.name - 1 && name[at] != 0; at++)
        who.name[at] = name[at];
    tell(LAT_ID_THREAD_NAME, &who);
    lat_i_port_sequence_over();
}

void lat_i_count_lost(uint64_t events)
{
    if (lat_i_area.header != 0)
        __atomic_fetch_add(&lat_i_area.header->lost_no_ring, events, RELAXED); /* pair: count_loss */
}

static __attribute__((noinline)) void emit_or_count(uint32_t id, const struct lat_i_piece *pieces,
                                                    uint32_t count, uint64_t payload_bytes)
{
    if (!lat_i_rings_usable()) {
        count_loss(&lat_i_area.header->lost_no_ring);
        return;
    }
    if (lat_i_thread.writer == 0) {
        const int begun = lat_i_port_thread_begin();
        if (begun == LAT_I_THREAD_CANNOT) {
            count_loss(&lat_i_area.header->lost_no_ring);
            return;
        }
        introduce(begun == LAT_I_FIRST_OF_PROCESS);
    }
    emit(id, pieces, count, payload_bytes);
}

/* Whether an event may be lost to a ring that stays full, so that only this ring needs to be checked.
 * Implies that there is an area. */
static LAT_INLINE int can_be_lost(uint64_t payload_bytes)
{
    return payload_bytes < __atomic_load_n(&lat_i_area.payload_end, __ATOMIC_ACQUIRE) &&
           lat_i_thread.writer != 0 &&
           /* Read each time: a recorder that attaches can change it. */
           __atomic_load_n(&lat_i_area.header->ring_mode, RELAXED) != LAT_MODE_OVERWRITE;
}

/* The checks of emit_per_thread in short form. @return whether the event has been counted as
 * lost. Context: can_be_lost. */
static LAT_INLINE int is_lost_to_own_ring(uint64_t payload_bytes)
{
    struct lat_ring *ring = lat_i_thread.ring;
    const uint64_t cursor = __atomic_load_n(&ring->cursor, RELAXED);
    const uint64_t next = (cursor >> lat_i_area.packet_shift) + 1;
    if (__atomic_load_n(&ring->limit, RELAXED) == LAT_LIMIT_BUSY ||
        ring->last_writer != lat_i_thread.writer ||
        fits_packet(cursor, ROUND_UP_8(LAT_RECORD_HEADER_BYTES + payload_bytes)) ||
        /* Pair W2: as in prepare_next_packet, but nothing is written. */
        next < __atomic_load_n(&ring->consumed, RELAXED) + lat_i_area.packets_per_ring)
        return 0;
    count_own_loss(&ring->lost_full);
    return 1;
}

void lat_i_emit_pieces(uint32_t id, const struct lat_i_piece *pieces, uint32_t count,
                       size_t payload_bytes)
{
    if (lat_i_area.header == 0)
        return;
    if (can_be_lost(payload_bytes)) {
        if (lat_i_area.kind == LAT_RING_PER_THREAD) {
            if (is_lost_to_own_ring(payload_bytes))
                return;
#if defined(__x86_64__)
        } else if (lat_i_rseq_lost(ROUND_UP_8(LAT_RECORD_HEADER_BYTES + payload_bytes))) {
            return;
#endif
        }
    }
    emit_or_count(id, pieces, count, payload_bytes);
    lat_i_port_sequence_over();
}

__attribute__((noinline)) void lat_i_emit_words_slowly(uint32_t id, uint32_t payload_bytes,
                                                       const uint64_t *words)
{
    if (lat_i_area.header == 0)
        return;
    const struct lat_i_piece piece = {words, payload_bytes};
    emit_or_count(id, &piece, payload_bytes != 0, payload_bytes);
    lat_i_port_sequence_over();
}

void lat_i_emit_words(uint32_t id, uint32_t payload_bytes, const uint64_t *words)
{
    if (can_be_lost(payload_bytes)) {
        if (lat_i_area.kind == LAT_RING_PER_THREAD) {
            if (is_lost_to_own_ring(payload_bytes))
                return;
#if defined(__x86_64__)
        } else {
            lat_i_rseq_words_or_lost(id, payload_bytes, words);
            return;
#endif
        }
    }
    lat_i_emit_words_slowly(id, payload_bytes, words);
}

size_t lat_i_payload_most(void)
{
    return lat_i_rings_usable() ? (size_t)payload_bytes_max() : 0;
}

int lat_recording(void)
{
    const struct lat_area_header *header = lat_i_area.header;
    return header != 0 && header->recorder_pid != 0;
}

void lat_mark(const char *text)
{
    if (!lat_recording())
        return;
    uint64_t length = 0;
    while (text != 0 && text[length] != 0)
        length++;
    const struct lat_i_piece pieces[2] = {{text, length}, {"", 1}};
    lat_i_emit_pieces(LAT_ID_MARK, pieces + (length == 0), 2 - (length == 0), length + 1);
}

/* ---- triggers, spec/ring-abi.md §7 -------------------------------------- */

static int matches(uint32_t flags, uint32_t event, uint64_t value, uint64_t mask, uint32_t id,
                   uint64_t first_word)
{
    return (flags & LAT_TRIGGER_MATCH_EVENT) != 0 && event == id &&
           ((flags & LAT_TRIGGER_MATCH_VALUE) == 0 || (first_word & mask) == (value & mask));
}

static void disable_all(uint8_t *enable)
{
    const uint32_t used = __atomic_load_n(&lat_i_area.header->next_event_id, RELAXED);
    for (uint32_t i = 0; i < used && i < LAT_AREA_EVENT_COUNT; i++)
        __atomic_store_n(&enable[i], 0, RELAXED);
}

static void stop(struct lat_area_trigger *trigger, uint64_t now)
{
    uint32_t running = LAT_TRIGGER_RUNNING;
    uint8_t *enable = (uint8_t *)lat_i_area.header + LAT_AREA_ENABLE_OFFSET;
    if (!__atomic_compare_exchange_n(&trigger->state, &running, LAT_TRIGGER_DONE, 0,
                                     __ATOMIC_ACQ_REL, RELAXED))
        return;
    __atomic_store_n(&trigger->stopped_at, now, RELAXED);
    /* Pair: the fence in start. Either start sees DONE, or these stores come after its own. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    disable_all(enable);
}

static void start(struct lat_area_trigger *trigger, uint64_t now)
{
    uint8_t *enable = (uint8_t *)lat_i_area.header + LAT_AREA_ENABLE_OFFSET;
    const uint8_t *wanted = (const uint8_t *)lat_i_area.header + LAT_AREA_WANTED_OFFSET;
    const uint32_t used = __atomic_load_n(&lat_i_area.header->next_event_id, RELAXED);
    __atomic_store_n(&trigger->started_at, now, RELAXED);
    for (uint32_t i = 0; i < used && i < LAT_AREA_EVENT_COUNT; i++) {
        uint8_t byte = __atomic_load_n(&wanted[i], RELAXED);
        if ((trigger->count != 0 || trigger->duration != 0) && byte != 0)
            byte |= LAT_ENABLE_WATCH;
        if ((trigger->stop_flags & LAT_TRIGGER_MATCH_EVENT) != 0 && trigger->stop_event == i)
            byte |= LAT_ENABLE_WATCH;
        __atomic_store_n(&enable[i], byte, RELAXED);
    }
    /* Another thread may have stopped meanwhile, and its zeros may have been overwritten. Pair: stop. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&trigger->state, RELAXED) != LAT_TRIGGER_RUNNING)
        disable_all(enable);
}

/* @return whether the triggers allow an event to be recorded. */
static int watch(uint32_t id, unsigned on, const struct lat_i_piece *pieces, uint32_t count)
{
    struct lat_area_trigger *trigger = &lat_i_area.header->trigger;
    uint32_t state = __atomic_load_n(&trigger->state, __ATOMIC_ACQUIRE);
    if (state == LAT_TRIGGER_NONE)
        return (on & LAT_ENABLE_RECORD) != 0;
    const uint64_t now = lat_i_clock(), first_word = lat_i_first_word(pieces, count);

    if (state == LAT_TRIGGER_ARMED) {
        uint32_t armed = LAT_TRIGGER_ARMED;
        if (!matches(trigger->start_flags, trigger->start_event, trigger->start_value,
                     trigger->start_mask, id, first_word))
            return 0;
        if (__atomic_compare_exchange_n(&trigger->state, &armed, LAT_TRIGGER_RUNNING, 0,
                                        __ATOMIC_ACQ_REL, RELAXED))
            start(trigger, now);
        /* The start event belongs to the recording, even if it is not enabled (seed 000 §2.1). */
        on |= LAT_ENABLE_RECORD;
        state = LAT_TRIGGER_RUNNING;
    }
    if (state != LAT_TRIGGER_RUNNING)
        return 0;

    const int stops = matches(trigger->stop_flags, trigger->stop_event, trigger->stop_value,
                              trigger->stop_mask, id, first_word);
    const uint64_t started_at = __atomic_load_n(&trigger->started_at, RELAXED);
    /* 0: the thread that started has not yet stored the time. */
    if (trigger->duration != 0 && started_at != 0 && now > started_at &&
        now - started_at > trigger->duration) {
        stop(trigger, now);
        return 0;
    }
    if (!stops && (on & LAT_ENABLE_RECORD) == 0)
        return 0;
    if (trigger->count != 0) {
        const uint64_t before = __atomic_fetch_add(&trigger->counted, 1, RELAXED);
        if (stops || before + 1 >= trigger->count)
            stop(trigger, now);
        return before < trigger->count;
    }
    if (stops)
        stop(trigger, now);
    return 1;
}

int lat_i_look(uint32_t id, unsigned on, const struct lat_i_piece *pieces, uint32_t count)
{
    const char *area = (const char *)lat_i_area.header;
    if (area == 0)
        return 0;
    if ((on & LAT_ENABLE_FILTER) != 0 && id < LAT_AREA_EVENT_COUNT) {
        const volatile uint16_t *index =
            (const volatile uint16_t *)(const void *)(area + LAT_AREA_FILTER_INDEX_OFFSET);
        const uint32_t number = index[id];
        const struct lat_area_filter *filters =
            (const struct lat_area_filter *)(const void *)(area + LAT_AREA_FILTERS_OFFSET);
        /* An event rejected by the filter counts as disabled: it can still stop a trigger. */
        if (number != 0 && number < LAT_AREA_FILTER_COUNT &&
            !lat_i_filter_passes(&filters[number], pieces, count))
            on &= ~LAT_ENABLE_RECORD;
    }
    return watch(id, on, pieces, count);
}

int lat_i_look_words(uint32_t id, uint32_t bytes_and_on, const uint64_t *words)
{
    const struct lat_i_piece piece = {words, bytes_and_on >> 8};
    return lat_i_look(id, bytes_and_on & 0xffu, &piece, 1);
}
