/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A program that uses Barrelfish's tracing as a user would: two threads that exchange messages over a UMP
 * channel, lock a mutex and are switched between, traced from xmpl:START to xmpl:STOP.
 *
 *     example DUMP
 *
 * Prints each event that must be kept and recorded, `R RAW`, in the order of its thread. Failed checks are
 * printed on lines that begin with `wrong`. The dump is written to the file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <barrelfish/barrelfish.h>
#include <trace/trace.h>
#include <trace_definitions/trace_defs.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGES 200u
#define MUTEX 0x60c950u
#define CHANNEL(number) (UINT64_C(0xffff8000a0b000) + (uint64_t)(number) * 0x1000u)

static int wrongs;
static void check(int holds, const char *what)
{
    if (!holds) {
        printf("wrong: %s\n", what);
        wrongs++;
    }
}

static void said(uint64_t raw)
{
    flockfile(stdout);
    printf("R %ld %llx\n", syscall(SYS_gettid), (unsigned long long)raw);
    funlockfile(stdout);
}
static void expect(uint16_t subsystem, uint16_t event, uint32_t argument)
{
    check(err_is_ok(trace_event(subsystem, event, argument)), "trace_event failed");
    said(TRACE_EVENT(subsystem, event, argument));
}
static void expect_raw(uint64_t raw)
{
    check(err_is_ok(trace_event_raw(raw)), "trace_event_raw failed");
    said(raw);
}

/* A channel of one message: full or empty. */
static volatile uint32_t mailbox[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *dispatcher(void *argument)
{
    const uint32_t me = (uint32_t)(uintptr_t)argument;
    for (uint32_t i = 1; i <= MESSAGES; i++) {
        expect(TRACE_SUBSYS_KERNEL, TRACE_EVENT_KERNEL_CSWITCH, me == 0 ? 0x02656c00u : 0x02656800u);
        if (me == 0) {
            expect_raw(UINT64_C(0xea) << 56 | CHANNEL(0));
            __atomic_store_n(&mailbox[0], i, __ATOMIC_RELEASE);
            while (__atomic_load_n(&mailbox[1], __ATOMIC_ACQUIRE) != i)
                sched_yield();
            expect_raw(UINT64_C(0xeb) << 56 | CHANNEL(1));
        } else {
            while (__atomic_load_n(&mailbox[0], __ATOMIC_ACQUIRE) != i)
                sched_yield();
            expect_raw(UINT64_C(0xeb) << 56 | CHANNEL(0));
            expect_raw(UINT64_C(0xea) << 56 | CHANNEL(1));
            __atomic_store_n(&mailbox[1], i, __ATOMIC_RELEASE);
        }
        expect(TRACE_SUBSYS_THREADS, TRACE_EVENT_THREADS_MUTEX_LOCK_ENTER, MUTEX);
        pthread_mutex_lock(&lock);
        expect(TRACE_SUBSYS_THREADS, TRACE_EVENT_THREADS_MUTEX_LOCK_LEAVE, MUTEX);
        expect(TRACE_SUBSYS_MEMSERV, TRACE_EVENT_MEMSERV_ALLOC, i);
        expect(TRACE_SUBSYS_THREADS, TRACE_EVENT_THREADS_MUTEX_UNLOCK, MUTEX);
        pthread_mutex_unlock(&lock);
        expect(TRACE_SUBSYS_KERNEL, TRACE_EVENT_KERNEL_CSWITCH, 0);
        /* Must not be recorded. */
        check(trace_event(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV2, i) == TRACE_ERR_SUBSYS_DISABLED,
              "an event of a disabled subsystem");
    }
    return NULL;
}

static void done(void *argument)
{
    ++*(int *)argument;
}

static FILE *dump;
static void to_file(const char *text, size_t bytes)
{
    check(fwrite(text, 1, bytes, dump) == bytes, "the dump is written");
}

static void to_nothing(const char *text, size_t bytes)
{
    (void)text;
    (void)bytes;
}

static size_t kept(void)
{
    size_t count = 0;
    for (unsigned core = 0; core < 256; core++)
        count += trace_get_event_count((coreid_t)core);
    return count;
}

/* Events are kept from the start trigger to the stop trigger. */
static void triggers(void)
{
    static char text[1 << 16];
    const uint64_t one = TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV1, 1);
    const uint64_t two = TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV1, 2);
    int events = -1;

    check(err_is_ok(trace_control(one, two, 0)), "trace_control");
    TRACE(XMPL, EV2, 1); /* before the start trigger */
    TRACE(XMPL, EV1, 3); /* the argument differs: no trigger */
    check(kept() == 0, "kept before the trigger");
    expect_raw(one);
    expect_raw(one);
    expect(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV2, 9);
    expect_raw(two);
    TRACE(XMPL, EV2, 10); /* after the stop trigger */
    check(err_is_ok(trace_wait()), "trace_wait");
    check(kept() == 4, "from trigger to trigger");
    check(trace_dump(text, 200, &events) < 200 && strlen(text) < 200 && events < 4, "a small buffer");
    int more = -1;
    const size_t bytes = trace_dump(text, sizeof text, &more);
    check(events + more == 4 && strlen(text) == bytes, "the rest of the dump");
    check(kept() == 0, "nothing is left after a dump");

    /* By time: the first event after the deadline is kept and stops tracing. */
    const struct timespec pause = {0, 20000000};
    check(err_is_ok(trace_control(one, 0, 1)), "trace_control");
    expect_raw(one);
    nanosleep(&pause, NULL);
    check(err_is_ok(trace_wait()), "trace_wait notices the time without an event");
    TRACE(XMPL, EV2, 11);
    check(kept() == 1, "by time");
    trace_reset_all();

    /* By count. An event of a disabled subsystem still starts tracing. */
    check(err_is_ok(trace_set_subsys_enabled(TRACE_SUBSYS_XMPL, false)), "disabled");
    check(err_is_ok(trace_control_fixed_events_counter(one, 0, 0, 3)), "trace_control_fixed");
    expect(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV1, 1);
    check(trace_event(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_EV1, 5) == TRACE_ERR_SUBSYS_DISABLED, "disabled");
    for (uint32_t i = 0; i < 2; i++)
        expect(TRACE_SUBSYS_MEMSERV, TRACE_EVENT_MEMSERV_ALLOC, i);
    TRACE(MEMSERV, ALLOC, 100);
    check(kept() == 3, "by count");
    fflush(stdout);
    const pid_t child = fork();
    int status = 0;
    if (child == 0) {
        trace_conditional_termination(false);
        _exit(0);
    }
    check(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
          "trace_conditional_termination ends the program after the events that were counted");
    trace_control(one, two, 0);
    trace_conditional_termination(false); /* no count was set: the program continues */

    /* Flushed once a second without a call, however long that takes. */
    check(err_is_ok(trace_set_all_subsys_enabled(true)), "enabled");
    trace_reset_all();
    trace_set_autoflush(true);
    expect_raw(one);
    expect_raw(two);
    for (unsigned i = 0; i < 2000 && kept() != 0; i++)
        nanosleep(&pause, NULL);
    check(kept() == 0, "autoflush");
    trace_set_autoflush(false);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    int called = 0;
    char text[8];
    if (argc != 2 || (dump = fopen(argv[1], "w")) == NULL)
        return 2;
    trace_flush_output = to_file;
    check(err_is_ok(trace_init()), "trace_init");
    check(err_is_ok(trace_prepare(MKCLOSURE(done, &called))) && called == 1, "trace_prepare");
    check(err_is_ok(trace_new_application("xmpl-trace", 0xffffff8002656c00u)), "an application");
    trace_new_boot_application("spawnd", 0xffffff8002656800u);
    check(trace_set_subsys_enabled(TRACE_NUM_SUBSYSTEMS, true) == TRACE_ERR_NO_SUBSYS, "no such subsystem");
    check(trace_dump(text, 0, NULL) == 0 && trace_dump(text, 1, NULL) == 0, "no room for a dump");

    /* From START to STOP of the example, whose own subsystem has only those two. */
    check(err_is_ok(trace_control(TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0),
                                  TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_STOP, 0), 0)),
          "trace_control");
    expect(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0);
    expect(TRACE_SUBSYS_XMPL, 77, 1); /* a number that is not in the definitions */
    check(err_is_ok(trace_set_subsys_enabled(TRACE_SUBSYS_XMPL, false)), "disabled");
    for (uintptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, dispatcher, (void *)i);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    check(err_is_ok(trace_set_all_subsys_enabled(true)), "enabled");
    expect(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_STOP, 0);
    check(err_is_ok(trace_wait()), "trace_wait");
    trace_flush(MKCLOSURE(done, &called));
    check(called == 2, "trace_flush calls back");
    fclose(dump);
    trace_flush_output = to_nothing;
    printf("first run\n");

    triggers();
    check(trace_dropped() == 0, "dropped");
    struct capref buffer = {{0}, 0};
    check(err_is_ok(trace_my_setup()) && err_is_ok(trace_setup_on_core(&buffer)) &&
              err_is_ok(trace_setup_child(buffer.cnode, 0)),
          "what needs no preparation");
    check(err_is_ok(trace_disable_domain()), "trace_disable_domain");
    check(err_is_ok(trace_set_all_subsys_enabled(true)) && TRACE(XMPL, EV1, 1) == TRACE_ERR_NO_BUFFER,
          "trace_event after trace_disable_domain");
    check(trace_event_raw(0) == TRACE_ERR_NO_BUFFER, "after trace_disable_domain");
    return wrongs != 0;
}
