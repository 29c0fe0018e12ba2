/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The tracer of Composite (five macros, a format string and words), over the rings of Lateralis.
 *
 *     unsigned long args[NARGS] = {page, frame};
 *     TRACE_INIT();
 *     ENQUEUE_TRACE("page %lu into frame %lu", 2, args);
 *     OUTPUT_TRACE("trace.csv");
 *
 * An event is stored twice. From TRACE_INIT() on it goes into a ring of this thread, which DEQUEUE_TRACE,
 * PEEK_TRACE, OUTPUT_TRACE and APPEND_TRACE read. It also goes to `lat record` while that records, which
 * needs no preparation. The program formats nothing: both store the words, and a reader makes the
 * text.
 *
 * Compile composite_trace.c with the program, and link the tracer. What differs from the original: README.md.
 */
#ifndef COMPOSITE_TRACE_H
#define COMPOSITE_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef LAT_SMALL
#include <lat/lat.h>
#else
#include <lat/log.h>
#endif

#ifdef __cplusplus
#error "composite_trace.h is for C, as its original: in C++ use LAT_LOG of <lat/log.h>"
#endif

/** Maximum number of arguments of an event; must be the same in all files of a program. */
#ifndef NARGS
#define NARGS 10
#endif
_Static_assert(NARGS >= 1 && NARGS <= 10, "1 to 10 arguments");

/** An event as DEQUEUE_TRACE returns it. */
struct trace_event {
    unsigned long args[NARGS];
    const char *format;
    uint64_t time_stamp; /* ticks of the processor's counter */
    uint32_t cpuid;
    uint32_t thd_id;
    int nargs;
};

/** Starts keeping events in the program. Before this call ENQUEUE_TRACE returns false. */
#define TRACE_INIT() composite_trace_init()

/**
 * Records an event: `format` a string literal, `nargs` words of `args`. Evaluates each once.
 * @return whether it was kept in the program: false before TRACE_INIT, if nargs is not 0 to NARGS, and if the
 * ring of this thread is full, which is counted. Recording by a recorder does not depend on this.
 */
#define ENQUEUE_TRACE(format, nargs, args) COMPOSITE_ENQUEUE(format, nargs, args)

/** Removes and returns the oldest event; NULL if there is none. Valid until this thread dequeues or peeks
    again. */
#define DEQUEUE_TRACE() composite_trace_next(true)
/** Like DEQUEUE_TRACE, but leaves the event in the ring; the original has no such call. */
#define PEEK_TRACE() composite_trace_next(false)

/** Removes all events and writes them as lines of CSV; `file` is a path. @return their number, or -1 and
    errno. */
#define OUTPUT_TRACE(file) composite_trace_output((file), "w")
#define APPEND_TRACE(file) composite_trace_output((file), "a")

/** Whether OUTPUT_TRACE and APPEND_TRACE write a header line first (into an empty file), and the format,
 * quoted, as the last column. Default 0: the columns of the original. */
extern int composite_trace_with_formats;

/** Events dropped because the ring of their thread was full; the original does not count them. */
uint64_t composite_trace_dropped(void);

void composite_trace_init(void);
bool composite_trace_keep(const char *format, int nargs, const unsigned long *args);
const struct trace_event *composite_trace_next(bool take);
/** Writes an event as a line of CSV into `line`. @return its length, or 0 if `bytes` is too small. */
uint32_t composite_trace_line(const struct trace_event *event, bool with_format, char *line, uint32_t bytes);
long composite_trace_output(const char *file, const char *mode);

/** Records an event of composite.pleco, with its format as text. */
void composite_trace_record_any(const char *format, int nargs, const unsigned long *args);

#ifdef LAT_SMALL

#define COMPOSITE_ENQUEUE(format, nargs, args)                                                  \
    (__extension__({                                                                            \
        const unsigned long *composite_args_ = (args);                                          \
        const int composite_nargs_ = (nargs);                                                   \
        composite_trace_record_any("" format, composite_nargs_, composite_args_);               \
        composite_trace_keep("" format, composite_nargs_, composite_args_);                     \
    }))

#else

/* Types of `count` words: LAT_I_LOG_I64 is 8, four bits each, eight of them in a word. They are signed, so
   that %d shows negative words; %u, %x and similar conversions show all 64 bits of either. */
_Static_assert(LAT_I_LOG_I64 == 8, "as in COMPOSITE_TYPES");
#define COMPOSITE_TYPES(count)                                                                  \
    (0x88888888u & ((count) >= 8 ? 0xffffffffu : (1u << (((count) & 7) * 4)) - 1u))
/* The count if it is a compile-time constant, else -1. */
#define COMPOSITE_COUNT(nargs)                                                                  \
    __builtin_choose_expr(__builtin_constant_p(nargs), (nargs), -1)
#define COMPOSITE_PLACE_COUNT(nargs)                                                            \
    (COMPOSITE_COUNT(nargs) < 0 || COMPOSITE_COUNT(nargs) > NARGS ? 0 : COMPOSITE_COUNT(nargs))

/* Writes all words of `a` as one record. `count` is a constant, so one case of the switch remains. */
static LAT_INLINE void composite_trace_emit(const struct lat_i_format *place, unsigned on, int count,
                                            const unsigned long *a)
{
    const struct lat_schema event = {place->enabled, place->id, 1, 0, NULL, NULL, 0, 1};
    const struct lat_schema *const s = &event;
    switch (count) {
    case 0: lat_i_emit0(s, on, 0, 0); break;
    case 1: lat_i_emit1(s, on, 0, 8, a[0]); break;
    case 2: lat_i_emit2(s, on, 0, 16, a[0], a[1]); break;
    case 3: lat_i_emit3(s, on, 0, 24, a[0], a[1], a[2]); break;
    case 4: lat_i_emit4(s, on, 0, 32, a[0], a[1], a[2], a[3]); break;
    case 5: lat_i_emit5(s, on, 0, 40, a[0], a[1], a[2], a[3], a[4]); break;
    case 6: lat_i_emit6(s, on, 0, 48, a[0], a[1], a[2], a[3], a[4], a[5]); break;
    case 7: lat_i_emit7(s, on, 0, 56, a[0], a[1], a[2], a[3], a[4], a[5], a[6]); break;
    case 8: lat_i_emit8(s, on, 0, 64, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]); break;
    case 9:
        lat_i_emit9(s, on, 0, 72, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8]);
        break;
    default:
        lat_i_emit10(s, on, 0, 80, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]);
        break;
    }
}

#define COMPOSITE_ENQUEUE(format, nargs, args)                                                  \
    (__extension__({                                                                            \
        const struct lat_i_format *composite_place_;                                            \
        const unsigned long *composite_args_ = (args);                                          \
        const int composite_nargs_ = (nargs);                                                   \
        LAT_I_FORMAT_HERE(composite_place_, format,                                             \
                          COMPOSITE_TYPES(COMPOSITE_PLACE_COUNT(nargs)),                        \
                          COMPOSITE_TYPES(COMPOSITE_PLACE_COUNT(nargs) > 8                      \
                                              ? COMPOSITE_PLACE_COUNT(nargs) - 8                \
                                              : 0));                                            \
        if (COMPOSITE_COUNT(nargs) >= 0 && COMPOSITE_COUNT(nargs) <= NARGS) {                   \
            const unsigned composite_on_ = lat_i_log_on(composite_place_);                      \
            if (LAT_I_UNLIKELY(composite_on_ != 0))                                             \
                composite_trace_emit(composite_place_, composite_on_,                           \
                                     COMPOSITE_PLACE_COUNT(nargs), composite_args_);            \
        } else {                                                                                \
            composite_trace_record_any("" format, composite_nargs_, composite_args_);           \
        }                                                                                       \
        composite_trace_keep("" format, composite_nargs_, composite_args_);                     \
    }))

#endif

#endif
