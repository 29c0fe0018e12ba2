// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The traced program never fails, prints, or differs because of tracing: whatever is missing, its
 * output, errno and exit status are those of an untraced run.
 */
#define _GNU_SOURCE
#include "../support/check.h"
#include "../support/tests.h"
#include "../support/traced_drain.h"

#include <lat/log.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define EXIT_STATUS 7
static const char expected_output[] = "the program's own output\nerrno 25\nerrno 25\n";

/* The program: events of each kind between checks of errno. */
static int work(void)
{
    printf("the program's own output\n");
    fflush(stdout);
    errno = ENOTTY;
    lat_t_one(1);
    lat_t_text(2, "text");
    lat_mark("remark");
    LAT_LOG("log %d %s", 3, "text");
    printf("errno %d\n", errno);
    errno = ENOTTY;
    for (unsigned i = 0; i < 10000; i++)
        lat_t_four(i, i, i, i);
    printf("errno %d\n", errno);
    return EXIT_STATUS;
}

/* Runs `work` and compares. */
static void unharmed(struct traced *traced)
{
    char output[512];
    size_t length = 0;
    snprintf(traced->output, sizeof traced->output, "%s.out", traced->directory);
    traced_start(traced, "work", NULL);
    const int status = traced_wait(traced);
    check(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STATUS, "wait status %x", status);
    FILE *file = fopen(traced->output, "r");
    if (CHECK(file != NULL)) {
        length = fread(output, 1, sizeof output - 1, file);
        fclose(file);
    }
    output[length] = 0;
    check(strcmp(output, expected_output) == 0, "output \"%s\"", output);
    unlink(traced->output);
}

static void done(struct traced *traced, const char *name)
{
    fact(name);
    traced_remove(traced);
}

static void normal_ends(void)
{
    struct traced traced;
    traced_make(&traced, 0, 0, "");
    unharmed(&traced);
    struct reader reader;
    if (CHECK(reader_find(&reader, traced.directory))) {
        CHECK_EQUAL(reader.header->state, LAT_AREA_EXITED);
        reader_close(&reader);
    }
    done(&traced, "nobody records: the area says that it is over");

    traced_make(&traced, 65536, 4096, "discard");
    unharmed(&traced);
    CHECK_EQUAL(reader_count_areas(traced.directory), 1);
    done(&traced, "recorded: the area stays for the recorder");

    traced_make(&traced, 65536, 4096, "discard");
    setenv("LATERALIS_AREA", "", 1);
    unharmed(&traced);
    CHECK_EQUAL(reader_count_areas(traced.directory), 1);
    setenv("LATERALIS_AREA", "/dev/null", 1);
    unharmed(&traced);
    setenv("LATERALIS_AREA", "/nonexistent/area", 1);
    unharmed(&traced);
    /* It is recorded nevertheless, in areas of its own. */
    CHECK_EQUAL(reader_count_areas(traced.directory), 3);
    traced.record[0] = 0;
    unharmed(&traced);
    CHECK_EQUAL(reader_count_areas(traced.directory), 3);
    unsetenv("LATERALIS_AREA");
    done(&traced, "areas to join that are none");
}

static void disabled(void)
{
    struct traced traced;
    traced_make(&traced, 65536, 4096, "discard");
    /* traced_exec removes LATERALIS_DISABLE: set it through env(1). */
    char self[4096] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        abort();
    snprintf(traced.output, sizeof traced.output, "%s/out", traced.directory);
    char *arguments[] = {(char *)(uintptr_t)"/usr/bin/env", (char *)(uintptr_t)"LATERALIS_DISABLE=",
                         self, (char *)(uintptr_t)"work", NULL};
    traced_exec(&traced, arguments);
    CHECK_EQUAL(WEXITSTATUS(traced_wait(&traced)), EXIT_STATUS);
    CHECK_EQUAL(reader_count_areas(traced.directory), 0);
    done(&traced, "LATERALIS_DISABLE");
}

static void bad_directories(void)
{
    struct traced traced;
    char path[200];
    static const char *const bad[] = {"/nonexistent/folder", "/dev/null", "/proc", ""};
    traced_make(&traced, 65536, 4096, "discard");
    snprintf(path, sizeof path, "%s", traced.directory);
    for (size_t i = 0; bad[i][0] != 0; i++) {
        struct traced other = traced;
        snprintf(other.directory, sizeof other.directory, "%s", bad[i]);
        char output[160];
        snprintf(output, sizeof output, "%.100s/out", path);
        snprintf(other.output, sizeof other.output, "%s", output);
        traced_start(&other, "work", NULL);
        CHECK_EQUAL(WEXITSTATUS(traced_wait(&other)), EXIT_STATUS);
    }
    CHECK(chmod(path, 0777) == 0);
    unharmed(&traced);
    CHECK_EQUAL(reader_count_areas(path), 0);
    CHECK(chmod(path, 0700) == 0);
    done(&traced, "folders that are missing, no folders, or writable by others");

    if (geteuid() != 0) {
        skip_fact("a folder of somebody else", "needs root");
        return;
    }
    traced_make(&traced, 65536, 4096, "discard");
    CHECK(chown(traced.directory, 65534, 65534) == 0);
    unharmed(&traced);
    CHECK_EQUAL(reader_count_areas(traced.directory), 0);
    done(&traced, "a folder of somebody else");
}

static void bad_requests(void)
{
    static const char *const bad[] = {
        "session", "session=", "nonsense", ";;;=;=;", "session=1;buffer=abc;packet=-1;mode=x",
        "session=1;buffer=99999999999999999999;packet=99999999999999999999;cap=99999999999999999999",
        "session=ffffffffffffffffffffffff;enable=!,:,!:,*,,,", NULL};
    struct traced traced;
    for (size_t i = 0; bad[i] != NULL; i++) {
        traced_make(&traced, 0, 0, "");
        snprintf(traced.record, sizeof traced.record, "%s", bad[i]);
        unharmed(&traced);
        traced_remove(&traced);
    }
    traced_make(&traced, 0, 0, "");
    done(&traced, "requests that make no sense");
}

/* ---- limits --------------------------------------------------------------------------------- */

static void limited(const char *name, int resource, rlim_t value, uint64_t buffer, unsigned areas)
{
    struct rlimit old, limit;
    struct traced traced;
    traced_make(&traced, buffer, 4096, "discard");
    getrlimit((__rlimit_resource_t)resource, &old);
    limit = old;
    limit.rlim_cur = value;
    CHECK(setrlimit((__rlimit_resource_t)resource, &limit) == 0);
    unharmed(&traced);
    setrlimit((__rlimit_resource_t)resource, &old);
    CHECK_EQUAL(reader_count_areas(traced.directory), areas);
    done(&traced, name);
}

static void limits(void)
{
    if (getenv("TEST_SANITIZED") == NULL) {
        limited("little address space", RLIMIT_AS, 24 << 20, 65536, 1);
        limited("some address space", RLIMIT_AS, 512 << 20, 64 << 20, 1);
    } else {
        skip_fact("little address space", "sanitizers need more of it");
    }
    limited("small files only", RLIMIT_FSIZE, 8192, 65536, 0);
    limited("files smaller than the rings", RLIMIT_FSIZE, 2 << 20, 4 << 20, 1);
    limited("one file descriptor left", RLIMIT_NOFILE, 4, 65536, 1);
}

static void full_file_system(void)
{
    struct traced traced;
    char output[200];
    if (geteuid() != 0) {
        skip_fact("a full file system", "needs root to mount one");
        return;
    }
    for (unsigned size = 16; size <= 2048; size *= 2) {
        char options[32];
        traced_make(&traced, 1 << 20, 4096, "discard");
        snprintf(options, sizeof options, "size=%uk,mode=0700", size);
        if (mount("none", traced.directory, "tmpfs", 0, options) != 0) {
            skip_fact("a full file system", "mount is not allowed here");
            traced_remove(&traced);
            return;
        }
        snprintf(output, sizeof output, "%s.out", traced.directory);
        unharmed(&traced);
        /* The tables start with about 44 KiB. */
        CHECK(reader_count_areas(traced.directory) == (size >= 64));
        umount2(traced.directory, MNT_DETACH);
        traced_remove(&traced);
    }
    traced_make(&traced, 0, 0, "");
    done(&traced, "a full file system");
}

/* A copy of this program that runs with the rights of another user. */
static void set_user_id(void)
{
    struct traced traced;
    char copy[60], command[1000], self[4096] = {0};
    if (geteuid() != 0 || access("/bin/cp", X_OK) != 0) {
        skip_fact("set-user-id programs are not traced", "needs root and cp(1)");
        return;
    }
    if (getenv("TEST_SANITIZED") != NULL) {
        skip_fact("set-user-id programs are not traced", "the sanitizer can not start in one");
        return;
    }
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        abort();
    traced_make(&traced, 65536, 4096, "discard");
    CHECK(chmod(traced.directory, 0755) == 0);
    /* Not in a folder whose file system may be mounted nosuid. */
    snprintf(copy, sizeof copy, "/var/tmp/lateralis-test-%d", (int)getpid());
    snprintf(command, sizeof command, "cp '%.600s' %s && chown 65534 %s && chmod 4755 %s",
             self, copy, copy, copy);
    CHECK(system(command) == 0);
    char *arguments[] = {copy, (char *)(uintptr_t)"work-and-say", NULL};
    snprintf(traced.output, sizeof traced.output, "%s/out", traced.directory);
    traced_exec(&traced, arguments);
    const int status = traced_wait(&traced);
    unlink(copy);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        skip_fact("set-user-id programs are not traced", "the file system is mounted nosuid");
    } else {
        check(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STATUS, "wait status %x", status);
        CHECK_EQUAL(reader_count_areas(traced.directory), 0);
        fact("set-user-id programs are not traced");
    }
    traced_remove(&traced);
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "work-and-say") == 0)
        return geteuid() == getuid() ? 77 : work();
    if (count > 1)
        return work();
    normal_ends();
    disabled();
    bad_directories();
    bad_requests();
    limits();
    full_file_system();
    set_user_id();
    return check_status();
}
