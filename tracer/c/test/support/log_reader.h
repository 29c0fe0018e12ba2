// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Prints format-string events as a reader of the trace would: from the schema's text alone. */
#ifndef TEST_LOG_READER_H
#define TEST_LOG_READER_H

#include "area_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct log_reader {
    struct reader reader;
    char schema[64];
    const char *text;
    uint32_t text_bytes, base, count;
    /* One per record, in the order of time: a thread that migrated wrote into two rings. */
    char lines[65536];
    struct {
        uint64_t time;
        size_t at; /* where it begins */
    } line[2048];
    unsigned line_count;
    char names[4096];  /* names of the events, in order */
};

/* The line of event `index`: `event NAME "…" (…) format,`. */
static inline int log_event(const struct log_reader *log, uint32_t index, char *line, size_t size)
{
    const char *at = log->text, *end = log->text + log->text_bytes;
    while (at < end) {
        const char *newline = (const char *)memchr(at, '\n', (size_t)(end - at));
        const size_t length = (size_t)((newline != NULL ? newline : end) - at);
        if (strncmp(at, "event ", 6) == 0 && index-- == 0) {
            snprintf(line, size, "%.*s", (int)length, at);
            return 1;
        }
        at += length + 1;
    }
    return 0;
}

static inline size_t log_align(size_t at, size_t size)
{
    return (at + size - 1) / size * size;
}

/* Unescapes the literal at `at`; returns the position after it. */
static inline const char *log_literal(const char *at, char *out)
{
    for (at++; *at != 0 && *at != '"'; at++) {
        if (*at != '\\') {
            *out++ = *at;
        } else if (*++at == 'x') {
            char *rest;
            const unsigned long c = strtoul(at + 1, &rest, 16);
            at = rest - 1;
            if (c < 0x80) {
                *out++ = (char)c;
            } else { /* these tests use nothing beyond U+07FF */
                *out++ = (char)(0xc0 | c >> 6);
                *out++ = (char)(0x80 | (c & 0x3f));
            }
        } else if (*at != '&') {
            *out++ = *at == 'n' ? '\n' : *at == 't' ? '\t' : *at == 'r' ? '\r' : *at;
        }
    }
    *out = 0;
    return at + (*at == '"');
}

/* Prints one record; without `out` it only measures. @return bytes of the payload. */
static inline size_t log_print(const char *line, const uint8_t *payload, size_t left, char *out,
                               size_t size)
{
    char format[2048];
    const char *field = log_literal(strchr(line, '"'), format);
    const char *at = format;
    size_t used = 0, offset = 0;
    field = strchr(field, '(') + 1;
    while (*at != 0 || *field != ')') {
        char conversion[32], type[16];
        if (*at != 0 && (*at != '%' || at[1] == '%')) {
            if (used + 1 < size)
                out[used++] = *at;
            at += *at == '%' ? 2 : 1;
            continue;
        }
        const size_t length = *at == 0 ? 0 : strcspn(at, "diuxXocspfFeEgGaA") + 1;
        if (length == 0 || *field == ')' || length > 20)
            return SIZE_MAX; /* conversions and fields do not match */
        if (sscanf(field, "%*[^:]: %15[a-z0-9]", type) != 1)
            return SIZE_MAX;
        field += strcspn(field, ",)");
        field += *field == ',' ? 2 : 0;
        const char letter = at[length - 1];
        const size_t digits = strcspn(at, "hljztLq");
        snprintf(conversion, sizeof conversion, "%.*s",
                 (int)(digits < length - 1 ? digits : length - 1), at);
        at += length;
        const size_t room = out != NULL && size > used ? size - used : 0;
        char *to = out != NULL ? out + used : NULL;
        int wrote = 0;
        if (strcmp(type, "string") == 0) {
            const size_t end = strnlen((const char *)payload + offset, left - offset);
            strcat(conversion, "s");
            wrote = snprintf(to, room, conversion, (const char *)payload + offset);
            offset += end + 1;
        } else if (type[0] == 'f') {
            const size_t bytes = type[1] == '3' ? 4 : 8;
            double value;
            float small;
            offset = log_align(offset, bytes);
            if (offset + bytes > left)
                return SIZE_MAX;
            memcpy(&value, payload + offset, bytes);
            memcpy(&small, payload + offset, 4);
            if (bytes == 4)
                value = (double)small;
            snprintf(conversion + strlen(conversion), 2, "%c", letter);
            wrote = snprintf(to, room, conversion, value);
            offset += bytes;
        } else {
            const int is_bool = strcmp(type, "bool") == 0;
            const size_t bytes = is_bool ? 1 : (size_t)atoi(type + 1) / 8;
            uint64_t value = 0;
            offset = log_align(offset, bytes);
            if (offset + bytes > left)
                return SIZE_MAX;
            memcpy(&value, payload + offset, bytes);
            offset += bytes;
            if (type[0] == 'i') /* sign */
                value = (uint64_t)((int64_t)(value << (64 - 8 * bytes)) >> (64 - 8 * bytes));
            if (letter == 'p') {
                wrote = snprintf(to, room, "%p", (void *)(uintptr_t)value);
            } else if (letter == 'c') {
                strcat(conversion, "c");
                wrote = snprintf(to, room, conversion, (int)value);
            } else {
                const int is_signed = letter == 'd' || letter == 'i';
                if (!is_signed && type[0] == 'i' && bytes < 8) /* printed as an int of its size */
                    value &= (UINT64_C(1) << 8 * (bytes < 4 ? 4 : bytes)) - 1;
                snprintf(conversion + strlen(conversion), 4, "ll%c", letter);
                wrote = snprintf(to, room, conversion, (unsigned long long)value);
            }
        }
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (out != NULL && used < size)
        out[used] = 0;
    return offset;
}

/** A reader's `size`. */
static inline size_t log_size(void *context, uint32_t id, const uint8_t *payload, size_t left)
{
    const struct log_reader *log = (const struct log_reader *)context;
    char line[4096];
    if (id < log->base || !log_event(log, id - log->base, line, sizeof line))
        return SIZE_MAX;
    return log_print(line, payload, left, NULL, 0);
}

/* Inserts a line at its position. Lines without room in the tables are left out, and missed later. */
static inline void log_insert(struct log_reader *log, uint64_t time, const char *text)
{
    const size_t length = strlen(text), used = strlen(log->lines);
    unsigned place = log->line_count;
    if (used + length >= sizeof log->lines || place == sizeof log->line / sizeof log->line[0])
        return;
    while (place > 0 && log->line[place - 1].time > time)
        place--;
    const size_t at = place == log->line_count ? used : log->line[place].at;
    memmove(log->lines + at + length, log->lines + at, used - at + 1);
    memcpy(log->lines + at, text, length);
    for (unsigned i = log->line_count++; i > place; i--) {
        log->line[i] = log->line[i - 1];
        log->line[i].at += length;
    }
    log->line[place].time = time;
    log->line[place].at = at;
}

/** A reader's `visit`. */
static inline void log_visit(void *context, const struct record *record)
{
    struct log_reader *log = (struct log_reader *)context;
    char line[4096], text[4096], name[64];
    if (record->id < LAT_INTERNAL_EVENT_COUNT ||
        !log_event(log, record->id - log->base, line, sizeof line))
        return;
    log_print(line, record->payload, record->bytes, text, sizeof text - 1);
    strcat(text, "\n");
    log_insert(log, record->time, text);
    if (sscanf(line, "event %63s", name) == 1 &&
        strlen(log->names) + strlen(name) + 2 < sizeof log->names) {
        strcat(log->names, name);
        strcat(log->names, " ");
    }
}

/** Opens the area of a directory for its schema `log_OBJECT`. */
static inline int log_open(struct log_reader *log, const char *directory, const char *schema)
{
    memset(log, 0, sizeof *log);
    snprintf(log->schema, sizeof log->schema, "%s", schema);
    if (!reader_find(&log->reader, directory))
        return 0;
    log->base = reader_schema(&log->reader, schema, &log->count, &log->text, &log->text_bytes);
    log->reader.visit = log_visit;
    log->reader.size = log_size;
    log->reader.context = log;
    return log->base != 0;
}

#endif
