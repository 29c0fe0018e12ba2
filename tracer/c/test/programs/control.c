// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Control of recording: enable bytes changed from outside, patterns, and triggers on exact events
 * (spec/ring-abi.md §7). The traced program receives its commands through a mapped file.
 */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/tests.h"
#include "../support/traced_drain.h"

#include <lat/clock.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>

/* ---- the traced program -------------------------------------------------------------- */

struct step {
    char event; /* 'o' ONE, 'e' EMPTY, 't' TEXT, 'f' FIRST, 's' SECOND, 'q' end */
    uint64_t value;
};
struct desk {
    volatile uint32_t asked, done;
    struct step step;
};

static struct desk *open_desk(const char *path)
{
    const int file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, sizeof(struct desk)) != 0)
        return NULL;
    void *map = mmap(NULL, sizeof(struct desk), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return map != MAP_FAILED ? (struct desk *)map : NULL;
}

static int obey(const char *path)
{
    struct desk *desk = open_desk(path);
    char text[32];
    /* On one CPU: rings are read one after the other, and the order is checked. */
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    if (desk == NULL || sched_setaffinity(0, sizeof here, &here) != 0)
        return 1;
    for (uint32_t next = 1;; next++) {
        while (__atomic_load_n(&desk->asked, __ATOMIC_ACQUIRE) != next)
            usleep(20);
        const uint64_t value = desk->step.value;
        switch (desk->step.event) {
        case 'o':
            lat_t_one(value);
            break;
        case 'e':
            lat_t_empty();
            break;
        case 't':
            snprintf(text, sizeof text, "text %u", (unsigned)value);
            lat_t_text(value, text);
            break;
        case 'f':
            lat_other_first((uint32_t)value);
            break;
        case 's':
            lat_other_second((uint32_t)value);
            break;
        default:
            return 0;
        }
        __atomic_store_n(&desk->done, next, __ATOMIC_RELEASE);
    }
}

/* ---- the recorder's side ----------------------------------------------------------------- */

enum { ONE = 1, TEXT = 6, FIRST = 11, SECOND = 12 };

struct session {
    struct traced traced;
    struct reader reader;
    struct desk *desk;
    char seen[512]; /* "o1 f7 …": the recorded events */
};

static void visit(void *context, const struct record *record)
{
    struct session *session = (struct session *)context;
    const uint32_t event = record->id - session->reader.tests_base;
    uint64_t value = 0;
    char text[24];
    if (record->id < LAT_INTERNAL_EVENT_COUNT)
        return;
    memcpy(&value, record->payload, record->bytes < 8 ? record->bytes : 8);
    snprintf(text, sizeof text, "%s%c%u", session->seen[0] != 0 ? " " : "",
             event == 0 ? 'e' : event == ONE ? 'o' : event == TEXT ? 't' : event == FIRST ? 'f' : 's',
             (unsigned)value);
    strncat(session->seen, text, sizeof session->seen - strlen(session->seen) - 1);
}

static int begin(struct session *session, const char *enable)
{
    char path[200];
    memset(session, 0, sizeof *session);
    traced_make(&session->traced, 65536, 4096, "discard");
    char *patterns = strstr(session->traced.record, "enable=");
    snprintf(patterns, (size_t)(session->traced.record + sizeof session->traced.record - patterns),
             "enable=%s", enable);
    snprintf(path, sizeof path, "%s/desk", session->traced.directory);
    session->desk = open_desk(path);
    traced_start(&session->traced, "obey", path, NULL);
    session->reader.visit = visit;
    if (!CHECK(session->desk != NULL) || !CHECK(find_traced(&session->reader, &session->traced)))
        return 0;
    session->reader.visit = visit;
    session->reader.context = session;
    return 1;
}

static void say(struct session *session, char event, uint64_t value)
{
    session->desk->step.event = event;
    session->desk->step.value = value;
    const uint32_t number = session->desk->asked + 1;
    __atomic_store_n(&session->desk->asked, number, __ATOMIC_RELEASE);
    for (int tries = 0; event != 'q' && tries < 500000; tries++) {
        if (__atomic_load_n(&session->desk->done, __ATOMIC_ACQUIRE) == number)
            return;
        usleep(20);
    }
    CHECK(event == 'q');
}

/* "o1 f7": makes the program record these events. */
static void say_all(struct session *session, const char *script)
{
    for (const char *at = script; *at != 0; at += strcspn(at, " "), at += *at == ' ')
        say(session, *at, strtoull(at + 1, NULL, 10));
}

static void end(struct session *session, const char *name, const char *expected)
{
    if (session->reader.header != NULL) {
        say(session, 'q', 0);
        CHECK_EQUAL(traced_wait(&session->traced), 0);
        reader_drain(&session->reader, 0);
        check(session->reader.problem[0] == 0, "%s", session->reader.problem);
        check(strcmp(session->seen, expected) == 0, "recorded \"%s\" and not \"%s\"", session->seen,
              expected);
        reader_close(&session->reader);
    } else {
        kill(session->traced.pid, SIGKILL);
        traced_wait(&session->traced);
    }
    fact(name);
    traced_remove(&session->traced);
}

static uint8_t *enable_byte(struct session *session, uint32_t event)
{
    return reader_enable_bytes(&session->reader) + session->reader.tests_base + event;
}
static uint8_t *wanted_byte(struct session *session, uint32_t event)
{
    return (uint8_t *)session->reader.header + LAT_AREA_WANTED_OFFSET + session->reader.tests_base +
           event;
}

static void switched_from_outside(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        say_all(&session, "o1 f1 e1 t1");
        *enable_byte(&session, ONE) = LAT_ENABLE_RECORD;
        say_all(&session, "o2 f2");
        *enable_byte(&session, FIRST) = LAT_ENABLE_RECORD;
        *enable_byte(&session, TEXT) = LAT_ENABLE_RECORD;
        say_all(&session, "o3 f3 t3");
        *enable_byte(&session, ONE) = 0;
        say_all(&session, "o4 f4 s4");
    }
    end(&session, "events switched from outside while running", "o2 o3 f3 t3 f4");
}

static void patterns(void)
{
    static const struct {
        const char *enable, *expected;
    } cases[] = {
        {"*", "e0 o1 t2 f3 s4"},   {"t", "e0 o1 t2"},           {"other:*", "f3 s4"},
        {"t:ONE", "o1"},           {"*,!other:SECOND", "e0 o1 t2 f3"}, {"*:?????,!other", "e0"},
        {"t:*T*,other:F*", "e0 t2 f3"}, {"!t,t:ONE,nothing", "o1"}, {"", ""},
        {"other,!other:*,other:*D", "s4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct session session;
        char name[96];
        snprintf(name, sizeof name, "pattern \"%s\"", cases[i].enable);
        if (begin(&session, cases[i].enable))
            say_all(&session, "e0 o1 t2 f3 s4");
        end(&session, name, cases[i].expected);
    }
}

/* ---- triggers ---------------------------------------------------------------------------------- */

/* Arms a trigger as a recorder does: conditions, wanted bytes, enable bytes to WATCH, state last. */
static struct lat_area_trigger *arm(struct session *session, uint32_t event, uint64_t value)
{
    struct lat_area_trigger *trigger = &session->reader.header->trigger;
    trigger->start_flags = LAT_TRIGGER_MATCH_EVENT | LAT_TRIGGER_MATCH_VALUE;
    trigger->start_event = session->reader.tests_base + event;
    trigger->start_value = value;
    trigger->start_mask = 0xffffffff;
    *wanted_byte(session, ONE) = LAT_ENABLE_RECORD;
    *wanted_byte(session, SECOND) = LAT_ENABLE_RECORD;
    return trigger;
}
static void go(struct session *session)
{
    struct lat_area_trigger *trigger = &session->reader.header->trigger;
    __atomic_store_n(&trigger->state, LAT_TRIGGER_ARMED, __ATOMIC_RELEASE);
    *enable_byte(session, trigger->start_event - session->reader.tests_base) = LAT_ENABLE_WATCH;
}
static void stop_on(struct session *session, uint32_t event, uint64_t value)
{
    struct lat_area_trigger *trigger = &session->reader.header->trigger;
    trigger->stop_flags = LAT_TRIGGER_MATCH_EVENT | LAT_TRIGGER_MATCH_VALUE;
    trigger->stop_event = session->reader.tests_base + event;
    trigger->stop_value = value;
    trigger->stop_mask = UINT64_MAX;
}
static void check_done(struct session *session)
{
    const struct lat_area_trigger *trigger = &session->reader.header->trigger;
    CHECK_EQUAL(trigger->state, LAT_TRIGGER_DONE);
    CHECK(trigger->started_at != 0 && trigger->stopped_at >= trigger->started_at);
    for (uint32_t i = 0; i < 13; i++)
        CHECK_EQUAL(*enable_byte(session, i), 0);
}

static void start_and_stop(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        arm(&session, FIRST, 7); /* FIRST itself stays disabled: not wanted */
        stop_on(&session, SECOND, 9);
        go(&session);
        say_all(&session, "o1 f5 s9 o2");
        CHECK_EQUAL(session.reader.header->trigger.state, LAT_TRIGGER_ARMED);
        say_all(&session, "f7 o3 f8 s3 o4 s9 o5 f7 s9");
        check_done(&session);
    }
    end(&session, "start and stop on exact events of a disabled subsystem", "f7 o3 s3 o4 s9");
}

static void stop_on_disabled_event(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        arm(&session, FIRST, 7);
        stop_on(&session, TEXT, 9); /* not wanted either, and built by pieces */
        go(&session);
        say_all(&session, "f7 o1 t8 o2 t9 o3");
        check_done(&session);
    }
    end(&session, "stop on an event that is not recorded otherwise", "f7 o1 o2 t9");
}

static void counted(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        arm(&session, FIRST, 1)->count = 3;
        go(&session);
        say_all(&session, "o0 f1 o1 f2 s2 o3 o4");
        CHECK_EQUAL(session.reader.header->trigger.counted, 3);
        check_done(&session);
    }
    end(&session, "a count of events", "f1 o1 s2");
}

static void counted_or_stopped(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        arm(&session, FIRST, 1)->count = 100;
        stop_on(&session, SECOND, 5);
        go(&session);
        say_all(&session, "f1 o1 s5 o2");
        check_done(&session);
    }
    end(&session, "a count that a stop event forestalls", "f1 o1 s5");
}

static uint64_t ticks_per_second(void)
{
    const uint64_t before = lat_i_clock();
    usleep(100000);
    return (lat_i_clock() - before) * 10;
}

static void timed(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        struct lat_area_trigger *trigger = arm(&session, FIRST, 1);
        trigger->duration = ticks_per_second();
        go(&session);
        say_all(&session, "f1 o1");
        CHECK_EQUAL(trigger->state, LAT_TRIGGER_RUNNING);
        usleep(1200000);
        say_all(&session, "o2");
        check_done(&session);
        say_all(&session, "o3");
        CHECK(trigger->stopped_at - trigger->started_at > trigger->duration);
    }
    end(&session, "a duration", "f1 o1");
}

static void start_on_text(void)
{
    struct session session;
    if (begin(&session, "!*")) {
        arm(&session, TEXT, 3);
        go(&session);
        say_all(&session, "t1 o1 t3 o2 t3");
        CHECK_EQUAL(session.reader.header->trigger.state, LAT_TRIGGER_RUNNING);
    }
    end(&session, "start on an event with a string", "t3 o2");
}

int main(int count, char **arguments)
{
    if (count > 1)
        return obey(arguments[2]);
    switched_from_outside();
    patterns();
    start_and_stop();
    stop_on_disabled_event();
    counted();
    counted_or_stopped();
    timed();
    start_on_text();
    return check_status();
}
