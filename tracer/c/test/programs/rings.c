// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Full rings, tiny rings, overwritten rings, records that are too big: each written event is either
 * read or counted as lost, by cause. Also the memory layout of each kind of field. */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/traced_drain.h"

#include "core.h"

#include <math.h>
#include <sys/mman.h>

#define EVENTS 300000u

static int is_cpu(void)
{
    return strcmp(traced_kind(), "cpu") == 0;
}

static uint64_t lost(const struct reader *reader, size_t counter)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < reader->header->ring_count; r++)
        sum += *(const uint64_t *)(const void *)((const char *)reader_ring(reader, r) + counter);
    return sum;
}
#define LOST(reader, cause) lost(reader, offsetof(struct lat_ring, cause))

/* Runs a role and opens its area. */
static int run(struct traced *traced, struct reader *reader, const char *role)
{
    traced_start(traced, role, NULL);
    CHECK_EQUAL(traced_wait(traced), 0);
    return CHECK(find_traced(reader, traced));
}

/* Not read until the end: the ring keeps the first events. */
static void full_ring(const char *name, uint64_t buffer, uint64_t packet)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, buffer, packet, "discard");
    if (run(&traced, &reader, "write")) {
        ledger_make(&ledger, &reader, 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(reader.header->packets_per_ring, buffer / packet);
        CHECK(LOST(&reader, lost_full) > 0);
        CHECK_EQUAL(reader_losses(&reader), LOST(&reader, lost_full));
        CHECK_EQUAL(ledger.found + LOST(&reader, lost_full), EVENTS);
        CHECK_EQUAL(reader.out_of_order + ledger.torn + ledger.twice + ledger.disordered, 0);
        CHECK(ledger_has(&ledger, 0, 0));
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact(name);
    traced_remove(&traced);
}

/* A reader drains it meanwhile, too slowly: the losses are many, and exact. */
static void drained_slowly(void)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, 8192, 4096, "discard");
    traced_start(&traced, "write", NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        CHECK_EQUAL(drain_until_end(&reader, &traced, 1), 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(ledger.found + LOST(&reader, lost_full), EVENTS);
        CHECK_EQUAL(reader.out_of_order + ledger.torn + ledger.twice + ledger.disordered, 0);
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact("a ring of two packets, drained while full");
    traced_remove(&traced);
}

/* The flight recorder, read while it is being overwritten. */
static void overwrite(uint64_t buffer, const char *name)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, buffer, 4096, "overwrite");
    traced_start(&traced, "write", NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        CHECK_EQUAL(drain_until_end(&reader, &traced, 0), 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(ledger.torn + ledger.twice + ledger.disordered, 0);
        CHECK_EQUAL(reader_losses(&reader), 0);
        CHECK(ledger_has(&ledger, 0, EVENTS - 1));
        CHECK(ledger.found <= EVENTS);
        /* The missing events are in packets that the reader found overwritten. */
        uint64_t missed = 0;
        for (unsigned r = 0; r < reader.header->ring_count; r++)
            missed += reader.ring[r].missed;
        CHECK(ledger.found == EVENTS || missed > 0);
        CHECK(EVENTS - ledger.found <= missed * (4096 - 144) / 16);
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact(name);
    traced_remove(&traced);
}

/* ---- strings -------------------------------------------------------------------- */

#define TEXT_LENGTHS 151u
#define TEXTS (70u * TEXT_LENGTHS)

/* A text of each length, ending at each of 70 positions before the end of mapped memory. */
static const char *text_of(char *end, uint64_t number)
{
    const size_t length = number % TEXT_LENGTHS;
    char *text = end - number / TEXT_LENGTHS - 1 - length;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)('a' + (number + i) % 26);
    text[length] = 0;
    return text;
}

static int write_texts(void)
{
    char *memory = (char *)mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + 2 * 4096, 4096, PROT_NONE) != 0)
        return 1;
    for (uint64_t i = 0; i < TEXTS; i++)
        lat_t_text(i, text_of(memory + 2 * 4096, i));
    return 0;
}

struct texts {
    uint64_t found, wrong;
    char memory[512];
};

static void visit_text(void *context, const struct record *record)
{
    struct texts *texts = (struct texts *)context;
    uint64_t number;
    if (record->id < LAT_INTERNAL_EVENT_COUNT)
        return;
    memcpy(&number, record->payload, sizeof number);
    const char *text = text_of(texts->memory + sizeof texts->memory, number % TEXTS);
    const size_t bytes = sizeof number + strlen(text) + 1;
    texts->wrong += number != texts->found || record->bytes != bytes ||
                    memcmp(record->payload + sizeof number, text, strlen(text) + 1) != 0;
    for (size_t i = bytes; i % 8 != 0; i++)
        texts->wrong += record->payload[i] != 0;
    texts->found++;
}

static void strings(void)
{
    struct traced traced;
    struct reader reader;
    static struct texts texts;
    traced_make(&traced, 4 << 20, 4096, "discard");
    if (run(&traced, &reader, "texts")) {
        reader.visit = visit_text;
        reader.context = &texts;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(texts.found, TEXTS);
        CHECK_EQUAL(texts.wrong, 0);
        CHECK_EQUAL(reader_losses(&reader), 0);
        reader_close(&reader);
    }
    fact("strings of each length at the end of memory");
    traced_remove(&traced);
}

/* ---- too big ------------------------------------------------------------------ */

static int write_too_big(void)
{
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    /* Longest text that fits: packet less header, WRITER, tail, record header, number, NUL. */
    const size_t fits = 4096 - 128 - 16 - 8 - 8 - 8 - 1;
    text[fits] = 0;
    lat_t_text(1, text);
    text[fits] = 'x';
    text[fits + 1] = 0;
    lat_t_text(2, text);
    text[fits + 1] = 'x';
    lat_t_text(3, text);
    lat_t_blob(text, 4090);
    lat_t_one(value_make(0, 0));
    return 0;
}

static void visit_too_big(void *context, const struct record *record)
{
    uint64_t *seen = (uint64_t *)context;
    if (record->id < LAT_INTERNAL_EVENT_COUNT)
        return;
    seen[0]++;
    seen[1] += record->bytes;
}

static void too_big(void)
{
    struct traced traced;
    struct reader reader;
    uint64_t seen[2] = {0, 0};
    traced_make(&traced, 16384, 4096, "discard");
    if (run(&traced, &reader, "too-big")) {
        reader.visit = visit_too_big;
        reader.context = seen;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(seen[0], 2);
        CHECK_EQUAL(seen[1], 4096 - 128 - 16 - 8 - 8 + 8);
        CHECK_EQUAL(LOST(&reader, lost_too_big), 3);
        CHECK_EQUAL(reader_losses(&reader), 3);
        reader_close(&reader);
    }
    fact("records longer than a packet");
    traced_remove(&traced);
}

/* ---- fields ----------------------------------------------------------------------- */

static int write_fields(void)
{
    const uint16_t three[3] = {0x1111, 0x2222, 0x3333};
    const int32_t two[2] = {-1, 2};
    const uint64_t values[2] = {3, 4};
    lat_t_mixed(0x11, -2, 0x33333333, -4, 1.5f, -2.25, true, "text", three, two, 2, "\1\2\3", 3,
                LAT_ENUM_T_MIXED_L_GREEN);
    lat_t_mixed(0, 0, 0, 0, 0, 0, false, NULL, three, NULL, 5, NULL, 5, LAT_ENUM_T_MIXED_L_RED);
    lat_t_small(0xab, 0xcdef);
    lat_t_sequence(9, values, 2);
    lat_t_sequence(10, values, 0);
    lat_t_blob("", 0);
    lat_t_empty();
    lat_mark("a remark");
    lat_mark(NULL);
    return 0;
}

struct bytes {
    uint8_t at[4096];
    size_t used;
};

static void visit_fields(void *context, const struct record *record)
{
    struct bytes *all = (struct bytes *)context;
    if (record->id < LAT_INTERNAL_EVENT_COUNT && record->id != LAT_ID_MARK)
        return;
    all->at[all->used++] = (uint8_t)(record->id < LAT_INTERNAL_EVENT_COUNT ? 0xee : 0xdd);
    memcpy(all->at + all->used, record->payload, record->bytes);
    all->used += record->bytes;
}

static void fields(void)
{
    /* Derived by hand from the layout rule: natural alignment, zero padding, counts of 32 bits. */
    static const uint8_t expected[] = {
        0xdd, 0x11, 0, 0xfe, 0xff, 0x33, 0x33, 0x33, 0x33, 0xfc, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0xc0, 1, 't', 'e', 'x', 't', 0,
        0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 2, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0,
        3, 0, 0, 0, 1, 2, 3, 7,
        0xdd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0xdd, 0xab, 0, 0xef, 0xcd,
        0xdd, 9, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0,
        0xdd, 10, 0, 0, 0, 0, 0, 0, 0,
        0xdd, 0, 0, 0, 0,
        0xdd,
        0xee, 'a', ' ', 'r', 'e', 'm', 'a', 'r', 'k', 0,
        0xee, 0,
    };
    struct traced traced;
    struct reader reader;
    struct bytes found;
    found.used = 0;
    traced_make(&traced, 16384, 4096, "discard");
    if (run(&traced, &reader, "fields")) {
        reader.visit = visit_fields;
        reader.context = &found;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(found.used, sizeof expected);
        for (size_t i = 0; i < found.used && i < sizeof expected; i++)
            check(found.at[i] == expected[i], "byte %zu is %02x and not %02x", i, found.at[i],
                  expected[i]);
        reader_close(&reader);
    }
    fact("bytes of every kind of field");
    traced_remove(&traced);
}

/* ---- geometry ------------------------------------------------------------------------- */

static void geometry(void)
{
    static const struct {
        uint64_t buffer, packet, made_buffer, made_packet;
    } cases[] = {
        {1, 1, 8192, 4096},          {20000, 5000, 16384, 4096},  {8192, 65536, 8192, 4096},
        {65536, 8192, 65536, 8192},  {3 << 20, 1 << 20, 2 << 20, 1 << 20},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct traced traced;
        struct reader reader;
        traced_make(&traced, cases[i].buffer, cases[i].packet, "discard");
        if (run(&traced, &reader, "nothing")) {
            CHECK_EQUAL(reader.header->packet_bytes, cases[i].made_packet);
            CHECK_EQUAL(reader.header->packet_bytes * reader.header->packets_per_ring,
                        cases[i].made_buffer);
            CHECK_EQUAL(reader.header->ring_stride, 4096 + cases[i].made_buffer);
            CHECK_EQUAL(reader.header->ring_kind, is_cpu() ? 1 : 2);
            reader_close(&reader);
        }
        traced_remove(&traced);
    }
    fact("ring sizes are rounded to what is possible");
}

int main(int count, char **arguments)
{
    if (count > 1) {
        const char *role = arguments[1];
        if (strcmp(role, "too-big") == 0)
            return write_too_big();
        if (strcmp(role, "texts") == 0)
            return write_texts();
        if (strcmp(role, "fields") == 0)
            return write_fields();
        if (strcmp(role, "write") == 0)
            for (uint64_t i = 0; i < EVENTS; i++)
                value_emit(0, i);
        return 0;
    }
    full_ring("a full ring", 1 << 20, 16384);
    full_ring("a full ring of two packets", 8192, 4096);
    drained_slowly();
    overwrite(8192, "overwriting two packets under a reader");
    overwrite(1 << 20, "overwriting many packets under a reader");
    strings();
    too_big();
    fields();
    geometry();
    return check_status();
}
