// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A reader of areas for the tests, written from spec/ring-abi.md and spec/trace-layout.md and not
 * from the tracer: it shares only the layout header with it. Any violation of the
 * specification is noted in `problem`.
 */
#ifndef TEST_AREA_READER_H
#define TEST_AREA_READER_H

#include <lat/abi.h>

#include <stddef.h>
#include <stdint.h>

#define READER_RINGS_MAX 256u

#ifdef __cplusplus
extern "C" {
#endif

struct record {
    uint32_t ring;
    uint64_t packet; /* sequence number */
    uint32_t id;     /* of the area */
    uint64_t time;   /* full clock, extended by that of the packet */
    uint32_t pid;    /* of the preceding WRITER record */
    uint32_t tid;
    const uint8_t *payload;
    size_t bytes; /* of the payload, if the layout defines it; else up to the end of the packet */
};

struct ring_state {
    uint64_t next_packet; /* first unread packet */
    uint64_t time;        /* of the last record */
    uint64_t missed;      /* overwrite mode: packets that were reused before they were read */
    uint64_t part;        /* bytes of the open packet that were read */
    uint32_t pid, tid;
};

struct reader {
    const char *path;
    struct lat_area_header *header;
    size_t bytes;
    uint32_t tests_base; /* id of the first event of the schema "tests"; 0: none */
    struct ring_state ring[READER_RINGS_MAX];
    void (*visit)(void *context, const struct record *record);
    /* Bytes of the payload of an event of another schema than "tests". */
    size_t (*size)(void *context, uint32_t id, const uint8_t *payload, size_t left);
    void *context;
    uint64_t records;        /* of the schema */
    uint64_t writer_records; /* WRITER */
    uint64_t introductions;  /* THREAD_NAME and PROCESS */
    uint64_t packets;
    uint64_t out_of_order;
    int keeps_memory;  /* reader_drain adds none to rings in use */
    char problem[256]; /* empty: none */
};

/** Maps the area file. @return 0 and a problem if it is not an area. */
int reader_open(struct reader *reader, const char *path);
void reader_close(struct reader *reader);
/** The only area of a directory, waiting at most two seconds for it. @return 0 when there is none. */
int reader_find(struct reader *reader, const char *directory);
/** Number of areas in a directory. */
unsigned reader_count_areas(const char *directory);

/** Reads every new committed record. With `give_back`, closed packets may be reused then, and rings
 * in use get all their memory. */
void reader_drain(struct reader *reader, int give_back);

/** Base id and number of events of a schema. @return 0 if there is none. */
uint32_t reader_schema(const struct reader *reader, const char *name, uint32_t *count,
                       const char **text, uint32_t *text_bytes);
struct lat_ring *reader_ring(const struct reader *reader, uint32_t ring);
/** All losses of the area, inside and outside of rings. */
uint64_t reader_losses(const struct reader *reader);
uint8_t *reader_enable_bytes(const struct reader *reader);

#ifdef __cplusplus
}
#endif

#endif
