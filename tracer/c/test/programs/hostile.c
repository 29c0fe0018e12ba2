// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Words of the area that another process changes, at any time: the trace is damaged, the program continues
 * (spec/trust-model.md). Only the same user can map the area; a bug of a recorder has the same effect. */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/traced.h"
#include "../support/tests.h"

#include "core.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/wait.h>
#include <time.h>

#define BUFFER (UINT64_C(1) << 16)
#define PACKET 4096u
#define SECONDS 0.4

static volatile int is_over;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint64_t random_word(void)
{
    static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Values likely to cause harm: any number, positions at the ends of rings and packets, extreme numbers. */
static uint64_t hostile_word(void)
{
    const uint64_t word = random_word();
    switch (word >> 60 & 7) {
    case 0:
        return BUFFER * (word & 0xff) - 8;
    case 1:
        return BUFFER * (word & 0xff) + PACKET * (word >> 8 & 15) - 8 * (word >> 16 & 15);
    case 2:
        return UINT64_MAX - (word & 0xfff);
    case 3:
        return UINT64_C(1) << (word & 63);
    case 4:
        return word & (BUFFER - 1);
    case 5:
        return 0;
    case 6:
        return UINT64_MAX;
    default:
        return word;
    }
}

static void *spoil_rings(void *unused)
{
    static const size_t words[] = {
        offsetof(struct lat_ring, cursor),   offsetof(struct lat_ring, limit),
        offsetof(struct lat_ring, mask),     offsetof(struct lat_ring, consumed),
        offsetof(struct lat_ring, cursor),   offsetof(struct lat_ring, limit),
        offsetof(struct lat_ring, backed_bytes),
    };
    struct lat_area_header *header = lat_i_area.header;
    char *rings = (char *)header + LAT_AREA_RINGS_OFFSET;
    const uint64_t stride = header->ring_stride, count = header->ring_count;
    while (!is_over) {
        for (unsigned i = 0; i < 64; i++) {
            /* Per-thread rings: the first ones are claimed first. */
            const uint64_t number = random_word() % ((i & 1) != 0 ? count : 1);
            char *ring = rings + number * stride;
            const size_t word = words[random_word() % (sizeof words / sizeof words[0])];
            *(volatile uint64_t *)(void *)(ring + word) = hostile_word();
        }
        /* The geometry has been read once before. */
        header->ring_stride = hostile_word();
        header->packet_bytes = hostile_word();
        header->packets_per_ring = hostile_word();
        header->area_bytes = hostile_word();
    }
    return unused;
}

static void emit(uint64_t i)
{
    static const uint8_t bytes[8192];
    lat_t_empty();
    lat_t_one(i);
    lat_t_four(i, i, i, i);
    lat_t_sixteen(i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i);
    lat_t_blob(bytes, (uint32_t)(i % (PACKET + 512)));
    lat_t_text(i, "words");
}

static int role_rings(void)
{
    pthread_t spoiler;
    uint64_t i = 0;
    emit(0);
    if (lat_i_area.header == NULL || lat_i_area.header->rings_ready != 2)
        return 3;
    if (pthread_create(&spoiler, NULL, spoil_rings, NULL) != 0)
        return 4;
    for (const double end = seconds() + SECONDS; seconds() < end;)
        for (unsigned n = 0; n < 100; n++)
            emit(i++);
    is_over = 1;
    pthread_join(spoiler, NULL);
    return 0;
}

/* Values that are read while a schema registers and rings are opened. */
static int role_tables(unsigned which)
{
    static struct lat_schema late;
    struct lat_area_header *header = lat_i_area.header;
    if (header == NULL)
        return 3;
    late = lat_schema_tests;
    late.hash ^= 1;
    late.registered = 0;
    late.enabled = NULL;
    struct lat_area_schema *slot =
        (struct lat_area_schema *)(void *)((char *)header + LAT_AREA_SCHEMAS_OFFSET);
    switch (which) {
    case 0:
        header->next_event_id = UINT32_MAX;
        break;
    case 1:
        header->heap_used = UINT64_MAX - 10;
        break;
    case 2:
        memset(header->enable, 'x', sizeof header->enable);
        break;
    default:
        while (slot->state != LAT_SLOT_FREE)
            slot++;
        slot->hash = late.hash;
        slot->event_count = late.event_count;
        slot->base_id = UINT32_MAX / 2;
        slot->state = LAT_SLOT_READY;
        break;
    }
    lat_register(&late);
    /* The accesses of a site. */
    for (uint32_t i = 0; late.enabled != NULL && i < late.event_count; i++)
        if ((lat_i_on(&late, i) & LAT_ENABLE_RECORD) != 0)
            lat_t_one(i);
    return 0;
}

static int run(const char *role, const char *which)
{
    struct traced traced;
    traced_make(&traced, BUFFER, PACKET, "discard");
    traced_start(&traced, role, which, NULL);
    const int status = traced_wait(&traced);
    traced_remove(&traced);
    return status;
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "rings") == 0)
        return role_rings();
    if (count > 2 && strcmp(arguments[1], "tables") == 0)
        return role_tables((unsigned)atoi(arguments[2]));
#ifdef LAT_RING_THREAD
    skip_fact("spoilt words of rings end no program",
              "rings of threads in plain C trust them (spec/trust-model.md)");
#else
    for (unsigned round = 0; round < 3; round++)
        CHECK_EQUAL(run("rings", "0"), 0);
    fact("spoilt words of rings end no program");
#endif
    for (unsigned which = 0; which < 4; which++) {
        char number[2] = {(char)('0' + which), 0};
        CHECK_EQUAL(run("tables", number), 0);
    }
    fact("spoilt words of tables end no program");
    return check_status();
}
