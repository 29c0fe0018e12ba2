// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The applications, in user mode: they can only compute and call the kernel.
 *
 *   camera   two threads, cores 0 and 1: make frames and send them; after every fifth, wait for an answer
 *   filter   two threads, cores 2 and 3: receive frames, look them up in the table, send results
 *   store    one thread, core 1: receives results, changes the table, answers the cameras
 *   bank     four threads, one per core: work on one account, protected by one mutex
 */
#include "kernel.h"

enum { FRAMES_0, FRAMES_1, RESULTS, ANSWERS };
enum { TABLE, ACCOUNT };
#define FRAMES 25u
#define ROUNDS 20u

static inline uint64_t call(enum call number, uint64_t first, uint64_t second)
{
    return machine_call(number, first, second);
}

static void work(uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++)
        __asm__ volatile("" : "+r"(i));
}

static volatile uint64_t table, account;

static void camera(uint64_t which)
{
    for (uint64_t n = 0; n < FRAMES; n++) {
        work(1500 + n * 7 % 5 * 400);
        call(CALL_SEND, which == 0 ? FRAMES_0 : FRAMES_1, n);
        if (n % 5 == 4)
            call(CALL_RECEIVE, ANSWERS, 0);
    }
}

static void filter(uint64_t which)
{
    for (uint64_t n = 0; n < FRAMES; n++) {
        const uint64_t frame = call(CALL_RECEIVE, which == 0 ? FRAMES_0 : FRAMES_1, 0);
        work(800);
        call(CALL_LOCK, TABLE, 0);
        work(1200);
        const uint64_t result = table + frame;
        call(CALL_UNLOCK, TABLE, 0);
        call(CALL_SEND, RESULTS, result);
    }
}

static void store(uint64_t which)
{
    (void)which;
    for (uint64_t n = 0; n < 2 * FRAMES; n++) {
        const uint64_t result = call(CALL_RECEIVE, RESULTS, 0);
        call(CALL_LOCK, TABLE, 0);
        table = table + (result & 3);
        work(900);
        call(CALL_UNLOCK, TABLE, 0);
        if (n % 5 == 4)
            call(CALL_SEND, ANSWERS, n);
    }
    call(CALL_PRINT, (uint64_t) "store: all results are here\n", 0);
}

static void bank(uint64_t which)
{
    for (uint64_t n = 0; n < ROUNDS; n++) {
        work(2000 + which * 300);
        call(CALL_LOCK, ACCOUNT, 0);
        const uint64_t before = account;
        work(1500);
        account = before + 1;
        call(CALL_UNLOCK, ACCOUNT, 0);
        call(CALL_YIELD, 0, 0);
    }
    if (account == 4 * ROUNDS)
        call(CALL_PRINT, (uint64_t) "bank: the account is right\n", 0);
}

/* The function in which every thread begins and ends. */
static _Noreturn void begin(void (*entry)(uint64_t), uint64_t argument)
{
    entry(argument);
    call(CALL_EXIT, 0, 0);
    __builtin_unreachable();
}

static void camera_thread(uint64_t which) { begin(camera, which); }
static void filter_thread(uint64_t which) { begin(filter, which); }
static void store_thread(uint64_t which) { begin(store, which); }
static void bank_thread(uint64_t which) { begin(bank, which); }

const struct application applications[] = {
    {100, "camera"}, {200, "filter"}, {300, "store"}, {400, "bank"}};
const uint32_t application_count = 4;

const struct job jobs[] = {
    {0, 0, "camera 0", camera_thread, 0}, {0, 1, "camera 1", camera_thread, 1},
    {1, 2, "filter 0", filter_thread, 0}, {1, 3, "filter 1", filter_thread, 1},
    {2, 1, "store", store_thread, 0},     {3, 0, "bank 0", bank_thread, 0},
    {3, 1, "bank 1", bank_thread, 1},     {3, 2, "bank 2", bank_thread, 2},
    {3, 3, "bank 3", bank_thread, 3}};
const uint32_t job_count = 9;
