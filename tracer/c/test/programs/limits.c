// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * At the limits of an area's tables: schemas and threads without a slot are counted in lost_schemas or
 * lost_no_ring, the others are recorded normally. Also many short processes, with threads that
 * end one after the other or never, in few rings.
 */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/throttle.h"
#include "../support/traced_drain.h"

#include <pthread.h>

#define SCHEMAS 300u
#define PROCESSES 140u
#define EVENTS 20u
#define ROUNDS 8u
#define ROUND_PROCESSES 200u
#define AT_ONCE 8u
#define THREADS 3u
#define THREAD_EVENTS 500u

/* ---- roles ----------------------------------------------------------------------- */

/* A schema made at run time, like the output of pleco. */
static struct lat_schema *make_schema(unsigned number, uint32_t events, uint32_t padding)
{
    static uint8_t zeros[LAT_AREA_EVENT_COUNT];
    struct lat_schema *schema = (struct lat_schema *)calloc(1, sizeof *schema);
    char *text = (char *)malloc(64 + (size_t)events * 16 + padding), *name = (char *)malloc(16);
    if (schema == NULL || text == NULL || name == NULL)
        abort();
    snprintf(name, 16, "s%u", number);
    int length = sprintf(text, "schema s%u; subsystem s%u {", number, number);
    for (uint32_t i = 0; i < events; i++)
        length += sprintf(text + length, " event E%u,", i);
    length += sprintf(text + length, " };%*s", (int)padding, "");
    *schema = (struct lat_schema){zeros, 0,    events,           UINT64_C(0x5000000000) + number,
                                  name,  text, (uint32_t)length, 0};
    return schema;
}

/* Registers, and records event 0 if it is enabled, like a generated function. */
static void use_schema(struct lat_schema *schema)
{
    lat_register(schema);
    if (schema->enabled[0] != 0)
        lat_i_emit_words(schema->base_id, 0, NULL);
}

static int use_schemas(unsigned count, uint32_t events, uint32_t padding)
{
    for (unsigned i = 0; i < count; i++)
        use_schema(make_schema(i, events, padding));
    value_emit(0, 0);
    return 0;
}

/* One after the other, then all at the same time. */
static int use_processes(void)
{
    int gate[2], status, failed = 0;
    char c;
    if (pipe(gate) != 0)
        return 1;
    for (uint64_t i = 0; i < PROCESSES; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            close(gate[1]);
            value_emit(i, 0);
            failed = (int)read(gate[0], &c, 1);
            for (uint64_t k = 1; k < EVENTS; k++)
                value_emit(i, k);
            _exit(failed != 0);
        }
    }
    close(gate[1]);
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

static void *write_some(void *writer)
{
    for (uint64_t i = 0; i < THREAD_EVENTS; i++) {
        value_emit((uint64_t)(uintptr_t)writer, i);
        if (i % 64 == 0)
            throttle();
    }
    return NULL;
}

/* Threads that each start after the previous one has ended. The main thread writes too, and its ring is not
 * released: it ends by _exit, or is killed. */
static void be_short(uint64_t writer)
{
    for (unsigned i = 0; i + 1 < THREADS; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, write_some, (void *)(uintptr_t)(writer + i)) != 0)
            _exit(1);
        pthread_join(thread, NULL);
    }
    write_some((void *)(uintptr_t)(writer + THREADS - 1));
    if (writer % 2 != 0)
        kill(getpid(), SIGKILL);
    _exit(0);
}

static int use_short_processes(void)
{
    uint64_t begun = 0, ended = 0;
    for (; ended < ROUND_PROCESSES; ended++) {
        int status;
        for (; begun < ROUND_PROCESSES && begun - ended < AT_ONCE; begun++)
            if (fork() == 0)
                be_short(begun * THREADS);
        if (wait(&status) < 0 || (WIFEXITED(status) && WEXITSTATUS(status) != 0))
            return 1;
    }
    return 0;
}

/* ---- facts ------------------------------------------------------------------------ */

static void visit_ids(void *context, const struct record *record)
{
    *(uint64_t *)context += record->id >= LAT_INTERNAL_EVENT_COUNT && record->bytes == 0;
}
static size_t no_payload(void *context, uint32_t id, const uint8_t *payload, size_t left)
{
    (void)context, (void)id, (void)payload, (void)left;
    return 0;
}

/* `used` schemas of the role fit, besides that of the tests; `refused` do not. */
static void schemas(const char *name, const char *role, uint64_t used, uint64_t refused)
{
    struct traced traced;
    struct reader reader;
    uint64_t recorded = 0;
    traced_make(&traced, 65536, 4096, "discard");
    traced_start(&traced, role, NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(find_traced(&reader, &traced))) {
        reader.visit = visit_ids;
        reader.size = no_payload;
        reader.context = &recorded;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(recorded, used);
        CHECK_EQUAL(reader.records, used + 1); /* the last is of the tests' own schema */
        CHECK_EQUAL(reader.header->lost_schemas, refused);
        CHECK_EQUAL(reader_losses(&reader), 0);
        CHECK(reader.header->next_event_id <= LAT_AREA_EVENT_COUNT);
        CHECK(reader.header->heap_used <= LAT_AREA_HEAP_BYTES);
        reader_close(&reader);
    }
    fact(name);
    traced_remove(&traced);
}

static void check_whole(const struct reader *reader, const struct ledger *ledger)
{
    check(reader->problem[0] == 0, "%s", reader->problem);
    CHECK_EQUAL(reader->out_of_order + ledger->torn + ledger->twice + ledger->disordered, 0);
    CHECK_EQUAL(ledger->misattributed, 0);
}

static void processes(void)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, 1 << 20, 4096, "discard");
    traced_start(&traced, "processes", NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, PROCESSES, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        CHECK_EQUAL(drain_until_end(&reader, &traced, 1), 0);
        check_whole(&reader, &ledger);
        /* The program itself has a slot too. */
        CHECK_EQUAL(reader.header->lost_processes, PROCESSES + 1 - LAT_AREA_PROCESS_COUNT);
        CHECK_EQUAL(reader.header->lost_schemas, 0);
        if (reader.header->ring_kind == LAT_RING_PER_CPU)
            CHECK_EQUAL(reader_losses(&reader), 0);
        else /* fewer rings than threads at the same time */
            CHECK(reader.header->lost_no_ring > 0);
        /* Each has two more events that introduce it. */
        CHECK_EQUAL(ledger.found + reader.introductions + reader_losses(&reader),
                    PROCESSES * (EVENTS + 2));
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact("more processes than slots");
    traced_remove(&traced);
}

/* TEST_ROUNDS in the environment: fewer on machines where starting processes is slow. */
static unsigned rounds_asked(void)
{
    const char *asked = getenv("TEST_ROUNDS");
    return asked != NULL ? (unsigned)atoi(asked) : ROUNDS;
}

static void short_processes(void)
{
    uint64_t found = 0;
    const unsigned rounds = rounds_asked();
    for (unsigned round = 0; round < rounds && check_why[0] == 0; round++) {
        struct traced traced;
        struct reader reader;
        struct ledger ledger;
        traced_make(&traced, 65536, 4096, "discard");
        traced_start(&traced, "short", NULL);
        if (CHECK(find_traced(&reader, &traced))) {
            ledger_make(&ledger, &reader, ROUND_PROCESSES * THREADS, THREAD_EVENTS);
            reader.visit = ledger_visit;
            reader.context = &ledger;
            CHECK_EQUAL(drain_until_end(&reader, &traced, 1), 0);
            check_whole(&reader, &ledger);
            CHECK_EQUAL(reader_losses(&reader), 0);
            CHECK_EQUAL(ledger.found, ROUND_PROCESSES * THREADS * THREAD_EVENTS);
            found += ledger.found;
            ledger_free(&ledger);
            reader_close(&reader);
        }
        traced_remove(&traced);
    }
    CHECK_EQUAL(found, (uint64_t)rounds * ROUND_PROCESSES * THREADS * THREAD_EVENTS);
    fact("short processes whose threads end one after the other, or are killed");
}

int main(int count, char **arguments)
{
    if (count > 1) {
        const char *role = arguments[1];
        if (strcmp(role, "schemas") == 0)
            return use_schemas(SCHEMAS, 1, 0);
        if (strcmp(role, "ids") == 0)
            return use_schemas(5, 8000, 0);
        if (strcmp(role, "texts") == 0)
            return use_schemas(6, 1, 100000);
        return strcmp(role, "processes") == 0 ? use_processes() : use_short_processes();
    }
    schemas("more schemas than slots", "schemas", LAT_AREA_SCHEMA_COUNT - 1,
            SCHEMAS - (LAT_AREA_SCHEMA_COUNT - 1));
    schemas("more events than ids", "ids", 4, 1);
    schemas("more text than the heap holds", "texts", 5, 1);
    processes();
    short_processes();
    return check_status();
}
