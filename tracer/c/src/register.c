// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Registration of schemas: gives each a range of event ids and publishes its text, so
 * that a recorder needs nothing from the program's files. spec/ring-abi.md §2.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "register.h"
#include "area.h"
#include "calls.h"
#include "core.h"
#include "line.h"

#include <errno.h>
#include <string.h>

static uint32_t register_lock;

void lat_i_register_lock(void)
{
    lat_i_lock(&register_lock);
}
void lat_i_register_unlock(void)
{
    lat_i_unlock(&register_lock);
}

/* ---- enable patterns --------------------------------------------------------- */

int lat_i_glob_matches(const char *pattern, size_t pattern_bytes, const char *text,
                       size_t text_bytes)
{
    size_t p = 0, t = 0, star = SIZE_MAX, star_text = 0;
    while (t < text_bytes) {
        if (p < pattern_bytes && (pattern[p] == '?' || pattern[p] == text[t])) {
            p++, t++;
        } else if (p < pattern_bytes && pattern[p] == '*') {
            star = p++;
            star_text = t;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++star_text;
        } else {
            return 0;
        }
    }
    while (p < pattern_bytes && pattern[p] == '*')
        p++;
    return p == pattern_bytes;
}

/* A pattern of a list: `[!]SUBSYSTEM[:EVENT]`. */
struct pattern {
    const char *subsystem, *event, *end; /* `event` is NULL if there is none */
    int excludes;
};

/* Takes the next pattern of a list. @return whether there was one. */
static int next_pattern(const char **list, struct pattern *pattern)
{
    const char *at = *list;
    if (*at == 0)
        return 0;
    pattern->excludes = *at == '!';
    at += pattern->excludes;
    pattern->subsystem = at;
    pattern->event = NULL;
    for (; *at != 0 && *at != ','; at++)
        if (*at == ':' && pattern->event == NULL)
            pattern->event = at + 1;
    pattern->end = at;
    *list = at + (*at == ',');
    return 1;
}

static int matches_subsystem(const struct pattern *pattern, const char *subsystem, size_t bytes)
{
    const char *end = pattern->event != NULL ? pattern->event - 1 : pattern->end;
    return lat_i_glob_matches(pattern->subsystem, (size_t)(end - pattern->subsystem), subsystem, bytes);
}

/* Whether the list enables SUBSYSTEM:EVENT; the last pattern that matches decides. */
static int patterns_enable(const char *list, const char *subsystem, size_t subsystem_bytes,
                           const char *event, size_t event_bytes)
{
    struct pattern pattern;
    int enabled = 0;
    while (next_pattern(&list, &pattern))
        if (matches_subsystem(&pattern, subsystem, subsystem_bytes) &&
            (pattern.event == NULL ||
             lat_i_glob_matches(pattern.event, (size_t)(pattern.end - pattern.event), event,
                                event_bytes)))
            enabled = !pattern.excludes;
    return enabled;
}

int lat_i_patterns_enable_any(const char *list, const char *subsystem)
{
    const size_t bytes = strlen(subsystem);
    struct pattern pattern;
    int enabled = 0;
    while (next_pattern(&list, &pattern))
        if (matches_subsystem(&pattern, subsystem, bytes) &&
            (pattern.event == NULL || !pattern.excludes))
            enabled = !pattern.excludes;
    return enabled;
}

/* Effect of a list on the events of one subsystem. */
enum { NO_EVENT, EVERY_EVENT, BY_NAME };

static int of_subsystem(const char *list, const char *subsystem, size_t bytes)
{
    struct pattern pattern;
    int said = NO_EVENT;
    while (next_pattern(&list, &pattern)) {
        if (!matches_subsystem(&pattern, subsystem, bytes))
            continue;
        const int is_for_all = pattern.event == NULL ||
                               (pattern.end - pattern.event == 1 && *pattern.event == '*');
        said = !is_for_all ? BY_NAME : pattern.excludes ? NO_EVENT : EVERY_EVENT;
    }
    return said;
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '\'';
}

/* Not 0 if one of eight characters is a line end. */
static uint64_t has_line_end(const char *text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, text, sizeof word);
    word ^= ones * '\n';
    return (word - ones) & ~word & ones << 7;
}

/* The end of the line, or of the text. Sixteen characters at a time: a third of set-up was spent here. */
static const char *line_end(const char *text, const char *end)
{
    while (end - text >= 16 && (has_line_end(text) | has_line_end(text + 8)) == 0)
        text += 16;
    return lat_i_find(text, end, '\n');
}

static int begins(const char *text, const char *end, const char *word, size_t bytes)
{
    return (size_t)(end - text) > bytes && memcmp(text, word, bytes) == 0;
}
#define BEGINS(text, end, word) begins(text, end, word, sizeof word - 1)

static void enable_event(uint8_t *enable)
{
    __atomic_store_n(enable, LAT_ENABLE_RECORD, __ATOMIC_RELAXED);
}

static const char *word_end(const char *word, const char *end)
{
    while (word < end && is_word(*word))
        word++;
    return word;
}

/* Sets the enable bytes of a schema's events by the patterns. @return whether each event has a line of its
 * own, as in the canonical text; if not, the bytes are not valid. */
static int enable_by_lines(const char *patterns, const struct lat_schema *schema, uint8_t *enable)
{
    const char *text = schema->text, *end = text + schema->text_bytes;
    const char *subsystem = "";
    size_t subsystem_bytes = 0;
    uint32_t index = 0;
    int said = NO_EVENT;
    for (; text < end; text = line_end(text, end) + 1) {
        if (BEGINS(text, end, "event ")) {
            if (index == schema->event_count)
                return 0;
            const char *name = text + 6;
            if (said == EVERY_EVENT ||
                (said == BY_NAME && patterns_enable(patterns, subsystem, subsystem_bytes, name,
                                                    (size_t)(word_end(name, end) - name))))
                enable_event(&enable[index]);
            index++;
        } else if (BEGINS(text, end, "subsystem ")) {
            subsystem = text + 10;
            subsystem_bytes = (size_t)(word_end(subsystem, end) - subsystem);
            said = of_subsystem(patterns, subsystem, subsystem_bytes);
        }
    }
    return index == schema->event_count;
}

/*
 * Like enable_by_lines, for a text that is not canonical: the words after `subsystem` and `event` outside
 * strings and parentheses are the names, in the order of the event numbers.
 */
static void enable_by_words(const char *patterns, const struct lat_schema *schema, uint8_t *enable)
{
    const char *text = schema->text, *end = text + schema->text_bytes;
    const char *subsystem = "";
    size_t subsystem_bytes = 0;
    uint32_t index = 0, depth = 0;
    int expect = 0; /* 1: subsystem name, 2: event name */
    while (text < end && index < schema->event_count) {
        if (*text == '"') {
            for (text++; text < end && *text != '"'; text++)
                text += *text == '\\';
            text++;
        } else if (is_word(*text)) {
            const char *word = text;
            text = word_end(word, end);
            const size_t bytes = (size_t)(text - word);
            if (expect == 1) {
                subsystem = word;
                subsystem_bytes = bytes;
                expect = 0;
            } else if (expect == 2) {
                if (patterns_enable(patterns, subsystem, subsystem_bytes, word, bytes))
                    enable_event(&enable[index]);
                index++;
                expect = 0;
            } else if (depth == 0 && bytes == 9 && memcmp(word, "subsystem", 9) == 0) {
                expect = 1;
            } else if (depth == 0 && bytes == 5 && memcmp(word, "event", 5) == 0) {
                expect = 2;
            }
        } else {
            depth += *text == '(';
            depth -= *text == ')' && depth != 0;
            text++;
        }
    }
}

/* A terminated copy of the area's patterns, which other processes can change. */
struct patterns {
    char text[sizeof((struct lat_area_header *)NULL)->enable];
};

static void copy_patterns(const struct lat_area_header *header, struct patterns *copy)
{
    memcpy(copy->text, header->enable, sizeof copy->text);
    copy->text[sizeof copy->text - 1] = 0;
}

/* ---- the schema table -------------------------------------------------------- */

static struct lat_area_schema *find_schema(struct lat_area_schema *table, uint64_t hash)
{
    for (uint32_t i = 0; i < LAT_AREA_SCHEMA_COUNT; i++) {
        const uint32_t state = __atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE); /* R2 */
        /* Slots are taken in order and never released: there are no more, perhaps not even memory. */
        if (state == LAT_SLOT_FREE)
            break;
        if (state == LAT_SLOT_READY && table[i].hash == hash)
            return &table[i];
    }
    return NULL;
}

/* Whether there is memory for a schema's text, and for the bytes of its events. */
static int has_memory(const struct lat_schema *schema, uint32_t base, uint64_t heap)
{
    const uint64_t events = (uint64_t)base + schema->event_count;
    return lat_i_port_heap_grow(heap + schema->text_bytes) &&
           lat_i_port_table_grow(LAT_AREA_ENABLE_OFFSET, events) &&
           lat_i_port_table_grow(LAT_AREA_WANTED_OFFSET, events);
}

/* Takes the first free slot. Before that the next one gets memory, because code that scans the table also
 * reads the first free one. */
static struct lat_area_schema *take_slot(struct lat_area_schema *table)
{
    for (uint64_t slot = 0; slot < LAT_AREA_SCHEMA_COUNT; slot++) {
        uint32_t free_slot = LAT_SLOT_FREE;
        const uint64_t behind = slot + 1 < LAT_AREA_SCHEMA_COUNT ? slot + 2 : slot + 1;
        if (__atomic_load_n(&table[slot].state, __ATOMIC_RELAXED) != LAT_SLOT_FREE)
            continue;
        if (!lat_i_port_table_grow(LAT_AREA_SCHEMAS_OFFSET, behind * sizeof table[0]))
            return NULL;
        if (__atomic_compare_exchange_n(&table[slot].state, &free_slot, LAT_SLOT_CLAIMED, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return &table[slot];
    }
    return NULL;
}

static struct lat_area_schema *publish_schema(struct lat_area_header *header,
                                              struct lat_area_schema *table,
                                              const struct lat_schema *schema)
{
    if (schema->event_count > LAT_AREA_EVENT_COUNT || schema->text_bytes > LAT_AREA_HEAP_BYTES)
        return NULL;
    /* Checked before anything is taken, because nothing is ever released. */
    const uint32_t next_id = __atomic_load_n(&header->next_event_id, __ATOMIC_RELAXED);
    const uint64_t heap_used = __atomic_load_n(&header->heap_used, __ATOMIC_RELAXED);
    if (next_id > LAT_AREA_EVENT_COUNT - schema->event_count ||
        heap_used > LAT_AREA_HEAP_BYTES - schema->text_bytes ||
        !has_memory(schema, next_id, heap_used))
        return NULL;
    struct lat_area_schema *entry = take_slot(table);
    if (entry == NULL)
        return NULL;
    const uint32_t base =
        __atomic_fetch_add(&header->next_event_id, schema->event_count, __ATOMIC_RELAXED);
    const uint64_t heap = __atomic_fetch_add(&header->heap_used, schema->text_bytes, __ATOMIC_RELAXED);
    /* Another process of a shared area may have registered first, and others can write these words. */
    if (base > LAT_AREA_EVENT_COUNT - schema->event_count ||
        heap > LAT_AREA_HEAP_BYTES - schema->text_bytes ||
        ((base != next_id || heap != heap_used) && !has_memory(schema, base, heap)))
        return NULL;

    entry->base_id = base;
    entry->event_count = schema->event_count;
    entry->text_bytes = schema->text_bytes;
    entry->text_offset = LAT_AREA_HEAP_OFFSET + heap;
    entry->hash = schema->hash;
    const size_t name_bytes = strlen(schema->name);
    memcpy(entry->name, schema->name,
           name_bytes < sizeof entry->name ? name_bytes : sizeof entry->name - 1);
    memcpy((char *)header + LAT_AREA_HEAP_OFFSET + heap, schema->text, schema->text_bytes);
    uint8_t *enable = (uint8_t *)header + LAT_AREA_ENABLE_OFFSET + base;
    /* Before others can see it: a process that finds the schema here writes at once. */
    struct patterns asked, now;
    copy_patterns(header, &asked);
    const int is_by_lines = enable_by_lines(asked.text, schema, enable);
    if (!is_by_lines) {
        memset(enable, 0, schema->event_count);
        enable_by_words(asked.text, schema, enable);
    }
    __atomic_store_n(&entry->state, LAT_SLOT_READY, __ATOMIC_RELEASE); /* pair R2 */
    /* And again after: a recorder that changed the patterns meanwhile has not found the schema. Pair: the
     * fence between the recorder's store of the patterns and its scan of the table. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    copy_patterns(header, &now);
    if (strcmp(asked.text, now.text) != 0 && is_by_lines)
        enable_by_lines(now.text, schema, enable);
    else if (strcmp(asked.text, now.text) != 0)
        enable_by_words(now.text, schema, enable);
    return entry;
}

void lat_register(struct lat_schema *schema)
{
    lat_i_lock(&register_lock);
    if (!schema->registered) {
        schema->registered = 1;
        lat_i_port_start(schema->text_bytes);
        struct lat_area_header *header = lat_i_area.header;
        if (header != NULL) {
            struct lat_area_schema *table =
                (struct lat_area_schema *)(void *)((char *)header + LAT_AREA_SCHEMAS_OFFSET);
            const struct lat_area_schema *entry = find_schema(table, schema->hash);
            if (entry == NULL) {
                /* Two processes that publish the same schema would use twice as many ids. */
                const int saved_errno = errno;
                const int lock = lat_i_area_alone ? -1 : lat_i_port_area_lock();
                entry = find_schema(table, schema->hash);
                if (entry == NULL)
                    entry = publish_schema(header, table, schema);
                lat_i_port_area_unlock(lock);
                errno = saved_errno;
            }
            /* Read once: a site relies on the number from now on. */
            const uint32_t base =
                entry != NULL ? __atomic_load_n(&entry->base_id, __ATOMIC_RELAXED) : 0;
            if (entry != NULL && entry->event_count == schema->event_count &&
                base <= LAT_AREA_EVENT_COUNT - schema->event_count) {
                schema->base_id = base;
                /* Last: a site that sees the new bytes must see the id. Pair: the data
                 * dependency in the site, and on program start no other thread exists. */
                __atomic_store_n(&schema->enabled,
                                 (const uint8_t *)header + LAT_AREA_ENABLE_OFFSET + base,
                                 __ATOMIC_RELEASE);
            } else {
                __atomic_fetch_add(&header->lost_schemas, 1, __ATOMIC_RELAXED);
            }
        }
    }
    lat_i_unlock(&register_lock);
}
