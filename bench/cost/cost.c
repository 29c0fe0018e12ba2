// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The cost of one event. Compiled without options for rings per CPU, with LAT_RING_THREAD for rings per
 * thread. The run script starts it in both modes, with and without a recorder attached.
 *
 *     cost [--rounds N] [--gap US] [--cpu N] [drained]
 *
 * `drained`: a recorder empties the rings, so this program does not.
 */
#include "cost.h"

#include "../harness/rings.h"
#include "../harness/rows.h"

#include <lat/log.h>

/* Arguments that the program has computed already: in registers, as far as there are enough. */
static volatile uint64_t unknown[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
#define LOOP_ARGUMENTS(name, ...)                                                              \
    static NOINLINE void name(uint64_t i)                                                      \
    {                                                                                          \
        const uint64_t a = unknown[0], b = unknown[1], c = unknown[2], d = unknown[3];         \
        const uint64_t e = unknown[4], f = unknown[5], g = unknown[6], h = unknown[7];         \
        (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;                \
        do {                                                                                   \
            TIMES_4(__VA_ARGS__);                                                              \
            BARRIER();                                                                         \
        } while (--i != 0);                                                                    \
    }

LOOP_ARGUMENTS(body_0, lat_cost_e0())
LOOP_ARGUMENTS(body_1, lat_cost_e1(i))
LOOP_ARGUMENTS(body_2, lat_cost_e2(i, a))
LOOP_ARGUMENTS(body_4, lat_cost_e4(i, a, b, c))
LOOP_ARGUMENTS(body_8, lat_cost_e8(i, a, b, c, d, e, f, g))
LOOP_ARGUMENTS(body_16, lat_cost_e16(i, a, b, c, d, e, f, g, h, i, a, b, c, d, e, f))
LOOP_ARGUMENTS(body_u32, lat_cost_barrelfish((uint32_t)i))
static const char text[] = "twenty characters ..";
LOOP_ARGUMENTS(body_text, lat_cost_text(text))
LOOP_ARGUMENTS(body_log, LAT_LOG("took %u us for %s", (uint32_t)i, text))
LOOP_16(body_off, lat_off_e4(i, i, i, i))

/* patched.c: the same header, compiled with LAT_PATCHABLE */
void body_off_patched(uint64_t i);
void body_4_patched(uint64_t i);

/* ---- the floor: the minimum for an event with a time stamp -----------------------------------
 * One byte test, the clock, a header, the arguments, a limit, a cursor; for one thread without
 * interruptions. Safe neither with threads nor with signal handlers: the cost without any safety. */

static struct {
    char *cursor, *end, *begin;
} floor_ring;
static volatile uint8_t floor_on = 1;
static char floor_memory[1 << 16] __attribute__((aligned(4096)));

static NOINLINE void floor_wrap(void)
{
    floor_ring.cursor = floor_ring.begin = floor_memory;
    floor_ring.end = floor_memory + sizeof floor_memory;
}
#define FLOOR(bytes, ...)                                                                      \
    if (floor_on) {                                                                            \
        char *place = floor_ring.cursor;                                                       \
        if (__builtin_expect(place + (bytes) > floor_ring.end, 0)) {                           \
            floor_wrap();                                                                      \
            place = floor_ring.cursor;                                                         \
        }                                                                                      \
        volatile uint64_t *word = (volatile uint64_t *)(void *)(place + 8);                    \
        (void)word;                                                                            \
        __asm__ volatile("rdtsc\n"                                                             \
                         "movw %w[id], (%[place])\n"                                           \
                         "movl %%eax, 2(%[place])\n"                                           \
                         "movw %%dx, 6(%[place])\n"                                            \
                         :                                                                     \
                         : [id] "r"(17), [place] "D"(place)                                    \
                         : "rax", "rdx", "memory");                                            \
        __VA_ARGS__;                                                                           \
        *(char *volatile *)&floor_ring.cursor = place + (bytes);                               \
    }
LOOP_ARGUMENTS(body_floor_0, FLOOR(8, ))
LOOP_ARGUMENTS(body_floor_4, FLOOR(40, word[0] = i; word[1] = a; word[2] = b; word[3] = c))
LOOP_ARGUMENTS(body_floor_8, FLOOR(72, word[0] = i; word[1] = a; word[2] = b; word[3] = c;
                                   word[4] = d; word[5] = e; word[6] = f; word[7] = g))

/* ---- verification ------------------------------------------------------------------------- */

static uint32_t looked_for;
static int any_log;

static uint64_t look(uint32_t id, const uint8_t *payload, int *counts)
{
    static const uint8_t fixed[] = {0, 8, 16, 32, 64, 128, 4};
    const uint32_t event = id - lat_schema_cost.base_id;
    const uint32_t log = id - lat_i_log_of_object.schema.base_id;
    if (log < lat_i_log_of_object.schema.event_count) {
        *counts = any_log && strcmp((const char *)payload + 4, text) == 0;
        return 4 + sizeof text;
    }
    *counts = !any_log && event == looked_for;
    if (event < sizeof fixed) {
        /* The arguments are those of body_…: the number, then those of `unknown`, in turn. */
        for (uint32_t word = 1; word < fixed[event] / 8u; word++) {
            uint64_t value;
            memcpy(&value, payload + 8 * word, 8);
            if (value != (word == 9 ? *(const uint64_t *)(const void *)payload
                                    : unknown[(word - 1) % 9]))
                *counts = 0;
        }
        return fixed[event];
    }
    if (event == 7) {
        *counts &= strcmp((const char *)payload, text) == 0;
        return sizeof text;
    }
    return UINT64_MAX;
}

static void (*verified_body)(uint64_t);
static uint64_t verify_event(uint32_t event, uint64_t count)
{
    struct lat_ring *ring = rings_mine();
    const uint64_t from = rings_position(ring);
    looked_for = event;
    verified_body(count / 4);
    return rings_count(ring, from, look);
}
#define VERIFY(number, body)                                                                   \
    static uint64_t verify_##body(uint64_t count)                                              \
    {                                                                                          \
        verified_body = body;                                                                  \
        return verify_event(number, count);                                                    \
    }
VERIFY(0, body_0)
VERIFY(1, body_1)
VERIFY(2, body_2)
VERIFY(3, body_4)
VERIFY(3, body_4_patched)
VERIFY(4, body_8)
VERIFY(5, body_16)
VERIFY(6, body_u32)
VERIFY(7, body_text)
static uint64_t verify_body_log(uint64_t count)
{
    any_log = 1;
    verified_body = body_log;
    const uint64_t found = verify_event(0, count);
    any_log = 0;
    return found;
}
/* Disabled: no record of any event may be found. */
static uint64_t verify_nothing(uint64_t count)
{
    const uint64_t from = rings_position(rings_mine());
    body_off(count / 16);
    body_off_patched(count / 16);
    return rings_position(rings_mine()) - from;
}

/* ---- discard mode ------------------------------------------------------------------------- */

static void before(void)
{
    rings_consume(rings_mine());
}
/* A ring that is never emptied. */
static void before_full(void)
{
    const uint64_t lost = rings_mine()->lost_full;
    while (rings_mine()->lost_full == lost)
        lat_cost_e4(0, 0, 0, 0);
}
static uint64_t lost_on_purpose;
static uint64_t verify_full(uint64_t count)
{
    const uint64_t lost = rings_mine()->lost_full;
    body_4(count / 4);
    const uint64_t found = rings_mine()->lost_full - lost;
    lost_on_purpose = rings_mine()->lost_full;
    return found;
}

/* Printed for comparison with the recorder's report. */
static void written_in_all(void)
{
    uint64_t written = 1; /* that of main */
    for (unsigned r = 0; r < row_count; r++) {
        const struct row *row = &rows[r];
        if (row->verify != NULL && !row->nothing_expected)
            written += (rows_rounds + ROWS_WARM_ROUNDS) * row->events_per_iteration *
                       (row->iterations + row->iterations / 16 + 1);
        rows[r].verify = NULL;
    }
    printf("# written %" PRIu64 "\n", written);
}

static void add(const char *name, void (*body)(uint64_t), uint64_t iterations,
                uint64_t (*verify)(uint64_t))
{
    rows_add(name, body, iterations, 4)->verify = verify;
}
static void add_disabled(const char *name, void (*body)(uint64_t))
{
    struct row *row = rows_add(name, body, 1000, 16);
    row->verify = verify_nothing;
    row->nothing_expected = 1;
}

int main(int argc, char **argv)
{
    const int rest = rows_options(argc, argv);
    const int drained = rest < argc && strcmp(argv[rest], "drained") == 0;
    rows_pin(rows_cpu);
    lat_cost_e0();
    if (lat_i_area.header == NULL || !lat_i_area.rings_usable) {
        fprintf(stderr, "cost: no rings: start it with LATERALIS_RECORD or under lat record\n");
        return 2;
    }
    const int discard = lat_i_area.header->ring_mode == LAT_MODE_DISCARD;
    floor_wrap();
    rows_add_references();
    rows_add("floor, 0 u64", body_floor_0, 1000, 4);
    rows_add("floor, 4 u64", body_floor_4, 1000, 4);
    rows_add("floor, 8 u64", body_floor_8, 1000, 4);
    add_disabled("disabled", body_off);
    add_disabled("disabled, patched", body_off_patched);
    add("0 u64", body_0, 1000, verify_body_0);
    add("1 u64", body_1, 1000, verify_body_1);
    add("2 u64", body_2, 1000, verify_body_2);
    add("4 u64", body_4, 1000, verify_body_4);
    add("8 u64", body_8, 1000, verify_body_8);
    add("16 u64", body_16, 1000, verify_body_16);
    add("u32 (Barrelfish)", body_u32, 1000, verify_body_u32);
    add("4 u64, patched", body_4_patched, 1000, verify_body_4_patched);
    add("string of 20", body_text, 500, verify_body_text);
    add("LAT_LOG, u32 and string of 20", body_log, 250, verify_body_log);
    if (discard && !drained) {
        for (unsigned r = 0; r < row_count; r++)
            rows[r].before = before;
        struct row *full = rows_add("4 u64, ring full: counted as lost", body_4, 250, 4);
        full->before = before_full;
        full->verify = verify_full;
    }
    if (drained) /* the recorder's report contains the number found */
        written_in_all();
    int failed = rows_run();
    uint64_t lost = 0;
    for (uint32_t r = 0; r < lat_i_area.header->ring_count; r++)
        lost += rings_lost(rings_at(r));
    if (discard && !drained)
        lost -= lost_on_purpose;
    if (lost != 0) {
        fprintf(stderr, "cost: %" PRIu64 " events were lost while measuring\n", lost);
        failed = 1;
    }
    return failed;
}
