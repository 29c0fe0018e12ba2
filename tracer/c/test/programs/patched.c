// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Sites whose first byte is patched (spec/ring-abi.md §10): at start, from outside while threads
 * execute them, and in plug-ins that are loaded and unloaded. `flags: -DLAT_PATCHABLE` */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/traced_drain.h"
#include "../support/values.h"

#include "register.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

/* ---- the traced program ---------------------------------------------------------------- */

__attribute__((noinline)) static void site_of_one(uint64_t value)
{
    lat_t_one(value);
}

/* Returns the state of the sites of this object as exit status. */
static int look(void)
{
    unsigned off = 0, on = 0, other = 0;
    for (const struct lat_i_patch_table *table = lat_i_patch_tables; table; table = table->next) {
        for (const struct lat_i_site *site = table->begin; site < table->end; site++) {
            const uint8_t byte = *((const uint8_t *)&site->site + site->site);
            off += byte == 0xa9;
            on += byte == 0xe9;
            other += byte != 0xa9 && byte != 0xe9;
        }
    }
    site_of_one(value_make(0, 0));
    if (other != 0 || (off != 0 && on != 0) || off + on == 0)
        return 3;
    return on != 0 ? 11 : 10;
}

static volatile sig_atomic_t stopping;
static void on_signal(int number)
{
    (void)number;
    stopping = 1;
}

static void *run_through(void *argument)
{
    for (uint64_t i = 0; !stopping && i < VALUE_NUMBERS; i++)
        site_of_one(value_make((uint64_t)(uintptr_t)argument, i));
    return NULL;
}

static int run_threads(void)
{
    pthread_t thread;
    signal(SIGTERM, on_signal);
    if (pthread_create(&thread, NULL, run_through, (void *)1) != 0)
        return 1;
    run_through((void *)0);
    pthread_join(thread, NULL);
    return 0;
}

static int load_plugins(const char *path)
{
    for (unsigned i = 0; i < 10; i++) {
        void *plugin = dlopen(path, RTLD_NOW);
        if (plugin == NULL || lat_i_patch_tables->next == NULL)
            return 1;
        void (*plugin_emit)(uint64_t, uint64_t) = NULL;
        *(void **)(uintptr_t)&plugin_emit = dlsym(plugin, "plugin_emit");
        plugin_emit(0, i);
        dlclose(plugin);
        if (lat_i_patch_tables == NULL || lat_i_patch_tables->next != NULL)
            return 2; /* the list still points into the unloaded object */
    }
    return 0;
}

/* ---- the recorder's side --------------------------------------------------------------------- */

struct patcher {
    int memory; /* /proc/PID/mem */
    struct {
        uint64_t code;
        uint32_t id;
    } site[64];
    unsigned count;
};

static int peek(const struct patcher *patcher, uint64_t address, void *to, size_t bytes)
{
    return pread(patcher->memory, to, bytes, (off_t)address) == (ssize_t)bytes;
}

/* Collects the sites of the process's tables. */
static int find_sites(struct patcher *patcher, const struct reader *reader, pid_t pid)
{
    char path[32];
    uint64_t table[3] = {0, 0, 0};
    const struct lat_area_process *slots =
        (const struct lat_area_process *)(const void *)((const char *)reader->header +
                                                        LAT_AREA_PROCESSES_OFFSET);
    memset(patcher, 0, sizeof *patcher);
    for (unsigned i = 0; i < LAT_AREA_PROCESS_COUNT; i++)
        if (slots[i].state == LAT_SLOT_READY && slots[i].pid == (uint32_t)pid)
            table[0] = slots[i].patch_table;
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    patcher->memory = open(path, O_RDWR);
    while (table[0] != 0) {
        if (!peek(patcher, table[0], table, sizeof table))
            return 0;
        for (uint64_t at = table[1]; at < table[2]; at += 16) {
            int32_t site[4];
            uint8_t code[5];
            uint32_t base;
            int32_t distance;
            if (!peek(patcher, at, site, sizeof site))
                return 0;
            const uint64_t address = at + (uint64_t)(int64_t)site[0];
            const uint64_t target = at + 4 + (uint64_t)(int64_t)site[1];
            const uint64_t schema = at + 8 + (uint64_t)(int64_t)site[2];
            if (!peek(patcher, address, code, 5) || !peek(patcher, schema + 8, &base, 4))
                return 0;
            memcpy(&distance, code + 1, 4);
            if ((code[0] != 0xa9 && code[0] != 0xe9) ||
                address + 5 + (uint64_t)(int64_t)distance != target || patcher->count == 64)
                return 0;
            patcher->site[patcher->count].code = address;
            patcher->site[patcher->count++].id = base + (uint32_t)site[3];
        }
    }
    return patcher->count > 0;
}

static void switch_event(const struct patcher *patcher, struct reader *reader, uint32_t id, int on)
{
    const uint8_t byte = on ? 0xe9 : 0xa9;
    reader_enable_bytes(reader)[id] = (uint8_t)on;
    for (unsigned i = 0; i < patcher->count; i++)
        if (patcher->site[i].id == id)
            CHECK(pwrite(patcher->memory, &byte, 1, (off_t)patcher->site[i].code) == 1);
}

static void starts(const char *enable, int expected, const char *name)
{
    struct traced traced;
    traced_make(&traced, 65536, 4096, "discard");
    strcpy(strstr(traced.record, "enable="), enable);
    traced_start(&traced, "look", NULL);
    CHECK_EQUAL(WEXITSTATUS(traced_wait(&traced)), expected);
    fact(name);
    traced_remove(&traced);
}

static uint64_t visited;
static void visit(void *context, const struct record *record)
{
    uint64_t value;
    const struct reader *reader = (const struct reader *)context;
    if (record->id != reader->tests_base + 1)
        return;
    visited++;
    CHECK(value_read(record, 1, &value));
}

static void switched_while_running(void)
{
    struct traced traced;
    struct reader reader;
    struct patcher patcher;
    uint64_t phases_with_events = 0;
    traced_make(&traced, 1 << 20, 16384, "discard");
    strcpy(strstr(traced.record, "enable="), "enable=!*");
    traced_start(&traced, "run", NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        reader.visit = visit;
        reader.context = &reader;
        usleep(50000);
        if (CHECK(find_sites(&patcher, &reader, traced.pid))) {
            const uint32_t one = reader.tests_base + 1;
            for (unsigned i = 0; i < 300; i++) {
                const uint64_t before = visited;
                switch_event(&patcher, &reader, one, 1);
                usleep(i % 10 == 0 ? 3000 : 200);
                reader_drain(&reader, 1);
                phases_with_events += visited > before;
                switch_event(&patcher, &reader, one, 0);
                usleep(100);
                reader_drain(&reader, 1);
            }
            usleep(20000);
            reader_drain(&reader, 1);
            const uint64_t before = visited;
            usleep(20000);
            reader_drain(&reader, 1);
            /* Disabled, but each thread may have been inside the site. */
            CHECK(visited <= before + 2);
            CHECK(phases_with_events > 20);
            close(patcher.memory);
        }
        kill(traced.pid, SIGTERM);
        CHECK_EQUAL(traced_wait(&traced), 0);
        check(reader.problem[0] == 0, "%s", reader.problem);
        reader_close(&reader);
    } else {
        kill(traced.pid, SIGKILL);
        traced_wait(&traced);
    }
    fact("patched sites switched from outside while running");
    traced_remove(&traced);
}

static void plugins(void)
{
    struct traced traced;
    struct reader reader;
    const char *plugin = getenv("TEST_PLUGIN_PATCHED");
    if (plugin == NULL) {
        skip_fact("patched plug-ins", "no TEST_PLUGIN_PATCHED");
        return;
    }
    traced_make(&traced, 65536, 4096, "discard");
    traced_start(&traced, "plugins", plugin, NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    if (CHECK(find_traced(&reader, &traced))) {
        visited = 0;
        reader.visit = visit;
        reader.context = &reader;
        reader_drain(&reader, 0);
        CHECK_EQUAL(visited, 10);
        reader_close(&reader);
    }
    fact("patched plug-ins");
    traced_remove(&traced);
}

int main(int count, char **arguments)
{
#ifdef __x86_64__
    if (count > 1) {
        if (strcmp(arguments[1], "look") == 0)
            return look();
        return strcmp(arguments[1], "run") == 0 ? run_threads() : load_plugins(arguments[2]);
    }
    starts("enable=!*", 10, "disabled sites are instructions without effect");
    starts("enable=*", 11, "enabled sites are jumps from the start on");
    switched_while_running();
    plugins();
#else
    (void)count, (void)arguments;
    skip_fact("patched sites", "only on x86-64");
#endif
    return check_status();
}
