// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Four threads, two million events each, a signal every 50 us in each of them whose handler
 * records too, threads migrated between CPUs at random: no event is lost, out of order, or torn.
 */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/throttle.h"
#include "../support/traced_drain.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4u

static uint64_t events = 2000000;
/* Counted by the writer: thread sanitizer runs a handler late, up to the thread's end. */
static uint64_t handled[THREADS];
static __thread uint64_t self;

static void handler(int signal_number)
{
    (void)signal_number;
    lat_t_handler(value_make(self, handled[self]++));
}

static void move_to_random_cpu(unsigned *seed)
{
    cpu_set_t allowed;
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    CPU_ZERO(&allowed);
    CPU_SET((unsigned)rand_r(seed) % (unsigned)(count > 0 ? count : 1), &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
}

static void *writer(void *number)
{
    struct sigevent notify;
    const struct itimerspec period = {{0, 50000}, {0, 50000}};
    timer_t timer;
    unsigned seed;
    self = (uint64_t)(uintptr_t)number;
    seed = (unsigned)self + 1;
    memset(&notify, 0, sizeof notify);
    notify.sigev_notify = SIGEV_THREAD_ID;
    notify.sigev_signo = SIGALRM;
    notify._sigev_un._tid = (int)syscall(SYS_gettid);
    if (timer_create(CLOCK_MONOTONIC, &notify, &timer) != 0 ||
        timer_settime(timer, 0, &period, NULL) != 0)
        abort();
    for (uint64_t i = 0; i < events; i++) {
        value_emit(self, i);
        if (i % 1024 == 0)
            throttle();
        if (i % 32768 == 0)
            move_to_random_cpu(&seed);
    }
    timer_delete(timer);
    return NULL;
}

/* The traced program: records, and writes the number of its handlers' events to a file. */
static int write_events(const char *counts)
{
    struct sigaction action;
    pthread_t thread[THREADS];
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, writer, (void *)i) != 0)
            return 1;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    FILE *file = fopen(counts, "w");
    if (file == NULL || fwrite(handled, sizeof handled, 1, file) != 1 || fclose(file) != 0)
        return 1;
    return 0;
}

int main(int count, char **arguments)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    char counts[200];
    int status = 0;

    if (getenv("TEST_EVENTS") != NULL)
        events = strtoull(getenv("TEST_EVENTS"), NULL, 10);
    if (count > 1)
        return write_events(arguments[2]);
    traced_make(&traced, 8 << 20, 64 << 10, "discard");
    snprintf(counts, sizeof counts, "%s/counts", traced.directory);
    traced_start(&traced, "write", counts, NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, THREADS, events);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        status = drain_until_end(&reader, &traced, 1);
        check(reader.problem[0] == 0, "%s", reader.problem);
        FILE *file = fopen(counts, "r");
        CHECK(file != NULL && fread(handled, sizeof handled, 1, file) == 1);
        if (file != NULL)
            fclose(file);
        CHECK_EQUAL(status, 0);
        CHECK_EQUAL(reader_losses(&reader), 0);
        CHECK_EQUAL(reader.out_of_order, 0);
        CHECK_EQUAL(ledger.torn, 0);
        CHECK_EQUAL(ledger.twice, 0);
        CHECK_EQUAL(ledger.disordered, 0);
        CHECK_EQUAL(ledger.misattributed, 0);
        CHECK_EQUAL(ledger.found, THREADS * events);
        CHECK_EQUAL(ledger.found_in_handler, handled[0] + handled[1] + handled[2] + handled[3]);
        CHECK(ledger.found_in_handler > 0);
        for (unsigned i = 0; i < THREADS; i++)
            CHECK_EQUAL(ledger.handler[i], handled[i]);
        ledger_free(&ledger);
        reader_close(&reader);
    } else {
        traced_wait(&traced);
        check(0, "%s", reader.problem);
    }
    fact("threads, signal handlers and migration");
    traced_remove(&traced);
    return check_status();
}
