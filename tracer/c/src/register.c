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

/* Whether the list enables SUBSYSTEM:EVENT, without an event any of the subsystem; the last pattern
 * that matches decides. */
static int patterns_enable(const char *list, const char *subsystem, size_t subsystem_bytes,
                           const char *event, size_t event_bytes)
{
    int enabled = 0;
    while (*list != 0) {
        const size_t bytes = strcspn(list, ",");
        const int excludes = *list == '!';
        const char *pattern = list + excludes;
        const size_t pattern_bytes = bytes - (size_t)excludes;
        const char *colon = memchr(pattern, ':', pattern_bytes);
        const size_t first_bytes = colon != NULL ? (size_t)(colon - pattern) : pattern_bytes;
        if (lat_i_glob_matches(pattern, first_bytes, subsystem, subsystem_bytes) &&
            (colon == NULL || (event == NULL && !excludes) ||
             (event != NULL &&
              lat_i_glob_matches(colon + 1, pattern_bytes - first_bytes - 1, event, event_bytes))))
            enabled = !excludes;
        list += bytes;
        list += *list == ',';
    }
    return enabled;
}

int lat_i_patterns_enable_any(const char *list, const char *subsystem)
{
    return patterns_enable(list, subsystem, strlen(subsystem), NULL, 0);
}

static int is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '\'';
}

/*
 * Sets the enable bytes of a schema's events by the patterns. Walks the
 * canonical text: the words behind `subsystem` and `event` outside strings and
 * parentheses are the names, in the order of the event numbers.
 */
static void enable_by_patterns(const char *patterns, const struct lat_schema *schema,
                               uint8_t *enable)
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
            while (text < end && is_word(*text))
                text++;
            const size_t bytes = (size_t)(text - word);
            if (expect == 1) {
                subsystem = word;
                subsystem_bytes = bytes;
                expect = 0;
            } else if (expect == 2) {
                if (patterns_enable(patterns, subsystem, subsystem_bytes, word, bytes))
                    __atomic_store_n(&enable[index], LAT_ENABLE_RECORD, __ATOMIC_RELAXED);
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

/* The patterns of the area, which others can write: looked at in a copy that ends. */
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
    for (uint32_t i = 0; i < LAT_AREA_SCHEMA_COUNT; i++)
        if (__atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE) == LAT_SLOT_READY && /* R2 */
            table[i].hash == hash)
            return &table[i];
    return NULL;
}

static struct lat_area_schema *publish_schema(struct lat_area_header *header,
                                              struct lat_area_schema *table,
                                              const struct lat_schema *schema)
{
    uint32_t slot = 0, free_slot = LAT_SLOT_FREE;
    if (schema->event_count > LAT_AREA_EVENT_COUNT || schema->text_bytes > LAT_AREA_HEAP_BYTES)
        return NULL;
    /* Looked at before anything is taken: what is taken is never given back. */
    const uint64_t heap_used = __atomic_load_n(&header->heap_used, __ATOMIC_RELAXED);
    if (__atomic_load_n(&header->next_event_id, __ATOMIC_RELAXED) >
            LAT_AREA_EVENT_COUNT - schema->event_count ||
        heap_used > LAT_AREA_HEAP_BYTES - schema->text_bytes ||
        !lat_i_port_heap_grow(heap_used + schema->text_bytes))
        return NULL;
    while (!__atomic_compare_exchange_n(&table[slot].state, &free_slot, LAT_SLOT_CLAIMED, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        free_slot = LAT_SLOT_FREE;
        if (++slot == LAT_AREA_SCHEMA_COUNT)
            return NULL;
    }
    const uint32_t base =
        __atomic_fetch_add(&header->next_event_id, schema->event_count, __ATOMIC_RELAXED);
    const uint64_t heap = __atomic_fetch_add(&header->heap_used, schema->text_bytes, __ATOMIC_RELAXED);
    /* Another process of a shared area may have been quicker; and others can write these words. */
    if (base > LAT_AREA_EVENT_COUNT - schema->event_count ||
        heap > LAT_AREA_HEAP_BYTES - schema->text_bytes ||
        !lat_i_port_heap_grow(heap + schema->text_bytes))
        return NULL;

    struct lat_area_schema *entry = &table[slot];
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
    /* Before others can see it: one that finds the schema here writes at once. */
    struct patterns asked, now;
    copy_patterns(header, &asked);
    enable_by_patterns(asked.text, schema, enable);
    __atomic_store_n(&entry->state, LAT_SLOT_READY, __ATOMIC_RELEASE); /* pair R2 */
    /* And after: who changed the patterns meanwhile has not found the schema. Pair: the fence
     * between the recorder's store of the patterns and its look at the table. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    copy_patterns(header, &now);
    if (strcmp(asked.text, now.text) != 0)
        enable_by_patterns(now.text, schema, enable);
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
                /* Two processes that publish the same would use up twice as many ids. */
                const int saved_errno = errno;
                const int lock = lat_i_area_alone ? -1 : lat_i_port_area_lock();
                entry = find_schema(table, schema->hash);
                if (entry == NULL)
                    entry = publish_schema(header, table, schema);
                lat_i_port_area_unlock(lock);
                errno = saved_errno;
            }
            /* Read once: a site relies on the number ever after. */
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
