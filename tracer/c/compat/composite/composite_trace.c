/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of <composite_trace.h> that is compiled once: the events kept in the program, and their CSV. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "composite_trace.h"

#include "composite_events.h"

/* A format and a count, then the arguments. */
#define LOCAL_LOG_WORDS (2 + NARGS)
#ifndef LOCAL_LOG_SLOTS
#ifdef LAT_SMALL
#define LOCAL_LOG_SLOTS 64u
#else
#define LOCAL_LOG_SLOTS 65536u
#endif
#endif
#include "../common/local_log.h"

int composite_trace_with_formats;
static volatile int is_kept;

void composite_trace_init(void)
{
    is_kept = 1;
#ifndef LAT_SMALL
    local_ring_mine(); /* maps it now rather than in the first event */
#endif
}

bool composite_trace_keep(const char *format, int nargs, const unsigned long *args)
{
    uint64_t words[LOCAL_LOG_WORDS], time;
    if (!is_kept || nargs < 0 || nargs > NARGS)
        return false;
    words[0] = (uintptr_t)format;
    words[1] = (uint64_t)nargs;
    for (int i = 0; i < nargs; i++)
        words[2 + i] = args[i];
    return local_log_put(words, 2u + (uint32_t)nargs, &time) != 0;
}

void composite_trace_record_any(const char *format, int nargs, const unsigned long *args)
{
    uint64_t words[NARGS];
    if (nargs < 0 || nargs > NARGS || !lat_composite_trace_enabled())
        return;
    for (int i = 0; i < nargs; i++)
        words[i] = args[i];
    lat_composite_trace(format, words, (uint32_t)nargs);
}

const struct trace_event *composite_trace_next(bool take)
{
#ifdef LAT_SMALL
    static struct trace_event found;
#else
    static __thread struct trace_event found;
#endif
    struct local_event event;
    if (!local_log_read(&event, take))
        return NULL;
    found.format = (const char *)(uintptr_t)event.words[0];
    found.nargs = (int)event.words[1];
    found.time_stamp = event.time;
    found.cpuid = event.core;
    found.thd_id = event.thread;
    for (int i = 0; i < NARGS; i++)
        found.args[i] = i < found.nargs ? (unsigned long)event.words[2 + i] : 0;
    return &found;
}

uint64_t composite_trace_dropped(void)
{
    return local_log_dropped();
}

/* ---- CSV ---------------------------------------------------------------------------------------- */

struct line {
    char *at;
    char *end;
    int is_full;
};

static void put(struct line *line, char c)
{
    if (line->at == line->end)
        line->is_full = 1;
    else
        *line->at++ = c;
}

static void put_number(struct line *line, uint64_t number)
{
    char digits[20]; /* of 2^64 */
    unsigned count = 0;
    do {
        digits[count++] = (char)('0' + number % 10u);
        number /= 10u;
    } while (number != 0);
    while (count != 0)
        put(line, digits[--count]);
}

/* A format may contain commas and quotes, so it is quoted as RFC 4180 specifies. */
static void put_quoted(struct line *line, const char *text)
{
    put(line, '"');
    for (; *text != 0; text++) {
        if (*text == '"')
            put(line, '"');
        put(line, *text);
    }
    put(line, '"');
}

uint32_t composite_trace_line(const struct trace_event *event, bool with_format, char *bytes, uint32_t size)
{
    struct line line = {bytes, bytes + size, 0};
    put_number(&line, event->time_stamp);
    put(&line, ',');
    put_number(&line, event->cpuid);
    put(&line, ',');
    put_number(&line, event->thd_id);
    put(&line, ',');
    put(&line, ' ');
    put_number(&line, (uint64_t)event->nargs);
    for (int i = 0; i < event->nargs; i++) {
        put(&line, ',');
        put_number(&line, event->args[i]);
    }
    if (with_format) {
        put(&line, ',');
        put_quoted(&line, event->format);
    }
    put(&line, '\n');
    return line.is_full ? 0 : (uint32_t)(line.at - bytes);
}

#ifndef LAT_SMALL

#include <stdio.h>
#include <stdlib.h>

/* Four numbers of at most 20 digits, as many arguments as NARGS, and separators. */
#define NUMBERS_BYTES ((4u + NARGS) * 22u)

long composite_trace_output(const char *path, const char *mode)
{
    FILE *const file = fopen(path, mode);
    const struct trace_event *event;
    char *bytes = NULL;
    uint32_t size = 0;
    long written = 0;
    int error = 0;
    if (file == NULL)
        return -1;
    if (composite_trace_with_formats && fseek(file, 0, SEEK_END) == 0 && ftell(file) == 0 &&
        fputs("timestamp,cpuid,thd_id,nargs,args,format\n", file) < 0)
        error = errno;
    while (error == 0 && (event = composite_trace_next(true)) != NULL) {
        const uint32_t needed = NUMBERS_BYTES + (uint32_t)(2u * strlen(event->format)) + 4u;
        if (needed > size) {
            char *const larger = (char *)realloc(bytes, needed);
            if (larger == NULL) {
                error = ENOMEM;
                break;
            }
            bytes = larger;
            size = needed;
        }
        const uint32_t length = composite_trace_line(event, composite_trace_with_formats != 0, bytes, size);
        if (fwrite(bytes, 1, length, file) != length) {
            error = errno;
            break;
        }
        written++;
    }
    free(bytes);
    if (fclose(file) != 0 && error == 0)
        error = errno;
    if (error != 0) {
        errno = error;
        return -1;
    }
    return written;
}

#endif
