// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Rings that start with little memory: no writer passes its end, events without room are counted, and
 * memory that is added later is used (spec/ring-abi.md §4.4). */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/traced_drain.h"

#include "area.h"

#include <fcntl.h>
#include <sys/stat.h>

#define EVENTS 300000u
#define BUFFER (UINT64_C(4) << 20)
#define PACKET 16384u

/* Runs before the schema registers, which makes the area. */
static __attribute__((constructor(101))) void start_small(void)
{
    static const char *const none[] = {NULL};
    lat_i_frequent_subsystems = none;
}

static uint64_t lost_full(const struct reader *reader)
{
    uint64_t sum = 0;
    for (uint32_t r = 0; r < reader->header->ring_count; r++)
        sum += reader_ring(reader, r)->lost_full;
    return sum;
}

static off_t data_offset(const struct reader *reader, uint32_t ring)
{
    return (off_t)(LAT_AREA_RINGS_OFFSET + ring * reader->header->ring_stride +
                   LAT_RING_CONTROL_BYTES);
}

/* Checks that a ring has no pages past its memory: they would prove an overrun. */
static void check_pages(const struct reader *reader, int file)
{
    for (uint32_t r = 0; r < reader->header->ring_count; r++) {
        const uint64_t backed = reader_ring(reader, r)->backed_bytes;
        const off_t end = data_offset(reader, r) + (off_t)BUFFER;
        const off_t behind = data_offset(reader, r) + (off_t)backed;
        if (backed == 0)
            continue;
        const off_t page = lseek(file, behind, SEEK_DATA);
        check(page < 0 || page >= end, "ring %u has a page at %lld behind its %llu bytes", r,
              (long long)(page - data_offset(reader, r)), (unsigned long long)backed);
    }
}

/* Adds `step` bytes to each ring. @return whether all are complete. */
static int grow(const struct reader *reader, int file, uint64_t step)
{
    int whole = 1;
    for (uint32_t r = 0; r < reader->header->ring_count; r++) {
        struct lat_ring *ring = reader_ring(reader, r);
        const uint64_t backed = ring->backed_bytes;
        if (backed == 0)
            continue;
        if (fallocate(file, FALLOC_FL_KEEP_SIZE, data_offset(reader, r) + (off_t)backed,
                      (off_t)step) != 0)
            abort();
        __atomic_store_n(&ring->backed_bytes, backed + step < BUFFER ? backed + step : 0,
                         __ATOMIC_RELEASE); /* pair G1 */
        whole = 0;
    }
    return whole;
}

static void check_all(struct reader *reader, struct ledger *ledger)
{
    check(reader->problem[0] == 0, "%s", reader->problem);
    CHECK_EQUAL(reader_losses(reader), lost_full(reader));
    CHECK_EQUAL(ledger->found + lost_full(reader), EVENTS);
    CHECK_EQUAL(reader->out_of_order + ledger->torn + ledger->twice + ledger->disordered, 0);
}

/* A traced program whose recorder adds memory. */
static void make(struct traced *traced, uint64_t buffer, const char *mode)
{
    traced_make(traced, buffer, PACKET, mode);
    const size_t used = strlen(traced->record);
    snprintf(traced->record + used, sizeof traced->record - used, ";grow");
}

/* No reader adds memory: the ring keeps the first events, and takes no more memory than its initial part. */
static void nobody_gives(void)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    struct stat status;
    make(&traced, BUFFER, "discard");
    traced_start(&traced, "write", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(find_traced(&reader, &traced))) {
        const int file = open(reader.path, O_RDWR | O_CLOEXEC);
        CHECK(fstat(file, &status) == 0);
        /* Tables, 2 rings of 260 KiB and 62 of 20 KiB. */
        check(status.st_blocks * 512 < 2200000, "%lld bytes", (long long)status.st_blocks * 512);
        check_pages(&reader, file);
        ledger_make(&ledger, &reader, 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        reader_drain(&reader, 0);
        CHECK(lost_full(&reader) > 0);
        CHECK(ledger_has(&ledger, 0, 0));
        CHECK(ledger.found > 1000);
        check_all(&reader, &ledger);
        ledger_free(&ledger);
        close(file);
        reader_close(&reader);
    }
    fact("rings that get no more memory");
    traced_remove(&traced);
}

/* A reader adds memory while the program writes: less than a packet at a time, and several. */
static void given_meanwhile(uint64_t step, const char *name)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    int status = -1, whole = 0;
    make(&traced, BUFFER, "discard");
    traced_start(&traced, "write-on", NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        const int file = open(reader.path, O_RDWR | O_CLOEXEC);
        ledger_make(&ledger, &reader, 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        reader.keeps_memory = 1;
        while (waitpid(traced.pid, &status, WNOHANG) == 0) {
            reader_drain(&reader, 1);
            check_pages(&reader, file);
            whole = grow(&reader, file, step);
            if (reader.problem[0] != 0)
                kill(traced.pid, SIGKILL);
            usleep(200);
        }
        CHECK_EQUAL(status, 0);
        while (!whole)
            whole = grow(&reader, file, step);
        reader_drain(&reader, 1);
        check_all(&reader, &ledger);
        ledger_free(&ledger);
        close(file);
        reader_close(&reader);
    }
    fact(name);
    traced_remove(&traced);
}

/* A recorder that does not announce that it adds memory gets rings with all of theirs. */
static void nobody_was_asked(void)
{
    struct traced traced;
    struct reader reader;
    traced_make(&traced, 1 << 20, PACKET, "discard");
    traced_start(&traced, "nothing", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(find_traced(&reader, &traced))) {
        for (uint32_t r = 0; r < reader.header->ring_count; r++)
            CHECK_EQUAL(reader_ring(&reader, r)->backed_bytes, 0);
        reader_close(&reader);
    }
    fact("rings of a recorder that gives no memory are whole");
    traced_remove(&traced);
}

/* A flight recorder has its memory from the start, because it is read only at the end. */
static void overwrite(void)
{
    struct traced traced;
    struct reader reader;
    make(&traced, 1 << 20, "overwrite");
    traced_start(&traced, "nothing", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(find_traced(&reader, &traced))) {
        for (uint32_t r = 0; r < reader.header->ring_count; r++)
            CHECK_EQUAL(reader_ring(&reader, r)->backed_bytes, 0);
        reader_close(&reader);
    }
    fact("a flight recorder is whole from the start");
    traced_remove(&traced);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        if (strcmp(arguments[1], "write") == 0)
            for (uint64_t i = 0; i < EVENTS; i++)
                value_emit(0, i);
        /* As long as the rings grow, with any reader. */
        if (strcmp(arguments[1], "write-on") == 0)
            for (uint64_t i = 0; i < EVENTS; i++) {
                value_emit(0, i);
                if (i % 500 == 0)
                    usleep(100);
            }
        return 0;
    }
    nobody_was_asked();
    nobody_gives();
    given_meanwhile(4096, "rings that get memory a page at a time");
    given_meanwhile(65536, "rings that get memory of several packets at a time");
    overwrite();
    return check_status();
}
