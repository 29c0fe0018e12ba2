// SPDX-License-Identifier: Apache-2.0 OR MIT
/* CPU utilisation: compared with getrusage of the same threads, and a port's switches by hand. */
#define _GNU_SOURCE
#include "../support/check.h"

#include <lat/utilisation.h>
#include <lat/utilisation_port.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* getrusage rounds user and system time to microseconds, each. */
enum { ROUNDING_NS = 2000, BURN_NS = 30000000 };

static uint64_t thread_clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t of_usage(const struct rusage *usage)
{
    return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000u +
           ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000u;
}

/* CPU time of this thread by getrusage, which returns the sum of the last tick: reading the clock updates
 * it. */
static uint64_t usage_ns(void)
{
    struct rusage usage;
    thread_clock_ns();
    getrusage(RUSAGE_THREAD, &usage);
    return of_usage(&usage);
}

static void burn(uint64_t ns)
{
    uint64_t end = thread_clock_ns() + ns;
    while (thread_clock_ns() < end) {
    }
}

static void a_thread_had_what_getrusage_says(void)
{
    struct lat_utilisation had;
    uint64_t outer, inner;
    CHECK_EQUAL(lat_utilisation_reset_thread(0), 0);
    outer = usage_ns();
    CHECK_EQUAL(lat_utilisation_reset(), 0);
    inner = usage_ns();
    burn(BURN_NS);
    inner = usage_ns() - inner;
    CHECK_EQUAL(lat_utilisation_finalize(), 0);
    outer = usage_ns() - outer;
    burn(BURN_NS); /* after the end: not counted */
    CHECK_EQUAL(lat_utilisation_get(0, &had), 0);
    CHECK(had.thread_ns + ROUNDING_NS >= inner && inner + ROUNDING_NS >= BURN_NS);
    CHECK(had.thread_ns <= outer + ROUNDING_NS);
    CHECK(had.program_ns >= had.thread_ns && had.elapsed_ns >= had.thread_ns);
    CHECK(had.cpus >= 1 && had.threads_missed == 0);
    check(had.thread_ns >= BURN_NS, "%llu ns", (unsigned long long)had.thread_ns);
    fact("a thread had what getrusage says");
}

static void intervals_add_up_until_a_thread_is_reset(void)
{
    struct lat_utilisation first, second, third;
    lat_utilisation_reset_thread(0);
    lat_utilisation_reset();
    burn(BURN_NS);
    lat_utilisation_finalize();
    lat_utilisation_get(0, &first);
    lat_utilisation_reset();
    burn(BURN_NS);
    lat_utilisation_finalize();
    lat_utilisation_get(0, &second);
    CHECK(second.thread_ns >= first.thread_ns + BURN_NS);
    CHECK(second.program_ns < second.thread_ns); /* the last interval alone */
    CHECK(second.thread_schedules >= first.thread_schedules);
    lat_utilisation_finalize(); /* no interval: no effect */
    lat_utilisation_get(0, &third);
    CHECK_EQUAL(third.thread_ns, second.thread_ns);
    CHECK_EQUAL(third.elapsed_ns, second.elapsed_ns);
    lat_utilisation_reset_thread(0);
    lat_utilisation_get(0, &third);
    CHECK_EQUAL(third.thread_ns, 0);
    fact("intervals add up until a thread is reset");
}

static sem_t woken;
static atomic_int other;
static atomic_int is_over;

static void *sleeper(void *unused)
{
    (void)unused;
    atomic_store(&other, (int)syscall(SYS_gettid));
    while (!atomic_load(&is_over)) {
        struct timespec moment = {0, 1000000};
        nanosleep(&moment, NULL);
    }
    burn(BURN_NS);
    sem_post(&woken);
    while (atomic_load(&is_over) != 2)
        usleep(1000);
    return NULL;
}

static void threads_born_meanwhile_count_and_ended_ones_are_told(void)
{
    struct lat_utilisation had;
    pthread_t thread;
    int tid;
    sem_init(&woken, 0, 0);
    lat_utilisation_reset();
    pthread_create(&thread, NULL, sleeper, NULL);
    for (int i = 0; i < 20; i++)
        usleep(2000);
    atomic_store(&is_over, 1);
    while (sem_wait(&woken) != 0) {
    }
    lat_utilisation_finalize();
    tid = atomic_load(&other);
    CHECK_EQUAL(lat_utilisation_get(tid, &had), 0);
    CHECK(had.thread_ns >= BURN_NS && had.program_ns >= had.thread_ns);
    /* It slept at least once before it was released, and each time it was scheduled in. */
    CHECK(had.thread_schedules >= 2);
    lat_utilisation_reset();
    atomic_store(&is_over, 2);
    pthread_join(thread, NULL);
    lat_utilisation_finalize();
    CHECK_EQUAL(lat_utilisation_get(tid, &had), -ESRCH);
    CHECK_EQUAL(lat_utilisation_get(1 << 30, &had), -ESRCH);
    CHECK_EQUAL(lat_utilisation_get(-1, &had), -ESRCH);
    CHECK_EQUAL(lat_utilisation_reset_thread(1 << 30), -ESRCH);
    fact("threads born meanwhile count, and ended ones are told");
}

static void a_child_begins_anew(void)
{
    int status = 0;
    pid_t child;
    lat_utilisation_reset();
    child = fork();
    if (child == 0) {
        struct lat_utilisation had;
        /* The child does not inherit the parent's interval. */
        lat_utilisation_finalize();
        _exit(lat_utilisation_get(0, &had) == -ESRCH && lat_utilisation_reset() == 0 &&
                      lat_utilisation_finalize() == 0 && lat_utilisation_get(0, &had) == 0
                  ? 0
                  : 1);
    }
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    lat_utilisation_finalize();
    fact("a child that was forked begins anew");
}

static void a_port_tells_its_switches(void)
{
    struct lat_utilisation_cpu cpu = {{7, 7}, {7, 7}, 0, 0, 0};
    struct lat_utilisation_slot a = {5, 5}, b = {0, 0}, idle = {0, 0};
    /* Not tracking: switches are not counted, and a finalize has no effect. */
    lat_utilisation_switched(&cpu, &a, &b, 0, 50);
    lat_utilisation_cpu_finalize(&cpu, &b, 60);
    CHECK_EQUAL(a.ticks, 5);
    lat_utilisation_slot_reset(&a);
    lat_utilisation_cpu_reset(&cpu, 0, 100); /* a runs */
    lat_utilisation_switched(&cpu, &a, &b, 0, 130);
    lat_utilisation_switched(&cpu, &b, &idle, 1, 150);
    lat_utilisation_switched(&cpu, &idle, &a, 0, 220);
    lat_utilisation_switched(&cpu, &a, NULL, 0, 225); /* to one without a slot */
    lat_utilisation_switched(&cpu, NULL, &b, 0, 226);
    lat_utilisation_cpu_finalize(&cpu, &b, 230);
    lat_utilisation_switched(&cpu, &b, &a, 0, 999);
    CHECK_EQUAL(a.ticks, 35);
    CHECK_EQUAL(a.schedules, 1);
    CHECK_EQUAL(b.ticks, 24);
    CHECK_EQUAL(b.schedules, 2);
    CHECK_EQUAL(idle.ticks, 70);
    CHECK_EQUAL(cpu.idle.ticks, 70);
    CHECK_EQUAL(cpu.idle.schedules, 1);
    CHECK_EQUAL(cpu.all.ticks, 130);
    CHECK_EQUAL(cpu.all.schedules, 5);
    fact("a port tells its switches");
}

int main(void)
{
    a_thread_had_what_getrusage_says();
    intervals_add_up_until_a_thread_is_reset();
    threads_born_meanwhile_count_and_ended_ones_are_told();
    a_child_begins_anew();
    a_port_tells_its_switches();
    return check_failures != 0;
}
