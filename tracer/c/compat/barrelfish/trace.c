/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of <trace/trace.h> that is compiled once: triggers, kept events and their text form. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <trace/trace.h>

/* This file uses none of the program's event numbers. */
#undef LAT_LEGACY_NAMES
#include "barrelfish_events.h"

#define LOCAL_LOG_WORDS 1
#ifndef LOCAL_LOG_SLOTS
#ifdef LAT_SMALL
#define LOCAL_LOG_SLOTS 64u
#else
#define LOCAL_LOG_SLOTS 32768u
#endif
#endif
#include "../common/local_log.h"

/* ---- the program's definitions -------------------------------------------------------------------- */

/* Position of each event in the schema, by its numbers. The text of the schema is in the program and in
 * canonical form: one definition or event a line (spec/schema-language.md §9.1). */
#ifndef EVENTS_MAX
#define EVENTS_MAX 1024u
#endif
static struct {
    uint32_t numbers; /* subsystem << 16 | event */
    uint16_t index;   /* in the schema */
    uint16_t is_u32;  /* one field of 32 bits: trace_event can fill no other */
} events[EVENTS_MAX];
static uint32_t event_count;
/* First event of each subsystem, and whether the numbers of its events are positions. */
static struct {
    uint16_t first;
    uint16_t count;
} subsystems[TRACE_NUM_SUBSYSTEMS];

bool trace_subsys_is_enabled[TRACE_NUM_SUBSYSTEMS];
static uint8_t definitions_are_read; /* set by a constructor, or by trace_init before other cores record */

static const char *past_word(const char *at)
{
    while (*at != ' ' && *at != '\n' && *at != ',' && *at != 0)
        at++;
    while (*at == ' ')
        at++;
    return at;
}
static const char *past_string(const char *at)
{
    if (*at != '"')
        return at;
    for (at++; *at != '"' && *at != 0; at++)
        if (*at == '\\' && at[1] != 0)
            at++;
    if (*at != 0)
        at++;
    while (*at == ' ')
        at++;
    return at;
}
static const char *read_id(const char *at, uint32_t *id)
{
    if (at[0] != '=')
        return at;
    for (at++; *at == ' '; at++) {
    }
    for (*id = 0; *at >= '0' && *at <= '9'; at++)
        *id = *id * 10u + (uint32_t)(*at - '0');
    while (*at == ' ')
        at++;
    return at;
}
static int begins(const char *at, const char *word)
{
    while (*word != 0)
        if (*at++ != *word++)
            return 0;
    return 1;
}
/* Whether the fields are one integer of 32 bits. Canonical text omits `arg: u32`. */
static int is_one_u32(const char *at)
{
    if (*at != '(')
        return 1;
    while (*at != ':' && *at != ')' && *at != 0)
        at++;
    if (!begins(at, ": u32") && !begins(at, ": i32"))
        return 0;
    while (*at != ')' && *at != ',' && *at != 0)
        at++;
    return *at == ')';
}

static void read_definitions(const char *text)
{
    uint32_t subsystem = UINT32_MAX, event = UINT32_MAX, index = 0;
    for (const char *at = text; *at != 0;) {
        if (begins(at, "subsystem ")) {
            subsystem++;
            event = UINT32_MAX;
            at = read_id(past_string(past_word(past_word(at))), &subsystem);
        } else if (begins(at, "event ")) {
            event++;
            at = read_id(past_string(past_word(past_word(at))), &event);
            if (event_count < EVENTS_MAX) {
                events[event_count].numbers = subsystem << 16 | (event & 0xffffu);
                events[event_count].index = (uint16_t)index;
                events[event_count].is_u32 = (uint16_t)is_one_u32(at);
                if (subsystem < TRACE_NUM_SUBSYSTEMS) {
                    if (subsystems[subsystem].count == 0)
                        subsystems[subsystem].first = (uint16_t)event_count;
                    subsystems[subsystem].count++;
                }
                event_count++;
            }
            index++;
        }
        /* Strings of canonical text have no line ends. */
        while (*at != '\n' && *at != 0)
            at++;
        if (*at == '\n')
            at++;
    }
}

#ifdef LAT_SMALL
#define DEFINITIONS (LAT_SCHEMA(trace_defs)->text)
#else
#define DEFINITIONS (lat_schema_trace_defs.text)
#endif

/* Runs before the program's own constructors, and before the registration of schemas, which may discard
   the text. */
static void set_up(void)
{
    if (definitions_are_read)
        return;
    read_definitions(DEFINITIONS);
    for (unsigned i = 0; i < TRACE_NUM_SUBSYSTEMS; i++)
        trace_subsys_is_enabled[i] = true;
    definitions_are_read = 1;
}
#ifndef LAT_SMALL
static __attribute__((constructor(199))) void set_up_early(void)
{
    set_up();
}
#endif

/* Index of the event in `events`, or -1. */
static int event_at(uint32_t subsystem, uint32_t event)
{
    const uint32_t numbers = subsystem << 16 | event;
    if (subsystem < TRACE_NUM_SUBSYSTEMS && event < subsystems[subsystem].count) {
        const uint32_t at = subsystems[subsystem].first + event;
        if (events[at].numbers == numbers)
            return (int)at;
    }
    for (uint32_t at = 0; at < event_count; at++)
        if (events[at].numbers == numbers)
            return (int)at;
    return -1;
}

/* ---- events for a recorder --------------------------------------------------------------------------- */

/* Changes a word if it is `from`. A single core without an operating system may lack such an instruction. */
static int change(uint32_t *word, uint32_t from, uint32_t to)
{
#if defined(LAT_SMALL) && LAT_PORT_CORES == 1
    const lat_port_mask_t before = lat_port_mask();
    const int is_from = *word == from;
    if (is_from)
        *word = to;
    lat_port_unmask(before);
    return is_from;
#else
    return __atomic_compare_exchange_n(word, &from, to, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
#endif
}

static struct application {
    uint64_t dcb;
    char name[8]; /* not NUL-terminated if all 8 are used */
    uint32_t is_used; /* pair B2: trace_new_application, readers */
} applications[TRACE_MAX_APPLICATIONS];

static const struct application *application_of(uint32_t dcb)
{
    for (unsigned i = 0; i < TRACE_MAX_APPLICATIONS; i++)
        if (__atomic_load_n(&applications[i].is_used, __ATOMIC_ACQUIRE) && /* pair B2 */
            (uint32_t)applications[i].dcb == dcb)
            return &applications[i];
    return NULL;
}

static void copy_name(char *out, const struct application *application)
{
    unsigned length = 0;
    while (application != NULL && length < 8 && application->name[length] != 0) {
        out[length] = application->name[length];
        length++;
    }
    out[length] = 0;
}

/* The core of the record is known only after this; a thread that migrates in between appears on both
   cores. */
static void record_switch(uint32_t dcb)
{
    char name[9] = "idle";
    uint32_t core;
    if (!lat_dispatcher_run_enabled())
        return;
    (void)local_now(&core);
    if (dcb != 0)
        copy_name(name, application_of(dcb));
    lat_dispatcher_run(core, dcb, name);
}

#define RAW_SEND 0xeau
#define RAW_RECEIVE 0xebu
#define RAW_CHANNEL UINT64_C(0x00fffffffffff000)

static void record_defined(uint32_t index, uint32_t argument)
{
    LAT_SITE(lat_schema_trace_defs, index, on);
    lat_i_emit1(&lat_schema_trace_defs, on, index, 4u, LAT_I_PACK((uint64_t)argument, 0u, 32u));
}

static void record(uint64_t raw)
{
    const uint32_t subsystem = (uint32_t)(raw >> 48), event = (uint32_t)(raw >> 32) & 0xffffu;
    /* The top byte precedes the subsystem; 0xEA00 is no subsystem. */
    if (raw >> 56 == RAW_SEND) {
        lat_ump_send(raw & RAW_CHANNEL);
        return;
    }
    if (raw >> 56 == RAW_RECEIVE) {
        lat_ump_receive(raw & RAW_CHANNEL);
        return;
    }
    const int at = event_at(subsystem, event);
    if (at < 0 || !events[at].is_u32) {
        lat_tracing_other(raw);
        return;
    }
#if defined(TRACE_SUBSYS_KERNEL) && defined(TRACE_EVENT_KERNEL_CSWITCH)
    if (subsystem == TRACE_SUBSYS_KERNEL && event == TRACE_EVENT_KERNEL_CSWITCH)
        record_switch((uint32_t)raw);
#endif
    record_defined(events[at].index, (uint32_t)raw);
}

/* ---- triggers ------------------------------------------------------------------------------------------ */

enum {
    NEVER_CONTROLLED, /* no event is kept, all are recorded */
    ARMED,
    STARTING, /* one thread has seen the trigger */
    RUNNING,
    STOPPED
};
/* `state` is written last and read first: pair B3, between trace_control and the events. */
static struct {
    uint32_t state;
    uint32_t is_disabled;
    uint32_t run;
    uint64_t start_trigger;
    uint64_t stop_trigger;
    uint64_t duration;
    uint64_t stop_time;
    uint64_t started_at;
    size_t events_wanted; /* 0: any number */
    size_t events_kept;
} control = {.stop_time = UINT64_MAX};
uint8_t trace_is_watching;

/* @return the count including this event. */
static size_t count_event(void)
{
#if defined(LAT_SMALL) && LAT_PORT_CORES == 1
    const lat_port_mask_t before = lat_port_mask();
    const size_t count = ++control.events_kept;
    lat_port_unmask(before);
    return count;
#else
    return __atomic_add_fetch(&control.events_kept, 1, __ATOMIC_RELAXED);
#endif
}

static void stop(uint64_t raw)
{
    if (change(&control.state, RUNNING, STOPPED)) { /* pair B3 */
        trace_is_watching = 0;
        lat_tracing_stop(control.run, raw);
    }
}

static void start(uint64_t raw)
{
    uint64_t time;
    if (!change(&control.state, ARMED, STARTING)) /* pair B3 */
        return;
    lat_tracing_start(control.run, raw);
    record(raw);
    (void)local_log_put(&raw, 1, &time);
    control.started_at = time;
    control.events_kept = 1;
    if (control.duration != 0)
        control.stop_time = time + control.duration;
    __atomic_store_n(&control.state, RUNNING, __ATOMIC_RELEASE); /* pair B3 */
    if (control.events_wanted == 1)
        stop(raw);
}

static void keep(uint64_t raw)
{
    uint64_t time;
    record(raw);
    const int is_kept = local_log_put(&raw, 1, &time);
    if (raw == control.stop_trigger || time > control.stop_time)
        stop(raw);
    else if (control.events_wanted != 0 && is_kept &&
             count_event() >= control.events_wanted)
        stop(raw);
}

errval_t trace_event_raw(uint64_t raw)
{
    if (LAT_I_UNLIKELY(control.is_disabled != 0))
        return TRACE_ERR_NO_BUFFER;
    switch (__atomic_load_n(&control.state, __ATOMIC_ACQUIRE)) { /* pair B3 */
    case NEVER_CONTROLLED:
        record(raw);
        break;
    case ARMED:
        if (raw == control.start_trigger)
            start(raw);
        break;
    case RUNNING:
        keep(raw);
        break;
    default:
        break;
    }
    return SYS_ERR_OK;
}

errval_t trace_event_if_trigger(uint64_t raw)
{
    const uint32_t state = __atomic_load_n(&control.state, __ATOMIC_ACQUIRE); /* pair B3 */
    if ((state == ARMED && raw == control.start_trigger) ||
        (state == RUNNING && raw == control.stop_trigger))
        return trace_event_raw(raw);
    return TRACE_ERR_SUBSYS_DISABLED;
}

errval_t trace_control_fixed_events_counter(uint64_t start_trigger, uint64_t stop_trigger,
                                            uint64_t duration, uint64_t event_counter)
{
    set_up();
    __atomic_store_n(&control.state, STOPPED, __ATOMIC_RELEASE); /* pair B3 */
    control.run++;
    control.stop_trigger = stop_trigger;
    control.duration = duration;
    control.events_wanted = (size_t)event_counter;
    control.events_kept = 0;
    control.stop_time = UINT64_MAX;
    control.start_trigger = start_trigger;
    trace_is_watching = 1;
    __atomic_store_n(&control.state, ARMED, __ATOMIC_RELEASE); /* pair B3 */
    return SYS_ERR_OK;
}

errval_t trace_control(uint64_t start_trigger, uint64_t stop_trigger, uint64_t duration)
{
    return trace_control_fixed_events_counter(start_trigger, stop_trigger, duration, 0);
}

errval_t trace_wait(void)
{
    for (;;) {
        const uint32_t state = __atomic_load_n(&control.state, __ATOMIC_ACQUIRE); /* pair B3 */
        uint32_t core;
        if (state == NEVER_CONTROLLED || state == STOPPED)
            return SYS_ERR_OK;
        /* In the original, only an event notices that the deadline has passed. */
        if (state == RUNNING && local_now(&core) > control.stop_time)
            stop(0);
#ifndef LAT_SMALL
        sched_yield();
#endif
    }
}

errval_t trace_set_subsys_enabled(uint16_t subsystem, bool enabled)
{
    set_up();
    if (subsystem >= TRACE_NUM_SUBSYSTEMS)
        return TRACE_ERR_NO_SUBSYS;
    *(volatile bool *)&trace_subsys_is_enabled[subsystem] = enabled;
    return SYS_ERR_OK;
}

errval_t trace_set_all_subsys_enabled(bool enabled)
{
    for (uint16_t i = 0; i < TRACE_NUM_SUBSYSTEMS; i++)
        (void)trace_set_subsys_enabled(i, enabled);
    return SYS_ERR_OK;
}

errval_t trace_init(void)
{
    set_up();
#ifndef LAT_SMALL
    return local_ring_mine() != NULL ? SYS_ERR_OK : TRACE_ERR_NO_BUFFER;
#else
    return SYS_ERR_OK;
#endif
}

errval_t trace_disable_domain(void)
{
    control.is_disabled = 1;
    return SYS_ERR_OK;
}

errval_t trace_setup_on_core(struct capref *buffer)
{
    (void)buffer;
    return SYS_ERR_OK;
}

errval_t trace_setup_child(struct cnoderef task, dispatcher_handle_t handle)
{
    (void)task;
    (void)handle;
    return SYS_ERR_OK;
}

errval_t trace_my_setup(void)
{
    return SYS_ERR_OK;
}

errval_t trace_prepare(struct event_closure callback)
{
    if (callback.handler != NULL)
        callback.handler(callback.arg);
    return SYS_ERR_OK;
}

/* ---- applications
   ---------------------------------------------------------------------------------------- */

errval_t trace_new_application(const char *name, uintptr_t dcb)
{
    char shown[9];
    for (unsigned i = 0; i < TRACE_MAX_APPLICATIONS; i++) {
        struct application *application = &applications[i];
        if (application->is_used == 1 && application->dcb != dcb)
            continue;
        /* 2 means being written. Two threads that add at the same time get two entries. */
        if (application->is_used != 1 && !change(&application->is_used, 0, 2))
            continue;
        application->dcb = dcb;
        for (unsigned at = 0, ended = 0; at < sizeof application->name; at++) {
            ended |= name[at] == 0;
            application->name[at] = ended ? 0 : name[at];
            if (ended)
                name = "\0\0\0\0\0\0\0";
        }
        __atomic_store_n(&application->is_used, 1, __ATOMIC_RELEASE); /* pair B2 */
        copy_name(shown, application);
        lat_dispatcher_application(dcb, shown);
        return SYS_ERR_OK;
    }
    return TRACE_ERR_NO_BUFFER;
}

void trace_new_boot_application(const char *name, uintptr_t dcb)
{
    (void)trace_new_application(name, dcb);
}

/* ---- what is kept, core by core
   --------------------------------------------------------------------------- */

#ifdef LAT_SMALL

#define CORES LAT_PORT_CORES
static void dump_begin(void)
{
    local_read_begin();
}
static void dump_end(void)
{
    local_read_end();
}
/* The oldest event of a core. */
static const struct local_event *core_first(uint32_t core)
{
    return local_ring_head(&local_rings[core]);
}
static void core_take(uint32_t core)
{
    __atomic_store_n(&local_rings[core].taken, local_rings[core].taken + 1, __ATOMIC_RELEASE); /* pair L2 */
}
static size_t core_count(uint32_t core)
{
    return (size_t)(local_rings[core].claimed - local_rings[core].taken);
}

#else

#include <stdio.h>
#include <stdlib.h>

/* A thread runs on many cores, so the content of the rings is first sorted by core and time. Under
   `dumping`. */
#define CORES 256u
static pthread_mutex_t dumping = PTHREAD_MUTEX_INITIALIZER;
static struct local_event *kept;
static size_t kept_count, kept_room;
static size_t kept_from[CORES + 1]; /* first of each core */
static size_t kept_taken[CORES];

static int by_core_and_time(const void *a, const void *b)
{
    const struct local_event *left = (const struct local_event *)a, *right = (const struct local_event *)b;
    if (left->core != right->core)
        return left->core < right->core ? -1 : 1;
    return left->time < right->time ? -1 : left->time > right->time;
}

static void dump_begin(void)
{
    struct local_event event;
    size_t left = 0;
    pthread_mutex_lock(&dumping);
    for (uint32_t core = 0; core < CORES; core++)
        for (size_t at = kept_from[core] + kept_taken[core]; at < kept_from[core + 1]; at++)
            kept[left++] = kept[at];
    kept_count = left;
    for (;;) {
        if (kept_count == kept_room) {
            const size_t room = kept_room == 0 ? 4096 : 2 * kept_room;
            struct local_event *const more = (struct local_event *)realloc(kept, room * sizeof *more);
            if (more == NULL)
                break; /* the rest stays in the rings */
            kept = more;
            kept_room = room;
        }
        if (!local_log_read(&event, 1))
            break;
        event.core %= CORES;
        kept[kept_count++] = event;
    }
    if (kept_count != 0)
        qsort(kept, kept_count, sizeof *kept, by_core_and_time);
    size_t at = 0;
    for (uint32_t core = 0; core < CORES; core++) {
        kept_from[core] = at;
        kept_taken[core] = 0;
        while (at < kept_count && kept[at].core == core)
            at++;
    }
    kept_from[CORES] = at;
}
static void dump_end(void)
{
    pthread_mutex_unlock(&dumping);
}
static const struct local_event *core_first(uint32_t core)
{
    const size_t at = kept_from[core] + kept_taken[core];
    return at < kept_from[core + 1] ? &kept[at] : NULL;
}
static void core_take(uint32_t core)
{
    kept_taken[core]++;
}
static size_t core_count(uint32_t core)
{
    return kept_from[core + 1] - kept_from[core] - kept_taken[core];
}

#endif

size_t trace_get_event_count(coreid_t core)
{
    const uint32_t number = core;
    size_t count = 0;
    dump_begin();
    if (number < CORES)
        count = core_count(number);
    dump_end();
    return count;
}

uint64_t trace_dropped(void)
{
    return local_log_dropped();
}

void trace_reset_all(void)
{
    dump_begin();
    for (uint32_t core = 0; core < CORES; core++)
        while (core_first(core) != NULL)
            core_take(core);
    dump_end();
}

void trace_reset_buffer(void)
{
    uint32_t core;
    (void)local_now(&core);
    dump_begin();
    while (core < CORES && core_first(core) != NULL)
        core_take(core);
    dump_end();
}

/* ---- the text
   ------------------------------------------------------------------------------------------------ */

/* A line that does not fit is left out of the buffer as a whole; one byte is reserved for the NUL. */
struct text {
    char *buffer;
    size_t bytes, used;
    char line[128]; /* the longest has three numbers of 20 digits, and 62 other characters */
    uint32_t length;
};

static void put_text(struct text *text, const char *string)
{
    while (*string != 0 && text->length < sizeof text->line)
        text->line[text->length++] = *string++;
}
static void put_number(struct text *text, uint64_t number, unsigned base)
{
    char digits[20]; /* of 2^64 */
    unsigned count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number != 0);
    while (count != 0 && text->length < sizeof text->line)
        text->line[text->length++] = digits[--count];
}
/* @return whether there was room for the line. */
static int put_end(struct text *text)
{
    put_text(text, "\n");
    const int fits = text->bytes - text->used > text->length;
    for (uint32_t i = 0; fits && i < text->length; i++)
        text->buffer[text->used++] = text->line[i];
    text->length = 0;
    return fits;
}

static int put_head(struct text *text)
{
    uint64_t least = UINT64_MAX;
    put_text(text, "# Start ");
    put_number(text, control.started_at, 10);
    put_text(text, " Duration ");
    put_number(text, control.duration, 10);
    put_text(text, " Stop ");
    put_number(text, control.stop_time, 10);
    if (!put_end(text))
        return 0;
    for (uint32_t core = 0; core < CORES; core++) {
        const struct local_event *first = core_first(core);
        if (first != NULL && first->time < least)
            least = first->time;
    }
    put_text(text, "# Min_timestamp ");
    put_number(text, least, 10);
    return put_end(text);
}

static int put_core(struct text *text, uint32_t core)
{
    put_text(text, "# Core ");
    put_number(text, core, 10);
    put_text(text, " LOG DUMP ");
    put_text(text, "==================================================");
    if (!put_end(text))
        return 0;
    put_text(text, "# Offset "); /* one clock for all cores */
    put_number(text, core, 10);
    put_text(text, " 0");
    if (!put_end(text))
        return 0;
    for (unsigned i = 0; i < TRACE_MAX_APPLICATIONS; i++) {
        char name[9];
        if (__atomic_load_n(&applications[i].is_used, __ATOMIC_ACQUIRE) != 1) /* pair B2 */
            continue;
        copy_name(name, &applications[i]);
        put_text(text, "# DCB ");
        put_number(text, core, 10);
        put_text(text, " ");
        put_number(text, applications[i].dcb, 16);
        put_text(text, " ");
        put_text(text, name);
        if (!put_end(text))
            return 0;
    }
    return 1;
}

/* @return whether all events of the core were written. */
static int put_events(struct text *text, uint32_t core, int *count)
{
    const struct local_event *event;
    while ((event = core_first(core)) != NULL) {
        put_number(text, core, 10);
        put_text(text, " ");
        put_number(text, event->time, 10);
        put_text(text, " ");
        put_number(text, event->words[0], 16);
        if (!put_end(text))
            return 0;
        core_take(core);
        (*count)++;
    }
    return 1;
}

size_t trace_dump_core(char *buffer, size_t bytes, size_t *used_bytes, int *number_of_events, coreid_t core,
                       bool first_dump, bool is_self)
{
    struct text text = {buffer, bytes, used_bytes != NULL ? *used_bytes : 0, {0}, 0};
    const size_t before = text.used;
    const uint32_t number = core;
    int count = 0;
    (void)is_self;
    if (text.used >= bytes || number >= CORES)
        return 0;
    dump_begin();
    if ((!first_dump || put_head(&text)) && core_first(number) != NULL && put_core(&text, number))
        (void)put_events(&text, number, &count);
    dump_end();
    buffer[text.used] = 0;
    if (used_bytes != NULL)
        *used_bytes = text.used;
    if (number_of_events != NULL)
        *number_of_events = count;
    return text.used - before;
}

size_t trace_dump(char *buffer, size_t bytes, int *number_of_events)
{
    struct text text = {buffer, bytes, 0, {0}, 0};
    int count = 0;
    if (number_of_events != NULL)
        *number_of_events = 0;
    if (bytes == 0)
        return 0;
    dump_begin();
    int goes_on = put_head(&text);
    for (uint32_t core = 0; goes_on && core < CORES; core++)
        if (core_first(core) != NULL)
            goes_on = put_core(&text, core) && put_events(&text, core, &count);
    dump_end();
    buffer[text.used] = 0;
    if (number_of_events != NULL)
        *number_of_events = count;
    return text.used;
}

/* ---- flushing
   --------------------------------------------------------------------------------------------------- */

#ifdef LAT_SMALL

void (*trace_flush_output)(const char *text, size_t bytes);

/* On the stack of the caller: the lines of 16 applications take 800 bytes. */
#define FLUSH_BYTES 2048u

void trace_flush(struct event_closure callback)
{
    char buffer[FLUSH_BYTES];
    int count = 1;
    while (trace_flush_output != NULL && count != 0) {
        const size_t bytes = trace_dump(buffer, sizeof buffer, &count);
        if (count != 0)
            trace_flush_output(buffer, bytes);
    }
    if (callback.handler != NULL)
        callback.handler(callback.arg);
}

void trace_set_autoflush(bool enabled)
{
    (void)enabled;
}

void trace_conditional_termination(bool forced)
{
    if (!forced && (control.events_wanted == 0 || control.state != STOPPED))
        return;
    trace_flush(NOP_CONT);
    for (;;) {
    }
}

#else

#include <time.h>

static void write_to_stdout(const char *text, size_t bytes)
{
    fwrite(text, 1, bytes, stdout);
    fflush(stdout);
}
void (*trace_flush_output)(const char *text, size_t bytes) = write_to_stdout;

/* The size of a dump to Barrelfish's console. */
#define FLUSH_BYTES (2u << 20)

/* @param empty whether to write a dump without events too. */
static void flush(int empty)
{
    static pthread_mutex_t flushing = PTHREAD_MUTEX_INITIALIZER;
    char *const buffer = (char *)malloc(FLUSH_BYTES);
    int count;
    if (buffer == NULL)
        return;
    pthread_mutex_lock(&flushing);
    do {
        const size_t bytes = trace_dump(buffer, FLUSH_BYTES, &count);
        if (count != 0 || empty)
            trace_flush_output(buffer, bytes);
        empty = 0;
    } while (count != 0);
    pthread_mutex_unlock(&flushing);
    free(buffer);
}

void trace_flush(struct event_closure callback)
{
    flush(1);
    if (callback.handler != NULL)
        callback.handler(callback.arg);
}

static uint8_t autoflush_is_on;
static void *autoflush(void *argument)
{
    const struct timespec period = {1, 0};
    (void)argument;
    for (;;) {
        nanosleep(&period, NULL);
        if (__atomic_load_n(&autoflush_is_on, __ATOMIC_RELAXED))
            flush(0);
    }
    return NULL;
}

/* The child of a fork does not inherit this thread. */
static void autoflush_begin(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, autoflush, NULL) == 0)
        pthread_detach(thread);
}

void trace_set_autoflush(bool enabled)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    __atomic_store_n(&autoflush_is_on, enabled, __ATOMIC_RELAXED);
    if (enabled)
        pthread_once(&once, autoflush_begin);
}

void trace_conditional_termination(bool forced)
{
    if (!forced && (control.events_wanted == 0 || control.state != STOPPED))
        return;
    flush(1);
    abort();
}

#endif
