// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Several processes in one area: children of a fork, and programs that join by LATERALIS_AREA;
 * also writers that are killed at random while others continue: every committed event is
 * read back.
 */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/throttle.h"
#include "../support/traced_drain.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#define PROCESSES 4u
#define EVENTS 200000u
/* After this many events a worker that has not been killed waits for it. */
#define WORKER_EVENTS (1u << 20)

static void write_events(uint64_t writer, uint64_t events)
{
    for (uint64_t i = 0; i < events; i++) {
        value_emit(writer, i);
        if (i % 1024 == 0)
            throttle();
    }
}

/* ---- roles of the traced program ------------------------------------------------- */

static int forking(void)
{
    int failed = 0, status;
    value_emit(PROCESSES, 0); /* the parent has written before, so children inherit its state */
    for (uint64_t i = 0; i < PROCESSES; i++) {
        const pid_t pid = fork();
        if (pid < 0)
            return 1;
        if (pid == 0) {
            write_events(i, EVENTS);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    return failed;
}

/* Committed counts of the writers, in separate memory. */
struct progress {
    volatile uint64_t committed[4096];
};

struct worker {
    uint64_t writer;
    struct progress *progress;
};

static void *work(void *argument)
{
    const struct worker *worker = (const struct worker *)argument;
    for (uint64_t i = 0; i < WORKER_EVENTS; i++) {
        value_emit(worker->writer, i);
        __atomic_store_n(&worker->progress->committed[worker->writer], i + 1, __ATOMIC_RELEASE);
        if (i % 256 == 0)
            throttle();
        if (i % 4096 == 0)
            usleep(300); /* leaves CPU time for the reader */
    }
    for (;;)
        pause();
    return NULL;
}

/* Writes in two threads until it is killed. */
static int write_until_killed(const char *progress_path, uint64_t first_writer)
{
    static struct worker worker[2];
    pthread_t thread;
    const int file = open(progress_path, O_RDWR);
    void *map = mmap(NULL, sizeof(struct progress), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || map == MAP_FAILED)
        return 1;
    for (unsigned i = 0; i < 2; i++) {
        worker[i].writer = first_writer + i;
        worker[i].progress = (struct progress *)map;
    }
    if (pthread_create(&thread, NULL, work, &worker[1]) != 0)
        return 1;
    work(&worker[0]);
    return 0;
}

/* ---- facts ------------------------------------------------------------------------ */

static void check_ledger(struct reader *reader, const struct ledger *ledger)
{
    check(reader->problem[0] == 0, "%s", reader->problem);
    CHECK_EQUAL(reader_losses(reader), 0);
    CHECK_EQUAL(reader->out_of_order, 0);
    CHECK_EQUAL(ledger->torn, 0);
    CHECK_EQUAL(ledger->twice, 0);
    CHECK_EQUAL(ledger->disordered, 0);
    CHECK_EQUAL(ledger->misattributed, 0);
}

static void forked_processes(void)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, 4 << 20, 64 << 10, "discard");
    traced_start(&traced, "fork", NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, PROCESSES + 1, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        CHECK_EQUAL(drain_until_end(&reader, &traced, 1), 0);
        check_ledger(&reader, &ledger);
        CHECK_EQUAL(ledger.found, PROCESSES * EVENTS + 1);
        CHECK_EQUAL(reader_count_areas(traced.directory), 1);
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact("forked processes in one area");
    traced_remove(&traced);
}

/* An area kept by a program that only waits, and other programs that join it. */
static void start_owner(struct traced *owner, struct reader *reader)
{
    traced_make(owner, 4 << 20, 64 << 10, "discard");
    traced_start(owner, "wait", NULL);
    CHECK(find_traced(reader, owner));
}

static void joined_processes(void)
{
    struct traced owner, joining[PROCESSES];
    struct reader reader;
    struct ledger ledger;
    char number[16];
    unsigned running = PROCESSES;
    start_owner(&owner, &reader);
    if (reader.tests_base != 0) {
        ledger_make(&ledger, &reader, PROCESSES, EVENTS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        setenv("LATERALIS_AREA", reader.path, 1);
        for (unsigned i = 0; i < PROCESSES; i++) {
            joining[i] = owner;
            joining[i].record[0] = 0;
            snprintf(number, sizeof number, "%u", i);
            traced_start(&joining[i], "write", number, NULL);
        }
        unsetenv("LATERALIS_AREA");
        while (running != 0 && reader.problem[0] == 0) {
            int status;
            reader_drain(&reader, 1);
            for (unsigned i = 0; i < PROCESSES; i++) {
                if (joining[i].pid == 0 || waitpid(joining[i].pid, &status, WNOHANG) == 0)
                    continue;
                CHECK_EQUAL(status, 0);
                joining[i].pid = 0;
                running--;
            }
            usleep(500);
        }
        reader_drain(&reader, 1);
        check_ledger(&reader, &ledger);
        CHECK_EQUAL(ledger.found, PROCESSES * EVENTS);
        CHECK_EQUAL(reader_count_areas(owner.directory), 1);
        ledger_free(&ledger);
        reader_close(&reader);
    }
    kill(owner.pid, SIGKILL);
    traced_wait(&owner);
    fact("programs that join an area");
    traced_remove(&owner);
}

/* All are started at once with the name of an area that does not exist: one of them makes it, the
 * others join it, and it outlives its maker. */
static void made_by_the_first(void)
{
    enum { ROUNDS = 20, RACERS = 6, NUMBERS = 2000 };
    struct traced racer[RACERS];
    struct reader reader;
    struct ledger ledger;
    char path[200], number[16];
    /* TEST_ROUNDS in the environment: fewer on machines where starting processes is slow. */
    const unsigned rounds =
        getenv("TEST_ROUNDS") != NULL ? (unsigned)atoi(getenv("TEST_ROUNDS")) : ROUNDS;
    for (unsigned round = 0; round < rounds && check_why[0] == 0; round++) {
        traced_make(&racer[0], 1 << 20, 4096, "discard");
        snprintf(path, sizeof path, "%s/shared.area", racer[0].directory);
        setenv("LATERALIS_AREA", path, 1);
        for (unsigned i = 0; i < RACERS; i++) {
            racer[i] = racer[0];
            snprintf(number, sizeof number, "%u", i);
            traced_start(&racer[i], "write-few", number, NULL);
        }
        for (unsigned i = 0; i + 1 < RACERS; i++)
            CHECK_EQUAL(traced_wait(&racer[i]), 0);
        CHECK_EQUAL(traced_wait(&racer[RACERS - 1]), 0);
        /* One more, after all the others have ended. */
        snprintf(number, sizeof number, "%u", (unsigned)RACERS);
        traced_start(&racer[0], "write-few", number, NULL);
        CHECK_EQUAL(traced_wait(&racer[0]), 0);
        unsetenv("LATERALIS_AREA");
        CHECK_EQUAL(reader_count_areas(racer[0].directory), 1);
        if (CHECK(find_traced(&reader, &racer[0]))) {
            CHECK(strcmp(reader.path, path) == 0);
            CHECK_EQUAL(reader.header->state, LAT_AREA_READY);
            ledger_make(&ledger, &reader, RACERS + 1, NUMBERS);
            reader.visit = ledger_visit;
            reader.context = &ledger;
            reader_drain(&reader, 0);
            check_ledger(&reader, &ledger);
            CHECK_EQUAL(ledger.found, (RACERS + 1) * NUMBERS);
            ledger_free(&ledger);
            reader_close(&reader);
        }
        traced_remove(&racer[0]);
    }
    fact("programs that share the area of the first of them");
}

static void killed_writers(void)
{
    enum { ALIVE = 4, KILLS = 50, NUMBERS = WORKER_EVENTS };
    /* TEST_KILLS in the environment: fewer on machines where starting processes is slow. */
    const char *asked = getenv("TEST_KILLS");
    const unsigned kills = asked != NULL ? (unsigned)atoi(asked) % (KILLS + 1) : KILLS;
    struct traced owner, worker[ALIVE];
    struct reader reader;
    struct ledger ledger;
    char path[200], number[16];
    uint64_t writers = 0, missing = 0, invented = 0, committed = 0;
    unsigned seed = 4711;
    start_owner(&owner, &reader);
    snprintf(path, sizeof path, "%s/progress", owner.directory);
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (reader.tests_base != 0 && CHECK(file >= 0) &&
        CHECK(ftruncate(file, sizeof(struct progress)) == 0)) {
        struct progress *progress = (struct progress *)mmap(
            NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        ledger_make(&ledger, &reader, 2 * (ALIVE + KILLS), NUMBERS);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        setenv("LATERALIS_AREA", reader.path, 1);
        memset(worker, 0, sizeof worker);
        for (unsigned killed = 0; killed < kills && reader.problem[0] == 0;) {
            for (unsigned i = 0; i < ALIVE; i++) {
                if (worker[i].pid != 0)
                    continue;
                worker[i] = owner;
                worker[i].record[0] = 0;
                snprintf(number, sizeof number, "%u", (unsigned)writers);
                traced_start(&worker[i], "until-killed", path, number, NULL);
                writers += 2;
            }
            const unsigned pause = 1000 + (unsigned)rand_r(&seed) % 15000;
            for (unsigned slept = 0; slept < pause; slept += 1000) {
                reader_drain(&reader, 1);
                usleep(1000);
            }
            struct traced *victim = &worker[(unsigned)rand_r(&seed) % ALIVE];
            kill(victim->pid, SIGKILL);
            traced_wait(victim);
            victim->pid = 0;
            killed++;
        }
        unsetenv("LATERALIS_AREA");
        for (unsigned i = 0; i < ALIVE; i++) {
            if (worker[i].pid == 0)
                continue;
            kill(worker[i].pid, SIGKILL);
            traced_wait(&worker[i]);
        }
        reader_drain(&reader, 1);
        check_ledger(&reader, &ledger);
        for (uint64_t w = 0; w < writers; w++) {
            const uint64_t sure = progress->committed[w];
            committed += sure;

            for (uint64_t i = 0; i < sure; i++)
                missing += !ledger_has(&ledger, w, i);
            /* One more may have been committed but not yet noted. */
            for (uint64_t i = sure + 1; i < sure + 2 && i < NUMBERS; i++)
                invented += (uint64_t)ledger_has(&ledger, w, i);
        }
        CHECK_EQUAL(missing, 0);
        CHECK_EQUAL(invented, 0);
        CHECK(committed > 200 * kills);
        CHECK(ledger.found >= committed && ledger.found <= committed + writers);
        ledger_free(&ledger);
        munmap(progress, sizeof *progress);
        reader_close(&reader);
    }
    kill(owner.pid, SIGKILL);
    traced_wait(&owner);
    fact("every committed event of killed writers");
    traced_remove(&owner);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        if (strcmp(arguments[1], "fork") == 0)
            return forking();
        if (strcmp(arguments[1], "wait") == 0)
            return pause();
        if (strcmp(arguments[1], "write") == 0) {
            write_events(strtoull(arguments[2], NULL, 10), EVENTS);
            return 0;
        }
        if (strcmp(arguments[1], "write-few") == 0) {
            write_events(strtoull(arguments[2], NULL, 10), 2000);
            return 0;
        }
        return write_until_killed(arguments[2], strtoull(arguments[3], NULL, 10));
    }
    forked_processes();
    joined_processes();
    made_by_the_first();
    killed_writers();
    return check_status();
}
