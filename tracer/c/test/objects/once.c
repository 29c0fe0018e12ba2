// SPDX-License-Identifier: Apache-2.0 OR MIT
/* All in one process, for machines where a test cannot start itself again: threads and a signal
 * handler write into the rings, then the same process reads its area. */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"

#include "core.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#define WRITERS 4u
#define EVENTS 8000u

static volatile sig_atomic_t handled;
static void handler(int number)
{
    (void)number;
    lat_t_handler(value_make(WRITERS, (uint64_t)handled++));
}

static void *writer(void *self)
{
    for (uint64_t i = 0; i < EVENTS; i++) {
        value_emit((uint64_t)(uintptr_t)self, i);
        if (i % 512 == 0)
            sched_yield();
    }
    return NULL;
}

int main(void)
{
    static struct reader reader;
    struct ledger ledger;
    pthread_t thread[WRITERS];
    struct itimerval period = {{0, 500}, {0, 500}};
    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &period, NULL);
    for (uintptr_t i = 0; i < WRITERS; i++)
        if (pthread_create(&thread[i], NULL, writer, (void *)i) != 0)
            return 1;
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
    memset(&period, 0, sizeof period);
    setitimer(ITIMER_REAL, &period, NULL);

    if (CHECK(getenv("LATERALIS_DIR") != NULL) && CHECK(reader_find(&reader, getenv("LATERALIS_DIR")))) {
        ledger_make(&ledger, &reader, WRITERS + 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        reader_drain(&reader, 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        CHECK_EQUAL(reader_losses(&reader), 0);
        CHECK_EQUAL(reader.out_of_order + ledger.torn + ledger.twice + ledger.disordered, 0);
        CHECK_EQUAL(ledger.found, WRITERS * EVENTS);
        CHECK_EQUAL(ledger.found_in_handler, (uint64_t)handled);
        CHECK(handled > 0);
        const char *kind = getenv("TEST_KIND");
        CHECK(kind == NULL || reader.header->ring_kind == (uint32_t)atoi(kind));
        ledger_free(&ledger);
        unlink(reader.path);
    } else {
        check(0, "%s", reader.problem);
    }
    fact("threads and a signal handler in one process");
    return check_status();
}
