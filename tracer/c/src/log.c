// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Registration of format-string events (include/lat/log.h): all call sites of one object become one
 * schema, `log_OBJECT`, whose text is made here, because only the linker has seen all of them.
 *
 * A site that the compiler duplicated (inlining, templates, unrolled loops) is one event: equal
 * file, line, format and types. Different events on the same line get a number each.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core.h"
#include "log_text.h"
#include "maps.h"
#include "register.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NAME_BYTES 96u

/* Temporary memory of registration besides the text; one mapping, unmapped at the end. */
struct work {
    uint64_t bytes;
    uint32_t table_mask;
    uint32_t event_count;
    uint32_t *events; /* hash table of places: number of the descriptor + 1, first of its event */
    uint32_t *names;  /* hash table of names: event number + 1 */
    uint32_t *index;  /* event number of each descriptor */
    char (*name)[NAME_BYTES];
    struct lat_i_text text;
};

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}
#define HASH_START UINT64_C(0xcbf29ce484222325)

static int work_begin(struct work *work, uint32_t count)
{
    uint32_t table = 16;
    while (table < 2 * count)
        table *= 2;
    const uint64_t tables = (uint64_t)table * 2 * sizeof(uint32_t);
    const uint64_t indices = (uint64_t)count * sizeof(uint32_t);
    const uint64_t names = (uint64_t)count * NAME_BYTES;
    work->bytes = tables + indices + names + LAT_AREA_HEAP_BYTES;
    char *memory = (char *)mmap(NULL, work->bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return 0;
    work->table_mask = table - 1;
    work->event_count = 0;
    work->events = (uint32_t *)(void *)memory;
    work->names = work->events + table;
    work->index = work->names + table;
    work->name = (char(*)[NAME_BYTES])(void *)(memory + tables + indices);
    work->text.start = memory + tables + indices + names;
    work->text.used = 0;
    work->text.size = LAT_AREA_HEAP_BYTES;
    work->text.overflowed = 0;
    return 1;
}

/* ---- names ---------------------------------------------------------------------- */

static int is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Name of a file without folder and extensions, at most `most` characters, valid in pleco. */
static void stem(char *name, const char *path, size_t most)
{
    const char *base = strrchr(path, '/');
    base = base != NULL ? base + 1 : path;
    size_t length = 0;
    /* Names in pleco begin with a letter. */
    if (!is_name_character(*base) || (*base >= '0' && *base <= '9') || *base == '_')
        name[length++] = 'f';
    for (; *base != 0 && *base != '.' && length < most; base++)
        name[length++] = is_name_character(*base) ? *base : '_';
    name[length] = 0;
}

static char lower_case(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Names must differ in lower case, which the generated functions use. */
static int same_name(const char *a, const char *b)
{
    while (*a != 0 && lower_case(*a) == lower_case(*b))
        a++, b++;
    return *a == 0 && *b == 0;
}

static int claim_name(struct work *work, uint32_t event)
{
    uint64_t hash = HASH_START;
    for (const char *at = work->name[event]; *at != 0; at++) {
        const char c = lower_case(*at);
        hash = hash_bytes(hash, &c, 1);
    }
    for (uint64_t slot = hash;; slot++) {
        uint32_t *entry = &work->names[slot & work->table_mask];
        if (*entry == 0) {
            *entry = event + 1;
            return 1;
        }
        if (same_name(work->name[*entry - 1], work->name[event]))
            return 0;
    }
}

static void name_event(struct work *work, uint32_t event, const struct lat_i_format *place)
{
    char file[64];
    stem(file, lat_i_format_file(place), sizeof file - 2);
    snprintf(work->name[event], NAME_BYTES, "%s_%u", file, (unsigned)place->line);
    for (unsigned number = 2; !claim_name(work, event); number++)
        snprintf(work->name[event], NAME_BYTES, "%s_%u_%u", file, (unsigned)place->line, number);
}

/* ---- events --------------------------------------------------------------------- */

static int same_place(const struct lat_i_format *a, const struct lat_i_format *b)
{
    return a->line == b->line && a->types[0] == b->types[0] && a->types[1] == b->types[1] &&
           strcmp(lat_i_format_text(a), lat_i_format_text(b)) == 0 &&
           strcmp(lat_i_format_file(a), lat_i_format_file(b)) == 0;
}

/* Assigns the event of a descriptor. @return whether it is the event's first. */
static int assign_event(struct work *work, const struct lat_i_format *places, uint32_t number)
{
    const struct lat_i_format *place = &places[number];
    uint64_t hash = hash_bytes(HASH_START, place->types, sizeof place->types);
    hash = hash_bytes(hash, &place->line, sizeof place->line);
    hash = hash_bytes(hash, lat_i_format_text(place), strlen(lat_i_format_text(place)));
    for (uint64_t slot = hash;; slot++) {
        uint32_t *entry = &work->events[slot & work->table_mask];
        if (*entry == 0) {
            *entry = number + 1;
            work->index[number] = work->event_count++;
            return 1;
        }
        if (same_place(&places[*entry - 1], place)) {
            work->index[number] = work->index[*entry - 1];
            return 0;
        }
    }
}

/* ---- the object --------------------------------------------------------------------- */

struct object_name {
    uintptr_t address;
    char *name;
};

static int holds_object(const char *line, void *context)
{
    const struct object_name *wanted = (const struct object_name *)context;
    char *end;
    const unsigned long long begin = strtoull(line, &end, 16);
    const unsigned long long past = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;
    if (wanted->address < begin || wanted->address >= past)
        return 0;
    const char *path = strchr(line, '/');
    stem(wanted->name, path != NULL ? path : "program", 40);
    return 1;
}

static void make_text(struct work *work, const char *name, struct lat_i_format *places,
                      uint32_t count)
{
    lat_i_text_string(&work->text, "schema ");
    lat_i_text_string(&work->text, name);
    lat_i_text_string(&work->text, ";\nsubsystem log {\n");
    for (uint32_t i = 0; i < count; i++) {
        if (!assign_event(work, places, i)) {
            const struct lat_i_text nowhere = {NULL, 0, 0, 0};
            struct lat_i_text unused = nowhere;
            lat_i_format_describe(&unused, &places[i]); /* for its masks */
            continue;
        }
        name_event(work, work->index[i], &places[i]);
        lat_i_text_string(&work->text, "event ");
        lat_i_text_string(&work->text, work->name[work->index[i]]);
        lat_i_text_string(&work->text, " ");
        lat_i_format_describe(&work->text, &places[i]);
        lat_i_text_string(&work->text, ",\n");
    }
    lat_i_text_string(&work->text, "};\n");
}

void lat_i_register_formats(struct lat_i_log_object *object, struct lat_i_format *begin,
                            struct lat_i_format *end)
{
    struct lat_schema *schema = &object->schema;
    struct object_name found;
    struct work work;
    char name[64] = "log_program";
    const int saved_errno = errno;

    /* Constructors of one object run one after the other, so no lock is needed. */
    if (begin == end || schema->registered)
        return;
    lat_i_register_lock();
    lat_i_port_start(0);
    lat_i_register_unlock();
    const uint64_t count = (uint64_t)(end - begin);
    if (lat_i_area.header == NULL || count > LAT_AREA_EVENT_COUNT ||
        !work_begin(&work, (uint32_t)count)) {
        schema->registered = 1;
        if (lat_i_area.header != NULL)
            __atomic_fetch_add(&lat_i_area.header->lost_schemas, 1, __ATOMIC_RELAXED);
        errno = saved_errno;
        return;
    }
    found.address = (uintptr_t)begin; /* in the file, unlike the object's zero-initialised data */
    found.name = name + 4;
    lat_i_maps_each((uint32_t)getpid(), holds_object, &found);
    make_text(&work, name, begin, (uint32_t)count);

    schema->name = name;
    schema->text = work.text.start;
    schema->text_bytes = (uint32_t)work.text.used;
    schema->event_count = work.event_count;
    schema->hash = hash_bytes(HASH_START, work.text.start, work.text.used);
    if (work.text.overflowed)
        schema->text_bytes = LAT_AREA_HEAP_BYTES + 1; /* rejected, and counted */
    lat_register(schema);
    for (uint32_t i = 0; schema->enabled != NULL && i < count; i++) {
        begin[i].id = schema->base_id + work.index[i];
        /* Pair: the data dependency of the place, as in lat_register. */
        __atomic_store_n(&begin[i].enabled, schema->enabled + work.index[i], __ATOMIC_RELEASE);
    }
    schema->name = "log";
    schema->text = "";
    munmap(work.events, work.bytes);
    errno = saved_errno;
}
