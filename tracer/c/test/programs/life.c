// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Process events: fork and exec, daemons, vfork, plug-ins that are loaded and unloaded, and
 * thousands of short threads. `libraries: plugin` */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/ledger.h"
#include "../support/throttle.h"
#include "../support/traced_drain.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

/* TEST_THREADS in the environment: fewer on machines where creating threads is slow. */
#define THREADS 10000u
#define AT_ONCE 20u
#define LOADS 30u
#define USES 8u

/* ---- roles ----------------------------------------------------------------------- */

static int fork_and_exec(void)
{
    int status;
    value_emit(0, 0);
    const pid_t pid = fork();
    if (pid == 0) {
        value_emit(1, 0);
        execl("/proc/self/exe", "life", "one-event", (char *)NULL);
        _exit(127);
    }
    value_emit(0, 1);
    if (waitpid(pid, &status, 0) != pid)
        return 1;
    value_emit(0, 2);
    return status != 0;
}

static int daemonise(const char *done)
{
    value_emit(0, 0);
    if (fork() != 0)
        return 0; /* as a daemon returns to its shell */
    setsid();
    if (fork() != 0)
        exit(0);
    if (chdir("/") != 0)
        return 1;
    for (int i = 0; i < 1024; i++)
        close(i);
    /* Its ancestors have ended by now; their exits must not have removed the area. */
    usleep(100000);
    for (uint64_t i = 0; i < 1000; i++)
        value_emit(1, i);
    const int file = open(done, O_WRONLY | O_CREAT, 0600);
    return file < 0;
}

static pid_t spawn_true(void)
{
    const pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int run_vfork(void)
{
    int status = 1;
    for (uint64_t i = 0; i < 200; i++) {
        value_emit(0, i);
        const pid_t pid = spawn_true();
        if (waitpid(pid, &status, 0) != pid || status != 0)
            return 1;
    }
    return 0;
}

static void (*volatile plugin_emit)(uint64_t, uint64_t);
static volatile unsigned generation; /* odd: the plug-in is loaded */
static volatile unsigned seen[2];

/* Several events, so that the last one takes the fast path, whose sequence is in the plug-in. */
static void use_once(uint64_t writer, uint64_t generation_number)
{
    for (uint64_t i = 0; i < USES; i++)
        plugin_emit(writer, generation_number * USES + i);
}

/* Uses the plug-in once per generation and then computes without ever entering the kernel, while
 * the plug-in is unloaded: its last restartable sequence is in unmapped memory. */
static void *use_plugin(void *argument)
{
    const uint64_t writer = (uint64_t)(uintptr_t)argument;
    for (unsigned next = 1; next < 2 * LOADS; next += 2) {
        while (generation != next)
            continue;
        use_once(writer, next / 2);
        seen[writer - 1] = next;
    }
    return NULL;
}

static int load_plugins(const char *path)
{
    pthread_t thread[2];
    for (uintptr_t i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, use_plugin, (void *)(i + 1)) != 0)
            return 1;
    for (unsigned i = 0; i < LOADS; i++) {
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        *(void **)(uintptr_t)&plugin_emit = dlsym(plugin, "plugin_emit");
        use_once(0, i);
        generation = 2 * i + 1;
        while (seen[0] != generation || seen[1] != generation)
            continue;
        dlclose(plugin);
        if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL)
            return 2; /* it is still loaded: nothing was tested */
        generation = 2 * i + 2;
        const clock_t end = clock() + CLOCKS_PER_SEC / 100;
        while (clock() < end)
            continue;
    }
    for (unsigned i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    return 0;
}

static void *short_thread(void *number)
{
    char name[16];
    const uint64_t self = (uint64_t)(uintptr_t)number;
    snprintf(name, sizeof name, "short-%u", (unsigned)self);
    prctl(PR_SET_NAME, name);
    throttle();
    value_emit(0, 3 * self);
    value_emit(0, 3 * self + 1);
    value_emit(0, 3 * self + 2);
    return NULL;
}

static uint64_t threads_asked(void)
{
    const char *asked = getenv("TEST_THREADS");
    return asked != NULL ? strtoull(asked, NULL, 10) / AT_ONCE * AT_ONCE : THREADS;
}

static int many_threads(void)
{
    pthread_t thread[AT_ONCE];
    const uint64_t threads = threads_asked();
    for (uintptr_t i = 0; i < threads; i += AT_ONCE) {
        for (uintptr_t k = 0; k < AT_ONCE; k++)
            if (pthread_create(&thread[k], NULL, short_thread, (void *)(i + k)) != 0)
                return 1;
        for (unsigned k = 0; k < AT_ONCE; k++)
            pthread_join(thread[k], NULL);
    }
    return 0;
}

/* ---- facts ------------------------------------------------------------------------ */

static void read_all(struct reader *reader, struct ledger *ledger, uint64_t writers,
                     uint64_t numbers)
{
    ledger_make(ledger, reader, writers, numbers);
    reader->visit = ledger_visit;
    reader->context = ledger;
    reader_drain(reader, 0);
}

static void check_read(const struct reader *reader, const struct ledger *ledger)
{
    check(reader->problem[0] == 0, "%s", reader->problem);
    CHECK_EQUAL(reader_losses(reader), 0);
    CHECK_EQUAL(reader->out_of_order, 0);
    CHECK_EQUAL(ledger->torn, 0);
    CHECK_EQUAL(ledger->twice, 0);
}

static void forks_and_execs(void)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, 65536, 4096, "discard");
    traced_start(&traced, "fork-exec", NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    CHECK_EQUAL(reader_count_areas(traced.directory), 2);
    /* One of the two areas contains parent and child of the fork, the other the executed program. */
    for (unsigned i = 0; i < 2 && CHECK(find_traced(&reader, &traced)); i++) {
        read_all(&reader, &ledger, 2, 4);
        check_read(&reader, &ledger);
        const int executed = reader.header->creator_pid != (uint32_t)traced.pid;
        CHECK_EQUAL(ledger.found, executed ? 1 : 4);
        if (!executed) {
            CHECK(ledger.tid[0] == (uint32_t)traced.pid && ledger.tid[1] != ledger.tid[0]);
            CHECK_EQUAL(ledger.misattributed, 0);
        }
        ledger_free(&ledger);
        unlink(reader.path);
        reader_close(&reader);
    }
    fact("fork and exec");
    traced_remove(&traced);
}

static void daemons(void)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    char done[200];
    traced_make(&traced, 262144, 4096, "discard");
    snprintf(done, sizeof done, "%s/done", traced.directory);
    traced_start(&traced, "daemon", done, NULL);
    CHECK_EQUAL(traced_wait(&traced), 0);
    for (int tries = 0; tries < 5000 && access(done, F_OK) != 0; tries++)
        usleep(1000);
    if (CHECK(find_traced(&reader, &traced))) {
        read_all(&reader, &ledger, 2, 1000);
        check_read(&reader, &ledger);
        CHECK_EQUAL(ledger.found, 1001);
        CHECK_EQUAL(ledger.misattributed, 0);
        CHECK(ledger.tid[1] != ledger.tid[0]);
        ledger_free(&ledger);
        reader_close(&reader);
    }
    fact("a daemon that closes every file");
    traced_remove(&traced);
}

static void simple_role(const char *name, const char *role, const char *argument, uint64_t writers,
                        uint64_t numbers, uint64_t events)
{
    struct traced traced;
    struct reader reader;
    struct ledger ledger;
    traced_make(&traced, 1 << 20, 16384, "discard");
    traced_start(&traced, role, argument, NULL);
    if (CHECK(find_traced(&reader, &traced))) {
        ledger_make(&ledger, &reader, writers, numbers);
        reader.visit = ledger_visit;
        reader.context = &ledger;
        CHECK_EQUAL(drain_until_end(&reader, &traced, 1), 0);
        check_read(&reader, &ledger);
        CHECK_EQUAL(ledger.found, events);
        if (strcmp(role, "threads") == 0) {
            CHECK(reader.introductions >= threads_asked());
            if (reader.header->ring_kind == LAT_RING_PER_THREAD)
                for (uint32_t r = 0; r < reader.header->ring_count; r++)
                    CHECK(reader_ring(&reader, r)->owner == 0);
        }
        ledger_free(&ledger);
        reader_close(&reader);
    } else {
        traced_wait(&traced);
    }
    fact(name);
    traced_remove(&traced);
}

int main(int count, char **arguments)
{
    const char *role = count > 1 ? arguments[1] : "";
    const char *plugin = getenv("TEST_PLUGIN");
    char name[64];
    if (strcmp(role, "fork-exec") == 0)
        return fork_and_exec();
    if (strcmp(role, "one-event") == 0)
        return value_emit(0, 3), 0;
    if (strcmp(role, "daemon") == 0)
        return daemonise(arguments[2]);
    if (strcmp(role, "vfork") == 0)
        return run_vfork();
    if (strcmp(role, "plugins") == 0)
        return load_plugins(arguments[2]);
    if (strcmp(role, "threads") == 0)
        return many_threads();
    forks_and_execs();
    daemons();
    simple_role("vfork", "vfork", NULL, 1, 200, 200);
    if (plugin != NULL)
        simple_role("a plug-in loaded and unloaded", "plugins", plugin, 3, LOADS * USES,
                    3 * LOADS * USES);
    else
        skip_fact("a plug-in loaded and unloaded", "no TEST_PLUGIN");
    snprintf(name, sizeof name, "%llu short threads", (unsigned long long)threads_asked());
    simple_role(name, "threads", NULL, 1, 3 * threads_asked(), 3 * threads_asked());
    return check_status();
}
