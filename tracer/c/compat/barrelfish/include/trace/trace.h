/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Barrelfish's tracing interface (Technical Note 8) over the rings of Lateralis.
 *
 *     trace_control(TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0),
 *                   TRACE_EVENT(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_STOP, 0), 0);
 *     trace_event(TRACE_SUBSYS_XMPL, TRACE_EVENT_XMPL_START, 0);
 *     …
 *     trace_flush(NOP_CONT);
 *
 * An event is stored twice, both under the control of triggers: in a ring of its thread, for trace_dump and
 * trace_flush, and in the rings of `lat record` while it records. A program that never calls trace_control
 * keeps no events itself, and a recorder gets all of them.
 *
 * Numbers and names of events come from your trace_defs.pleco:
 *     lat pleco gen --c trace_definitions/trace_defs.h trace_defs.pleco
 * Compile trace.c with the program, both with -DLAT_LEGACY_NAMES, and link the tracer.
 * What differs from the original: README.md.
 *
 * Context: trace_event… any thread, any signal handler or interrupt; all others: any thread.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <barrelfish/barrelfish.h>
#include <trace_definitions/trace_defs.h>

#ifndef TRACE_NUM_SUBSYSTEMS
#error "compile with -DLAT_LEGACY_NAMES, so that trace_defs.h has TRACE_SUBSYS_… and TRACE_EVENT_…"
#endif
#ifdef __cplusplus
extern "C" {
#endif

/** These differ from the numbers in Barrelfish's own error table. */
#define TRACE_ERR_NO_BUFFER ((errval_t)0x7ace01)
#define TRACE_ERR_SUBSYS_DISABLED ((errval_t)0x7ace02)
/** The original has no such error: it does not check numbers. */
#define TRACE_ERR_NO_SUBSYS ((errval_t)0x7ace03)

/** Capacity of the table of applications. */
#ifdef LAT_SMALL
#define TRACE_MAX_APPLICATIONS 16
#else
#define TRACE_MAX_APPLICATIONS 128
#endif

/** An event as one word: subsystem, event, argument. */
#define TRACE_EVENT(subsystem, event, argument)                                                 \
    ((uint64_t)(subsystem) << 48 | (uint64_t)(event) << 32 | (uint32_t)(argument))
/** TRACE(XMPL, START, 0) */
#define TRACE(subsystem, event, argument)                                                       \
    trace_event(TRACE_SUBSYS_##subsystem, TRACE_EVENT_##subsystem##_##event, (argument))

/* ---- events ------------------------------------------------------------------------------------ */

extern bool trace_subsys_is_enabled[TRACE_NUM_SUBSYSTEMS];
/* Whether an event of a disabled subsystem may be a trigger. */
extern uint8_t trace_is_watching;

/** Records an event whose numbers are checked against the definitions only. For messages the top byte is
 * 0xEA (sent) or 0xEB (received), and bits 12 to 55 are the channel. */
errval_t trace_event_raw(uint64_t raw);
errval_t trace_event_if_trigger(uint64_t raw);

/** Records an event of a subsystem. @return TRACE_ERR_SUBSYS_DISABLED, or TRACE_ERR_NO_BUFFER after
 * trace_disable_domain. */
static inline errval_t trace_event(uint16_t subsystem, uint16_t event, uint32_t argument)
{
    const uint64_t raw = TRACE_EVENT(subsystem, event, argument);
    if (subsystem < TRACE_NUM_SUBSYSTEMS &&
        !*(volatile const bool *)&trace_subsys_is_enabled[subsystem]) {
        /* Unlike the original, an event of a disabled subsystem still starts and stops tracing. */
        return *(volatile const uint8_t *)&trace_is_watching != 0 ? trace_event_if_trigger(raw)
                                                                  : TRACE_ERR_SUBSYS_DISABLED;
    }
    return trace_event_raw(raw);
}

/** All subsystems are enabled initially. */
errval_t trace_set_subsys_enabled(uint16_t subsystem, bool enabled);
errval_t trace_set_all_subsys_enabled(bool enabled);

/* ---- control ------------------------------------------------------------------------------------ */

/**
 * Keeps events from `start_trigger`, which is compared with the whole event, until `stop_trigger` or until
 * `duration` ticks of the processor's counter have passed; 0 is unlimited. Both triggers are kept
 * too.
 */
errval_t trace_control(uint64_t start_trigger, uint64_t stop_trigger, uint64_t duration);
/** Like trace_control, and also stops after `event_counter` events were kept. */
errval_t trace_control_fixed_events_counter(uint64_t start_trigger, uint64_t stop_trigger,
                                            uint64_t duration, uint64_t event_counter);
/** Waits until tracing has stopped; returns at once if it was never controlled. */
errval_t trace_wait(void);
/** Number of events kept for a core. */
size_t trace_get_event_count(coreid_t core);
/** If tracing until a number of events has stopped, or if forced, writes a dump to the output of trace_flush
    and ends the program. */
void trace_conditional_termination(bool forced);

errval_t trace_init(void);
/** Stops recording in this program for good. */
errval_t trace_disable_domain(void);
/** Discards the events kept for this core, or for all. */
void trace_reset_buffer(void);
void trace_reset_all(void);
/** Does nothing: buffers of other cores and of children need no preparation here. */
errval_t trace_setup_on_core(struct capref *buffer);
errval_t trace_setup_child(struct cnoderef task, dispatcher_handle_t handle);
errval_t trace_my_setup(void);

/** Calls `callback`. There is nothing to prepare: all cores share one clock here. */
errval_t trace_prepare(struct event_closure callback);

/* ---- applications -------------------------------------------------------------------------------- */

/** Adds an application to the table, or renames it. `dcb` is the argument of its context switches, of
    which 32 bits are compared. @return TRACE_ERR_NO_BUFFER if the table is full. */
errval_t trace_new_application(const char *name, uintptr_t dcb);
void trace_new_boot_application(const char *name, uintptr_t dcb);

/* ---- reading back --------------------------------------------------------------------------------- */

/**
 * Writes the kept events of all cores as text and discards them; events that do not fit stay for the next
 * call. The text ends with NUL. `number_of_events` may be NULL. @return bytes of text.
 */
size_t trace_dump(char *buffer, size_t bytes, int *number_of_events);
/** Like trace_dump for one core. Writes at `*used_bytes` of the buffer and advances it; starts with the
    header lines of a dump if `first_dump`. Each pointer but the buffer may be NULL. */
size_t trace_dump_core(char *buffer, size_t bytes, size_t *used_bytes, int *number_of_events, coreid_t core,
                       bool first_dump, bool is_self);
/** Events dropped because the ring of their thread was full; the original does not count them. */
uint64_t trace_dropped(void);

/** Dumps to the output, then calls `callback`. */
void trace_flush(struct event_closure callback);
/** Output of trace_flush. Default: standard output, or none without an operating system. */
extern void (*trace_flush_output)(const char *text, size_t bytes);
/** On Linux, a thread flushes once a second while enabled, as bfscope does; elsewhere this does nothing. */
void trace_set_autoflush(bool enabled);

#ifdef __cplusplus
}
#endif

#endif
