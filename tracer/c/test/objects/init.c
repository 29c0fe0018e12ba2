// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The init process of the machine that test/aarch64-kernel starts: runs every test program under
 * /tests, one after the other, and powers the machine off. A program's path contains its build variant
 * and the kind of its rings: /tests/VARIANT/KIND/PROGRAM, KIND being "cpu" or "thread".
 * Under other names it is a command called by the tests: `env NAME=VALUE PROGRAM ARGUMENT…`, and `true`.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SECONDS_MAX 900

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run(const char *variant, const char *kind, const char *folder, const char *program)
{
    char path[512];
    int status = -1;
    const double start = seconds();
    snprintf(path, sizeof path, "%s/%s", folder, program);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        setsid();
        setenv("TEST_VARIANT", variant, 1);
        setenv("TEST_RING", kind, 1);
        setenv("LATERALIS_DISABLE", "1", 1);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (seconds() - start > SECONDS_MAX) {
            printf("FAIL %s [%s] still runs after %d s\n", program, variant, SECONDS_MAX);
            kill(-pid, SIGKILL);
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            break;
        }
        usleep(10000);
    }
    /* With exit status 1 the test has reported its failures. */
    if (status != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 1))
        printf("FAIL %s [%s] wait status %x\n", program, variant, (unsigned)status);
    printf("# %s [%s]: %.1f s\n", program, variant, seconds() - start);
}

/* Calls `each` for every entry of a directory, in the order of the names. */
static void for_each(const char *directory, void (*each)(const char *directory, const char *name))
{
    struct dirent **entries;
    const int count = scandir(directory, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.')
            each(directory, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

static char variant[128], kind[16];

static void each_program(const char *directory, const char *name)
{
    run(variant, kind, directory, name);
}

static void each_kind(const char *directory, const char *name)
{
    char path[512];
    snprintf(kind, sizeof kind, "%s", name);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    for_each(path, each_program);
}

static void each_variant(const char *directory, const char *name)
{
    struct utsname system;
    char path[512];
    uname(&system);
    snprintf(variant, sizeof variant, "%s %s, %ld CPUs, %s", system.machine, system.release,
             sysconf(_SC_NPROCESSORS_ONLN), name);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    for_each(path, each_kind);
}

static void make_places(void)
{
    static const struct {
        const char *place, *kind;
    } mounts[] = {
        {"/dev", "devtmpfs"}, {"/proc", "proc"}, {"/sys", "sysfs"}, {"/dev/shm", "tmpfs"},
        {"/tmp", "tmpfs"},
    };
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
        mkdir(mounts[i].place, 0755);
        if (mount(mounts[i].kind, mounts[i].place, mounts[i].kind, 0, NULL) != 0)
            perror(mounts[i].place);
    }
}

int main(int count, char **arguments)
{
    if (count > 2 && strstr(arguments[0], "env") != NULL) {
        putenv(arguments[1]);
        execv(arguments[2], arguments + 2);
        return 127;
    }
    if (strstr(arguments[0], "init") == NULL)
        return 0;
    make_places();
    for (int file = 0; file < 3; file++) {
        close(file);
        if (open("/dev/console", O_RDWR) != file)
            reboot(RB_POWER_OFF);
    }
    setenv("HOME", "/tmp", 1);
    puts("# machine up");
    for_each("/tests", each_variant);
    puts("# machine done");
    fflush(NULL);
    usleep(200000); /* lets the console print its last line */
    reboot(RB_POWER_OFF);
    return 1;
}
