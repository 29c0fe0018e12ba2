// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The unmodified slow path (src/core.c, compiled into this file) in every order: writers on one CPU
 * that are preempted, restarted and killed between any two accesses to the ring, and a reader on
 * another CPU. spec/ring-abi.md §4 and §5, both reservation kinds, both modes.
 *
 * The port's restartable sequences are simulated step by step, with the kernel's guarantee: a writer
 * that was preempted inside a sequence restarts it. Every atomic access of the core is a
 * point where others may run. Weak memory order is not simulated; the
 * model in crates/ring covers it.
 *
 * Checked at the end of every run; with kills, a run may end anywhere:
 * the records in the ring are those that were committed, each once, whole, in order, with their
 * writer; every other event was counted as lost.
 */
#define LAT_RING_THREAD
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

static void point(void);
/* Accesses of the core and of the record path in ring_thread.h, which this file includes. */
#define __atomic_load_n(place, order) (point(), __atomic_load_n(place, order))
#define __atomic_store_n(place, value, order)                                                  \
    (point(), __atomic_store_n(place, value, order))

#include "../src/core.c"

#include "explore.h"

#define RINGS 3u
#define PACKET_BYTES 256u
#define PACKETS 2u
#define RING_BYTES (LAT_RING_CONTROL_BYTES + PACKET_BYTES * PACKETS)
#define EVENTS_MAX 16u
#define EVENT_ID 20u

struct scenario {
    const char *name;
    uint32_t kind, mode;
    uint32_t writers, events; /* events of each writer */
    uint32_t reader;          /* whether one drains meanwhile */
    uint32_t handlers;        /* maximum events of signal handlers, per thread */
    uint32_t kills;
    uint32_t budget;
};

static struct {
    struct lat_i_thread thread[COROUTINES_MAX]; /* each one's lat_i_thread */
    int in_sequence[COROUTINES_MAX], restarted[COROUTINES_MAX];
    uint32_t handlers_left[COROUTINES_MAX], handler_number[COROUTINES_MAX];
    uint32_t on_cpu;
    uint32_t kills_left;
    uint64_t committed[RINGS][64]; /* values in the order of their commits */
    uint64_t committed_in[RINGS][64]; /* packet of each */
    uint32_t committed_count[RINGS];
    uint64_t written; /* events started */
    uint64_t ended;   /* events for which the tracer has returned */
    uint64_t read[RINGS][64];
    uint32_t read_count[RINGS];
    uint64_t read_packets[RINGS]; /* next packet to read */
    uint32_t read_tid[RINGS];
} play;
static union {
    uint8_t bytes[LAT_AREA_RINGS_OFFSET + RINGS * RING_BYTES];
    struct lat_area_header header;
    uint64_t align;
} area;
static const struct scenario *scenario;
static char why[256];

static void wrong(const char *text, uint64_t a, uint64_t b)
{
    if (why[0] == 0)
        snprintf(why, sizeof why, "%s (%llu, %llu)", text, (unsigned long long)a,
                 (unsigned long long)b);
}

/* ---- switching --------------------------------------------------------------------------- */

/* Writers share a CPU: the one that was running there is preempted. The reader runs on another CPU. */
static void put_on_cpu(uint32_t next)
{
    if (next >= scenario->writers || next == play.on_cpu)
        return;
    if (play.in_sequence[play.on_cpu])
        play.restarted[play.on_cpu] = 1;
    play.on_cpu = next;
}

static void switch_to(uint32_t next)
{
    const uint32_t from = world.current;
    play.thread[from] = lat_i_thread;
    put_on_cpu(next);
    world.current = next;
    lat_i_thread = play.thread[next];
    swapcontext(&world.coroutine[from].context, &world.coroutine[next].context);
}

/* A coroutine has ended or was killed: any other one continues. */
static void world_leave(uint32_t from)
{
    uint32_t left[COROUTINES_MAX], count = 0;
    for (uint32_t i = 0; i < world.count; i++)
        if (!world.coroutine[i].ended)
            left[count++] = i;
    if (count == 0) {
        setcontext(&world.done);
        abort();
    }
    const uint32_t budget = explore.budget;
    explore.budget = 1; /* choosing the next one costs nothing */
    const uint32_t next = left[explore_choose(count)];
    explore.budget = budget;
    play.thread[from] = lat_i_thread;
    put_on_cpu(next);
    world.current = next;
    lat_i_thread = play.thread[next];
    setcontext(&world.coroutine[next].context);
    abort();
}

static void event_of_handler(void);

/* A point where others may run. */
static void point(void)
{
    const uint32_t me = world.current;
    uint32_t others[COROUTINES_MAX], count = 0;
    if (world.count == 0)
        return; /* setting up or checking */
    for (uint32_t i = 0; i < world.count; i++)
        if (i != me && !world.coroutine[i].ended)
            others[count++] = i;
    const int writes = me < scenario->writers;
    const uint32_t can_kill = writes && play.kills_left != 0;
    const uint32_t can_handle = writes && play.handlers_left[me] != 0;
    const uint32_t choice = explore_choose(1 + count + 2 * can_kill + can_handle);
    if (choice == 0)
        return;
    if (choice <= count) {
        switch_to(others[choice - 1]);
        return;
    }
    if (choice <= count + 2 * can_kill) {
        play.kills_left--;
        world.coroutine[me].ended = 1;
        /* Kills one thread, or a process with all of them. The reader continues. */
        for (uint32_t i = 0; choice == count + 2 && i < scenario->writers; i++)
            world.coroutine[i].ended = 1;
        world_leave(me);
    }
    const int interrupted = play.in_sequence[me];
    play.handlers_left[me]--;
    play.in_sequence[me] = 0;
    event_of_handler();
    play.in_sequence[me] = interrupted;
    play.restarted[me] |= interrupted; /* a signal interrupts a sequence */
}

/* ---- the port -------------------------------------------------------------------------------- */

int lat_i_port_thread_begin(void)
{
    lat_i_thread.pid = 1;
    lat_i_thread.writer = 100 + world.current;
    return LAT_I_THREAD_READY;
}
uint32_t lat_i_port_parent_pid(void)
{
    return 0;
}
int lat_i_port_cpu(void)
{
    point();
    return 0;
}
int lat_i_port_open_rings(uint64_t bytes)
{
    (void)bytes;
    return 1;
}
void lat_i_port_sequence_over(void)
{
}
void lat_i_port_thread_claimed(void)
{
}
void lat_i_port_thread_name(char name[16])
{
    name[0] = 0;
}
void lat_i_port_process_name(char name[16])
{
    name[0] = 0;
}

/* A step inside a sequence. @return whether the sequence continues. */
static int step(void)
{
    point();
    return !play.restarted[world.current];
}

static int begin_sequence(const struct lat_ring *ring, uint64_t expect)
{
    play.in_sequence[world.current] = 1;
    play.restarted[world.current] = 0;
    return step() && ring->cursor == expect && step();
}
static int end_sequence(int done)
{
    play.in_sequence[world.current] = 0;
    return done;
}

static void note_commit(const struct lat_ring *ring, uint64_t value)
{
    const uint32_t number =
        (uint32_t)(((const uint8_t *)ring - area.bytes - LAT_AREA_RINGS_OFFSET) / RING_BYTES);
    play.committed_in[number][play.committed_count[number]] = (ring->cursor - 1) / PACKET_BYTES;
    play.committed[number][play.committed_count[number]++] = value;
}

int lat_i_rseq_stores(struct lat_ring *ring, uint32_t cpu, uint64_t expect,
                      const struct lat_i_store *stores, uint64_t count, uint64_t *target,
                      uint64_t value)
{
    (void)cpu;
    if (!begin_sequence(ring, expect))
        return end_sequence(0);
    for (uint64_t i = 0; i < count; i++) {
        *stores[i].address = stores[i].value;
        if (!step())
            return end_sequence(0);
    }
    *target = value;
    return end_sequence(1);
}

static uint64_t value_of(const struct lat_i_piece *pieces, uint64_t count)
{
    uint64_t value = 0;
    if (count != 0)
        memcpy(&value, pieces[0].data, pieces[0].bytes < 8 ? pieces[0].bytes : 8);
    return value;
}

int lat_i_rseq_record(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *place,
                      uint64_t id, const struct lat_i_piece *pieces, uint64_t count,
                      uint64_t cursor)
{
    uint8_t *to = (uint8_t *)(place + 1);
    (void)cpu;
    if (!begin_sequence(ring, expect))
        return end_sequence(0);
    *place = LAT_I_RECORD_HEADER(id, lat_i_clock());
    for (uint64_t i = 0; i < count; i++) {
        if (!step())
            return end_sequence(0);
        memcpy(to, pieces[i].data, pieces[i].bytes);
        to += pieces[i].bytes;
    }
    if (!step())
        return end_sequence(0);
    ring->cursor = cursor;
    if (id == EVENT_ID)
        note_commit(ring, value_of(pieces, count));
    return end_sequence(1);
}

int lat_i_rseq_count(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *counter)
{
    (void)cpu;
    if (!begin_sequence(ring, expect))
        return end_sequence(0);
    (*counter)++;
    return end_sequence(1);
}

#if defined(__x86_64__)
int lat_i_rseq_lost(uint64_t record_bytes)
{
    struct lat_ring *ring = (struct lat_ring *)(void *)lat_i_state.rings;
    play.in_sequence[world.current] = 1;
    play.restarted[world.current] = 0;
    if (!step())
        return end_sequence(0);
    const uint64_t cursor = ring->cursor;
    if (cursor == 0 || fits_packet(cursor, record_bytes) || !step() ||
        (cursor >> lat_i_area.packet_shift) + 1 < ring->consumed + lat_i_area.packets_per_ring ||
        !step())
        return end_sequence(0);
    ring->lost_full++;
    return end_sequence(1);
}

void lat_i_rseq_words_or_lost(uint32_t id, uint32_t payload_bytes, const uint64_t *words)
{
    if (!lat_i_rseq_lost(ROUND_UP_8(LAT_RECORD_HEADER_BYTES + payload_bytes)))
        lat_i_emit_words_slowly(id, payload_bytes, words);
}
#endif

/* ---- writers ---------------------------------------------------------------------------------------- */

static uint8_t enabled = LAT_ENABLE_RECORD;
static struct lat_schema schema = {&enabled, EVENT_ID, 1, 0, "verify", "", 0, 1};

/* The common case of ring_cpu_x86_64.h, step by step. @return whether it recorded. */
static int short_way(uint64_t words, const uint64_t *payload)
{
    struct lat_ring *ring = (struct lat_ring *)(void *)lat_i_state.rings;
    play.in_sequence[world.current] = 1;
    play.restarted[world.current] = 0;
    if (!step() || ring->last_writer != lat_i_thread.writer)
        return end_sequence(0);
    if (!step())
        return end_sequence(0);
    const uint64_t start = ring->cursor & ~LAT_CURSOR_SLACK_MASK;
    const uint64_t end = start + 8 + 8 * words;
    if (!step() || end > ring->limit || !step())
        return end_sequence(0);
    uint64_t *place = place_at(ring, start);
    place[0] = LAT_I_RECORD_HEADER((uint64_t)EVENT_ID, lat_i_clock());
    for (uint64_t i = 0; i < words; i++) {
        if (!step())
            return end_sequence(0);
        place[1 + i] = payload[i];
    }
    if (!step())
        return end_sequence(0);
    ring->cursor = end;
    note_commit(ring, payload[0]);
    return end_sequence(1);
}

/* Small and large records in turn, so that packets end at different places. */
static void emit_value(uint64_t value)
{
    const uint64_t words[11] = {value, ~value, value + 2, value + 3, value + 4, value + 5,
                                value + 6, value + 7, value + 8, value + 9, value + 10};
    play.written++;
    if (scenario->kind == LAT_RING_PER_CPU) {
        const uint32_t count = value % 2 == 0 ? 2 : 11;
        if (!short_way(count, words))
            lat_i_emit_words(EVENT_ID, count * 8, words);
    } else if (value % 2 == 0) {
        lat_i_emit2(&schema, LAT_ENABLE_RECORD, 0, 16, words[0], words[1]);
    } else {
        lat_i_emit11(&schema, LAT_ENABLE_RECORD, 0, 88, words[0], words[1], words[2], words[3],
                     words[4], words[5], words[6], words[7], words[8], words[9], words[10]);
    }
    play.ended++;
}

static uint64_t value_made(uint32_t writer, uint32_t in_handler, uint32_t number)
{
    return (uint64_t)writer << 32 | (uint64_t)in_handler << 16 | number;
}

static void event_of_handler(void)
{
    emit_value(value_made(world.current, 1, play.handler_number[world.current]++));
}

static void writer_body(uint32_t number)
{
    for (uint32_t i = 0; i < scenario->events; i++)
        emit_value(value_made(number, 0, i));
}

/* ---- reading, spec/ring-abi.md §5 ---------------------------------------------------------------- */

static struct lat_ring *ring_at(uint32_t ring)
{
    return (struct lat_ring *)(void *)(area.bytes + LAT_AREA_RINGS_OFFSET + ring * RING_BYTES);
}

/* Reads the records from a copy of a packet. */
static void read_packet(uint32_t ring, const uint8_t *packet, uint64_t content)
{
    uint64_t time = 0;
    uint64_t offset = LAT_PACKET_HEADER_BYTES;
    play.read_tid[ring] = 0;
    while (offset < content) {
        uint64_t header, words[11];
        offset = (offset + 7) & ~UINT64_C(7);
        memcpy(&header, packet + offset, 8);
        memcpy(words, packet + offset + 8, sizeof words);
        if (header >> 16 < time)
            wrong("time goes back", header >> 16, time);
        time = header >> 16;
        switch (header & 0xffff) {
        case LAT_ID_WRITER:
            play.read_tid[ring] = (uint32_t)(words[0] >> 32);
            offset += 16;
            break;
        case LAT_ID_THREAD_NAME:
            offset += 8 + 9;
            break;
        case EVENT_ID: {
            const uint64_t value = words[0], count = value % 2 == 0 ? 2 : 11;
            if (words[1] != ~value)
                wrong("a torn record", value, words[1]);
            for (uint64_t i = 2; i < count; i++)
                if (words[i] != value + i)
                    wrong("a torn record", value, words[i]);
            if (play.read_tid[ring] != 100 + (value >> 32))
                wrong("another writer", play.read_tid[ring], value);
            if (play.read_count[ring] < 64)
                play.read[ring][play.read_count[ring]++] = value;
            offset += 8 + 8 * count;
            break;
        }
        default:
            wrong("no such event", header & 0xffff, offset);
            return;
        }
    }
    if (offset != content)
        wrong("a record ends behind the content", offset, content);
}

/* Reads the new records of a ring; `last`: also of the open packet. */
static void drain(uint32_t number, int last)
{
    struct lat_ring *ring = ring_at(number);
    uint8_t copy[PACKET_BYTES + 128];
    point();
    const uint64_t cursor = ring->cursor;
    const uint64_t open = cursor / PACKET_BYTES;
    if (cursor == 0)
        return;
    if (scenario->mode == LAT_MODE_OVERWRITE && open + 1 > PACKETS &&
        play.read_packets[number] < open + 1 - PACKETS)
        play.read_packets[number] = open + 1 - PACKETS;
    while (play.read_packets[number] < open || (last && play.read_packets[number] == open)) {
        const uint64_t sequence = play.read_packets[number]++;
        const uint8_t *packet =
            (const uint8_t *)ring + LAT_RING_CONTROL_BYTES + sequence % PACKETS * PACKET_BYTES;
        memset(copy, 0, sizeof copy);
        for (uint32_t at = 0; at < PACKET_BYTES; at += 64) {
            point();
            memcpy(copy + at, packet + at, 64);
        }
        point();
        if (scenario->mode == LAT_MODE_OVERWRITE &&
            ring->cursor / PACKET_BYTES + 2 > sequence + PACKETS)
            continue; /* it may have been reused meanwhile */
        const struct lat_packet *head = (const struct lat_packet *)(const void *)copy;
        if (head->sequence != sequence)
            wrong("not the packet", head->sequence, sequence);
        if (sequence < open && (head->content_bits / 8 > PACKET_BYTES - LAT_PACKET_TAIL_BYTES ||
                                head->content_bits / 8 < 144))
            wrong("impossible content", head->content_bits, sequence);
        else
            read_packet(number, copy,
                        sequence < open ? head->content_bits / 8
                                        : (cursor & ~LAT_CURSOR_SLACK_MASK) -
                                              (cursor & LAT_CURSOR_SLACK_MASK) -
                                              sequence * PACKET_BYTES);
    }
    if (!last && scenario->mode == LAT_MODE_DISCARD) {
        point();
        ring->consumed = play.read_packets[number];
    }
}

static void reader_body(uint32_t number)
{
    (void)number;
    for (uint32_t i = 0; i < scenario->reader; i++)
        for (uint32_t r = 0; r < lat_i_area.ring_count; r++)
            drain(r, 0);
}

/* ---- one run ----------------------------------------------------------------------------------------- */

static void set_up(void)
{
    memset(&play, 0, sizeof play);
    memset(&area.header, 0, sizeof area.header);
    for (uint32_t r = 0; r < RINGS; r++) {
        memset(ring_at(r), 0, sizeof(struct lat_ring));
        memset((char *)ring_at(r) + LAT_RING_CONTROL_BYTES, 0, PACKET_BYTES * PACKETS);
    }
    lat_i_area.header = &area.header;
    lat_i_area.kind = scenario->kind;
    lat_i_area.ring_count = scenario->kind == LAT_RING_PER_CPU ? 1 : RINGS;
    lat_i_area.ring_stride = RING_BYTES;
    lat_i_area.packet_bytes = PACKET_BYTES;
    lat_i_area.packets_per_ring = PACKETS;
    lat_i_area.packet_shift = (uint32_t)__builtin_ctz(PACKET_BYTES);
    lat_i_area.rings_usable = 1;
    lat_i_state.rings = (char *)area.bytes + LAT_AREA_RINGS_OFFSET;
    lat_i_state.ring_stride = RING_BYTES;
    lat_i_state.mask = PACKET_BYTES * PACKETS - 8;
    area.header.ring_mode = scenario->mode;
    play.kills_left = scenario->kills;
    for (uint32_t r = 0; r < RINGS; r++)
        ring_at(r)->mask = PACKET_BYTES * PACKETS - 8;
    for (uint32_t i = 0; i < COROUTINES_MAX; i++) {
        play.thread[i].ring = &lat_i_dummy_ring;
        play.handlers_left[i] = scenario->handlers;
    }
    /* Threads are already introduced, because introductions would only make runs longer. */
    for (uint32_t i = 0; i < scenario->writers; i++) {
        play.thread[i].pid = 1;
        play.thread[i].writer = 100 + i;
    }
}

static void check_end(void)
{
    uint64_t found = 0, lost = area.header.lost_no_ring;
    for (uint32_t r = 0; r < lat_i_area.ring_count; r++) {
        const struct lat_ring *ring = ring_at(r);
        drain(r, 1);
        found += play.read_count[r];
        lost += ring->lost_full + ring->lost_no_ring + ring->lost_contended + ring->lost_too_big;
        if (ring->lost_too_big != 0 || ring->lost_contended != 0)
            wrong("lost without a reason", ring->lost_too_big, ring->lost_contended);
        if (scenario->kind != LAT_RING_PER_CPU)
            continue;
        /* The records read are the committed ones, in order; with overwriting, some of them. */
        uint32_t at = 0;
        for (uint32_t i = 0; i < play.read_count[r]; i++) {
            while (scenario->mode == LAT_MODE_OVERWRITE && at < play.committed_count[r] &&
                   play.committed[r][at] != play.read[r][i])
                at++;
            if (at >= play.committed_count[r] || play.committed[r][at] != play.read[r][i])
                wrong("not what was committed", play.read[r][i], i);
            at++;
        }
        /* The open packet can always be read. */
        const uint32_t last = play.committed_count[r] - 1;
        if (play.committed_count[r] != 0 &&
            play.committed_in[r][last] == ring->cursor / PACKET_BYTES &&
            (play.read_count[r] == 0 ||
             play.read[r][play.read_count[r] - 1] != play.committed[r][last]))
            wrong("the last one is missing", play.read_count[r], play.committed_count[r]);
        if (scenario->mode == LAT_MODE_DISCARD && play.read_count[r] != play.committed_count[r])
            wrong("committed, not read", play.committed_count[r], play.read_count[r]);
    }
    for (uint32_t r = 0; r < lat_i_area.ring_count; r++)
        for (uint32_t i = 0; i < play.read_count[r]; i++)
            for (uint32_t q = 0; q <= r; q++)
                for (uint32_t k = 0; k < (q == r ? i : play.read_count[q]); k++)
                    if (play.read[r][i] == play.read[q][k])
                        wrong("read twice", play.read[r][i], r);
    /* Events in progress when their writer was killed may be present or not. */
    const uint64_t unfinished = play.written - play.ended;
    if (scenario->mode == LAT_MODE_DISCARD &&
        (found + lost < play.ended || found + lost > play.ended + unfinished))
        wrong("neither read nor lost", found + lost, play.ended);
}

static void run_once(void)
{
    volatile int started = 0;
    set_up();
    world.count = 0;
    getcontext(&world.done);
    if (!started) {
        started = 1;
        for (uint32_t i = 0; i < scenario->writers; i++)
            world_add(writer_body);
        if (scenario->reader != 0)
            world_add(reader_body);
        world.current = 0;
        lat_i_thread = play.thread[0];
        setcontext(&world.coroutine[0].context);
    }
    world.count = 0;
    check_end();
}

static const struct scenario scenarios[] = {
    /* kind, mode, writers, events, reader, handlers, kills, budget */
    {"two writers of one CPU, preempted anywhere three times", LAT_RING_PER_CPU, LAT_MODE_DISCARD, 2, 2,
     0, 0, 0, 3},
    {"two writers of one CPU and a reader", LAT_RING_PER_CPU, LAT_MODE_DISCARD, 2, 3, 2, 0, 0, 2},
    {"three writers of one CPU", LAT_RING_PER_CPU, LAT_MODE_DISCARD, 3, 2, 0, 0, 0, 2},
    {"two writers of one CPU, killed anywhere", LAT_RING_PER_CPU, LAT_MODE_DISCARD, 2, 3, 0, 0, 1, 2},
    {"two writers of one CPU, killed anywhere, and a reader", LAT_RING_PER_CPU, LAT_MODE_DISCARD, 2, 2,
     1, 0, 1, 2},
    {"signal handlers on one CPU", LAT_RING_PER_CPU, LAT_MODE_DISCARD, 1, 4, 0, 2, 0, 3},
    {"overwriting under a reader, one CPU", LAT_RING_PER_CPU, LAT_MODE_OVERWRITE, 2, 4, 2, 0, 1, 2},
    {"overwriting under a reader, one writer", LAT_RING_PER_CPU, LAT_MODE_OVERWRITE, 1, 8, 3, 0, 0, 3},
    {"a thread and its signal handlers", LAT_RING_PER_THREAD, LAT_MODE_DISCARD, 1, 4, 0, 3, 0, 3},
    {"a thread, its handlers and a reader", LAT_RING_PER_THREAD, LAT_MODE_DISCARD, 1, 5, 2, 1, 0, 3},
    {"threads that claim rings and are killed", LAT_RING_PER_THREAD, LAT_MODE_DISCARD, 3, 2, 0, 1, 2, 2},
    {"overwriting under a reader, a thread and its handlers", LAT_RING_PER_THREAD, LAT_MODE_OVERWRITE, 1,
     8, 2, 1, 0, 2},
};

int main(void)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        scenario = &scenarios[i];
        explore.known = 0;
        explore.runs = 0;
        why[0] = 0;
        do {
            explore_begin(scenario->budget);
            run_once();
        } while (why[0] == 0 && explore_next());
        if (why[0] == 0) {
            printf("ok %s: %llu runs\n", scenario->name, (unsigned long long)explore.runs);
        } else {
            printf("FAIL %s: %s in run %llu\n", scenario->name, why,
                   (unsigned long long)explore.runs);
            failed = 1;
        }
        fflush(stdout);
    }
    return failed;
}
