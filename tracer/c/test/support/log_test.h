// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Code shared by programs/log.c and programs/log_cpp.cc, besides their cases. */
#ifndef TEST_LOG_TEST_H
#define TEST_LOG_TEST_H

#include "check.h"
#include "log_reader.h"
#include "traced_drain.h"

/** Runs a role and compares its output with the text of its records. */
static inline void compare_with_printf(const char *fact_name, const char *role, const char *schema,
                                       const char *names)
{
    static struct log_reader log;
    static char output[65536];
    struct traced traced;
    size_t length = 0;
    traced_make(&traced, 1 << 20, 16384, "discard");
    snprintf(traced.output, sizeof traced.output, "%s/out", traced.directory);
    traced_start(&traced, role, NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    FILE *file = fopen(traced.output, "r");
    if (CHECK(file != NULL)) {
        length = fread(output, 1, sizeof output - 1, file);
        fclose(file);
    }
    output[length] = 0;
    if (CHECK(log_open(&log, traced.directory, schema))) {
        reader_drain(&log.reader, 0);
        check(log.reader.problem[0] == 0, "%s", log.reader.problem);
        size_t same = 0;
        while (output[same] != 0 && output[same] == log.lines[same])
            same++;
        if (output[same] != log.lines[same]) {
            while (same > 0 && output[same - 1] != '\n')
                same--;
            check(0, "recorded \"%.60s\" where printf has \"%.60s\"", log.lines + same, output + same);
        }
        CHECK(length > 0);
        check(names == NULL || strstr(log.names, names) != NULL, "no event %s in %.400s", names,
              log.names);
        /* The schema's text compiles, and equals the compiler's canonical form. */
        const char *pleco = getenv("TEST_PLECO");
        if (pleco != NULL) {
            char command[1200], path[200];
            snprintf(path, sizeof path, "%s/%s.pleco", traced.directory, schema);
            FILE *text = fopen(path, "w");
            if (CHECK(text != NULL)) {
                fwrite(log.text, 1, log.text_bytes, text);
                fclose(text);
            }
            unsigned long long hash = 0;
            const struct lat_area_schema *table =
                (const struct lat_area_schema *)(const void *)((const char *)log.reader.header +
                                                               LAT_AREA_SCHEMAS_OFFSET);
            for (unsigned i = 0; i < LAT_AREA_SCHEMA_COUNT; i++)
                if (table[i].state == LAT_SLOT_READY && strcmp(table[i].name, schema) == 0)
                    hash = table[i].hash;
            snprintf(command, sizeof command, "%.500s gen --c %.150s.h %.150s && grep -q 0x%016llx %.150s.h",
                     pleco, path, path, hash, path);
            const int status = system(command);
            check(status == 0, "the text does not compile, or not to the hash %016llx", hash);
        }
        reader_close(&log.reader);
    }
    fact(fact_name);
    traced_remove(&traced);
}

#endif
