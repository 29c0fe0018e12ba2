// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See area_reader.h. */
#define _GNU_SOURCE
#include "area_reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static __attribute__((format(printf, 2, 3))) void problem(struct reader *reader,
                                                          const char *format, ...)
{
    va_list arguments;
    if (reader->problem[0] != 0)
        return;
    va_start(arguments, format);
    vsnprintf(reader->problem, sizeof reader->problem, format, arguments);
    va_end(arguments);
}

int reader_open(struct reader *reader, const char *path)
{
    struct stat status;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    memset(reader, 0, sizeof *reader);
    reader->path = path;
    if (file < 0 || fstat(file, &status) != 0) {
        problem(reader, "%s can not be opened", path);
        return 0;
    }
    reader->bytes = (size_t)status.st_size;
    void *area = mmap(NULL, reader->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (area == MAP_FAILED) {
        problem(reader, "%s can not be mapped", path);
        return 0;
    }
    reader->header = (struct lat_area_header *)area;
    const struct lat_area_header *header = reader->header;
    if (header->magic != LAT_AREA_MAGIC || header->magic_complement != ~LAT_AREA_MAGIC ||
        header->abi_version != LAT_ABI_VERSION || header->byte_order != LAT_BYTE_ORDER_MARK ||
        header->header_bytes != sizeof *header || header->area_id == 0 ||
        header->rings_offset != LAT_AREA_RINGS_OFFSET || header->ring_count > READER_RINGS_MAX)
        problem(reader, "%s: not a valid area header", path);
    if (header->rings_ready == 2 &&
        LAT_AREA_RINGS_OFFSET + header->ring_stride * header->ring_count > reader->bytes)
        problem(reader, "rings end behind the file");
    reader->tests_base = reader_schema(reader, "tests", NULL, NULL, NULL);
    return reader->problem[0] == 0;
}

void reader_close(struct reader *reader)
{
    if (reader->header != NULL)
        munmap(reader->header, reader->bytes);
    reader->header = NULL;
}

static int is_area(const char *name)
{
    const size_t length = strlen(name);
    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".area") == 0;
}

unsigned reader_count_areas(const char *directory)
{
    unsigned count = 0;
    DIR *entries = opendir(directory);
    if (entries == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += (unsigned)is_area(entry->d_name);
    closedir(entries);
    return count;
}

int reader_find(struct reader *reader, const char *directory)
{
    static char path[4096];
    for (int tries = 0; tries < 2000; tries++) {
        DIR *entries = opendir(directory);
        if (entries == NULL)
            break;
        for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
            if (!is_area(entry->d_name))
                continue;
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            closedir(entries);
            return reader_open(reader, path);
        }
        closedir(entries);
        usleep(1000);
    }
    memset(reader, 0, sizeof *reader);
    problem(reader, "no area in %s", directory);
    return 0;
}

uint32_t reader_schema(const struct reader *reader, const char *name, uint32_t *count,
                       const char **text, uint32_t *text_bytes)
{
    const struct lat_area_schema *table =
        (const struct lat_area_schema *)(const void *)((const char *)reader->header +
                                                       LAT_AREA_SCHEMAS_OFFSET);
    for (uint32_t i = 0; i < LAT_AREA_SCHEMA_COUNT; i++) {
        if (__atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE) != LAT_SLOT_READY ||
            strncmp(table[i].name, name, sizeof table[i].name) != 0)
            continue;
        if (count != NULL)
            *count = table[i].event_count;
        if (text != NULL)
            *text = (const char *)reader->header + table[i].text_offset;
        if (text_bytes != NULL)
            *text_bytes = table[i].text_bytes;
        return table[i].base_id;
    }
    return 0;
}

struct lat_ring *reader_ring(const struct reader *reader, uint32_t ring)
{
    return (struct lat_ring *)(void *)((char *)reader->header + LAT_AREA_RINGS_OFFSET +
                                       ring * reader->header->ring_stride);
}

uint64_t reader_losses(const struct reader *reader)
{
    uint64_t lost = reader->header->lost_no_ring;
    for (uint32_t r = 0; reader->header->rings_ready == 2 && r < reader->header->ring_count; r++) {
        const struct lat_ring *ring = reader_ring(reader, r);
        lost += ring->lost_full + ring->lost_too_big + ring->lost_contended + ring->lost_no_ring;
    }
    return lost;
}

uint8_t *reader_enable_bytes(const struct reader *reader)
{
    return (uint8_t *)reader->header + LAT_AREA_ENABLE_OFFSET;
}

/* ---- payloads ------------------------------------------------------------------ */

static size_t align_up(size_t offset, size_t align)
{
    return (offset + align - 1) & ~(align - 1);
}

static size_t string_end(const uint8_t *at, size_t offset, size_t left)
{
    while (offset < left && at[offset] != 0)
        offset++;
    return offset + 1;
}

static size_t sequence_end(const uint8_t *at, size_t offset, size_t left, size_t element)
{
    uint32_t count = 0;
    offset = align_up(offset, 4);
    if (offset + 4 > left)
        return left + 1;
    memcpy(&count, at + offset, 4);
    return align_up(offset + 4, element) + (size_t)count * element;
}

/* Bytes of a payload; more than `left` if it does not end in the packet. Ids are those of
 * support/tests.pleco, relative to its base; the sizes of others are unknown here. */
static size_t payload_bytes(const struct reader *reader, uint32_t id, const uint8_t *at,
                            size_t left)
{
    static const size_t fixed[] = {0, 8, 4, 32, 64, 128};
    size_t end;
    switch (id) {
    case LAT_ID_WRITER:
        return 8;
    case LAT_ID_THREAD_NAME:
    case LAT_ID_PROCESS:
        return string_end(at, 8, left);
    case LAT_ID_MARK:
        return string_end(at, 0, left);
    }
    if (reader->tests_base == 0 || id < reader->tests_base || id >= reader->tests_base + 13)
        return reader->size != NULL ? reader->size(reader->context, id, at, left) : SIZE_MAX;
    id -= reader->tests_base;
    if (id < sizeof fixed / sizeof fixed[0])
        return fixed[id];
    switch (id) {
    case 6: /* TEXT */
        return string_end(at, 8, left);
    case 7: /* SEQUENCE */
        return sequence_end(at, 2, left, 8);
    case 8: /* BLOB */
        return sequence_end(at, 0, left, 1);
    case 9: /* MIXED: fixed fields up to 33, then string, [u16; 3], [i32], bytes, enum u8 or u32 */
        end = string_end(at, 33, left);
        end = align_up(end, 2) + 6;
        end = sequence_end(at, end, left, 4);
        end = end <= left ? sequence_end(at, end, left, 1) : end;
        return end + 1;
    case 10: /* HANDLER */
        return 8;
    default: /* FIRST, SECOND */
        return 4;
    }
}

/* ---- packets -------------------------------------------------------------------- */

static void read_record(struct reader *reader, struct ring_state *state, struct record *record)
{
    if (record->id == LAT_ID_WRITER) {
        memcpy(&state->pid, record->payload, 4);
        memcpy(&state->tid, record->payload + 4, 4);
        reader->writer_records++;
    } else if (record->id < LAT_INTERNAL_EVENT_COUNT) {
        reader->introductions++;
    } else {
        reader->records++;
    }
    record->pid = state->pid;
    record->tid = state->tid;
    if (record->tid == 0)
        problem(reader, "a record without a writer in ring %u", record->ring);
    if (reader->visit != NULL)
        reader->visit(reader->context, record);
}

/* Records of a packet from `offset` to `content`. The packet's bytes are a copy. */
static void read_records(struct reader *reader, uint32_t ring, const uint8_t *packet, size_t offset,
                         size_t content)
{
    struct ring_state *state = &reader->ring[ring];
    const struct lat_packet *head = (const struct lat_packet *)(const void *)packet;
    while (offset < content) {
        struct record record = {ring, head->sequence, 0, 0, 0, 0, NULL, 0};
        uint64_t word;
        offset = align_up(offset, 8);
        if (offset + 8 > content) {
            problem(reader, "ring %u packet %llu: content ends in a record header", ring,
                    (unsigned long long)head->sequence);
            return;
        }
        memcpy(&word, packet + offset, 8);
        record.id = (uint32_t)(word & 0xffff);
        record.time = (head->timestamp_begin & ~((UINT64_C(1) << LAT_TIME_BITS) - 1)) | word >> 16;
        if (record.time < head->timestamp_begin)
            record.time += UINT64_C(1) << LAT_TIME_BITS;
        record.payload = packet + offset + 8;
        record.bytes = payload_bytes(reader, record.id, record.payload, content - offset - 8);
        if (record.bytes > content - offset - 8) {
            problem(reader, "ring %u packet %llu offset %zu: event %u ends behind the content",
                    ring, (unsigned long long)head->sequence, offset, record.id);
            return;
        }
        if (record.time < state->time) {
            reader->out_of_order++;
            problem(reader, "ring %u packet %llu: event %u is %llu ticks before the last, of thread %u",
                    ring, (unsigned long long)head->sequence, record.id,
                    (unsigned long long)(state->time - record.time), state->tid);
        }
        state->time = record.time;
        read_record(reader, state, &record);
        offset += 8 + record.bytes;
    }
}

static void check_closed(struct reader *reader, uint32_t ring, const struct lat_packet *packet,
                         uint64_t sequence)
{
    const struct lat_area_header *header = reader->header;
    if (packet->magic != LAT_PACKET_MAGIC || packet->sequence != sequence ||
        packet->area_id != header->area_id || packet->cpu_id != ring)
        problem(reader, "ring %u packet %llu: wrong header (sequence %llu)", ring,
                (unsigned long long)sequence, (unsigned long long)packet->sequence);
    if (packet->content_bits % 8 != 0 || packet->content_bits / 8 < 144 ||
        packet->content_bits / 8 > header->packet_bytes - LAT_PACKET_TAIL_BYTES ||
        packet->packet_bits != ((packet->content_bits + 63) & ~UINT64_C(63)))
        problem(reader, "ring %u packet %llu: content of %llu bits", ring,
                (unsigned long long)sequence, (unsigned long long)packet->content_bits);
    if (packet->timestamp_end < packet->timestamp_begin ||
        (reader->ring[ring].part == 0 && packet->timestamp_begin < reader->ring[ring].time))
        problem(reader, "ring %u packet %llu: times go back", ring, (unsigned long long)sequence);
    if (packet->events_discarded != packet->lost_full + packet->lost_too_big +
                                        packet->lost_contended + packet->lost_no_ring)
        problem(reader, "ring %u packet %llu: losses do not add up", ring,
                (unsigned long long)sequence);
}

/* Copies packet `sequence` up to `cursor`: later bytes may have no memory yet, and reading them would
 * allocate it. @return whether the copy is valid (spec/ring-abi.md §5). */
static int copy_packet(const struct reader *reader, struct lat_ring *ring, uint64_t sequence,
                       uint64_t cursor, uint8_t *copy)
{
    const struct lat_area_header *header = reader->header;
    const uint64_t count = header->packets_per_ring, bytes = header->packet_bytes;
    const uint64_t used = (cursor & ~LAT_CURSOR_SLACK_MASK) - sequence * bytes;
    memcpy(copy, (const char *)ring + LAT_RING_CONTROL_BYTES + sequence % count * bytes,
           used < bytes ? used : bytes);
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* pair W3 */
    const uint64_t now = __atomic_load_n(&ring->cursor, __ATOMIC_RELAXED) / header->packet_bytes;
    return header->ring_mode != LAT_MODE_OVERWRITE || now + 2 <= sequence + count;
}

static void drain_ring(struct reader *reader, uint32_t number, uint8_t *copy, int give_back)
{
    const struct lat_area_header *header = reader->header;
    struct lat_ring *ring = reader_ring(reader, number);
    struct ring_state *state = &reader->ring[number];
    const uint64_t cursor = __atomic_load_n(&ring->cursor, __ATOMIC_ACQUIRE); /* pair W1 */
    if (cursor == 0)
        return;
    const uint64_t open = cursor / header->packet_bytes;
    if (open + 1 > state->next_packet + header->packets_per_ring) {
        const uint64_t first = open + 1 - header->packets_per_ring;
        if (header->ring_mode != LAT_MODE_OVERWRITE)
            problem(reader, "ring %u: packets were reused unread", number);
        state->missed += first - state->next_packet;
        state->next_packet = first;
        state->part = 0;
    }
    for (; state->next_packet <= open; state->next_packet++) {
        const uint64_t sequence = state->next_packet;
        size_t content;
        if (!copy_packet(reader, ring, sequence, cursor, copy)) {
            state->missed++;
            state->part = 0;
            continue;
        }
        const struct lat_packet *packet = (const struct lat_packet *)(const void *)copy;
        if (sequence < open) {
            check_closed(reader, number, packet, sequence);
            content = packet->content_bits / 8;
        } else {
            content = (cursor & ~LAT_CURSOR_SLACK_MASK) - (cursor & LAT_CURSOR_SLACK_MASK) -
                      sequence * header->packet_bytes;
        }
        if (reader->problem[0] != 0)
            return;
        const size_t begin = state->part != 0 ? state->part : LAT_PACKET_HEADER_BYTES;
        if (content > header->packet_bytes || content < begin) {
            problem(reader, "ring %u packet %llu: content of %zu bytes", number,
                    (unsigned long long)sequence, content);
            return;
        }
        read_records(reader, number, copy, begin, content);
        if (sequence < open && state->time > packet->timestamp_end)
            problem(reader, "ring %u packet %llu: a record is later than its end", number,
                    (unsigned long long)sequence);
        if (sequence == open) {
            state->part = content;
            break;
        }
        state->part = 0;
        reader->packets++;
    }
    if (give_back)
        __atomic_store_n(&ring->consumed, state->next_packet, __ATOMIC_RELEASE); /* pair W2 */
}

/* A recorder's duty (spec/ring-abi.md §4.4). */
static void give_memory(const struct reader *reader)
{
    const uint64_t all = reader->header->packet_bytes * reader->header->packets_per_ring;
    int file = -1;
    for (uint32_t r = 0; r < reader->header->ring_count; r++) {
        struct lat_ring *ring = reader_ring(reader, r);
        const uint64_t backed = ring->backed_bytes;
        const off_t data = (char *)ring - (char *)reader->header + (off_t)LAT_RING_CONTROL_BYTES;
        const int used = __atomic_load_n(&ring->cursor, __ATOMIC_RELAXED) != 0 ||
                         __atomic_load_n(&ring->owner, __ATOMIC_RELAXED) != 0;
        if (backed == 0 || !used)
            continue;
        if (file < 0)
            file = open(reader->path, O_RDWR | O_CLOEXEC);
        if (file >= 0 && fallocate(file, FALLOC_FL_KEEP_SIZE, data + (off_t)backed,
                                   (off_t)(all - backed)) == 0)
            __atomic_store_n(&ring->backed_bytes, 0, __ATOMIC_RELEASE); /* pair G1 */
    }
    if (file >= 0)
        close(file);
}

/* A recorder's duty: a killed thread could not release its ring, and programs do not check for that. */
static void free_rings_of_the_dead(const struct reader *reader)
{
    for (uint32_t r = 0; r < reader->header->ring_count; r++) {
        struct lat_ring *ring = reader_ring(reader, r);
        uint64_t owner = __atomic_load_n(&ring->owner, __ATOMIC_ACQUIRE);
        if (owner != 0 && kill((pid_t)owner, 0) != 0 && errno == ESRCH)
            __atomic_compare_exchange_n(&ring->owner, &owner, 0, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED);
    }
}

void reader_drain(struct reader *reader, int give_back)
{
    if (reader->header == NULL ||
        __atomic_load_n(&reader->header->rings_ready, __ATOMIC_ACQUIRE) != 2) { /* pair R1 */
        problem(reader, "the area has no rings");
        return;
    }
    uint8_t *copy = (uint8_t *)malloc(reader->header->packet_bytes);
    if (copy == NULL)
        abort();
    if (give_back && !reader->keeps_memory)
        give_memory(reader);
    for (uint32_t r = 0; r < reader->header->ring_count && reader->problem[0] == 0; r++)
        drain_ring(reader, r, copy, give_back);
    free(copy);
    if (give_back && reader->header->ring_kind == LAT_RING_PER_THREAD)
        free_rings_of_the_dead(reader);
}
