// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See traced.h. */
#define _GNU_SOURCE
#include "traced.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16

static void die(const char *what)
{
    perror(what);
    exit(2);
}

const char *traced_kind(void)
{
    const char *kind = getenv("TEST_RING");
    return kind != NULL ? kind : "cpu";
}

extern const unsigned int __rseq_size __attribute__((weak));

int traced_has_rseq(void)
{
    return &__rseq_size != NULL && __rseq_size != 0;
}

void traced_make(struct traced *traced, uint64_t buffer, uint64_t packet, const char *mode)
{
    const char *temporary = getenv("TEST_AREAS");
    memset(traced, 0, sizeof *traced);
    snprintf(traced->directory, sizeof traced->directory, "%s/test-XXXXXX",
             temporary != NULL ? temporary : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(traced->directory) == NULL)
        die(traced->directory);
    if (buffer != 0)
        snprintf(traced->record, sizeof traced->record,
                 "session=7e57;buffer=%llu;packet=%llu;cap=%llu;mode=%s;enable=*",
                 (unsigned long long)buffer, (unsigned long long)packet, 64ull << 30, mode);
    snprintf(traced->ring, sizeof traced->ring, "%s", traced_kind());
}

static void set_or_not(const char *name, const char *value)
{
    if (value[0] != 0)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void traced_exec(struct traced *traced, char *const arguments[])
{
    fflush(NULL);
    traced->pid = fork();
    if (traced->pid < 0)
        die("fork");
    if (traced->pid > 0)
        return;
    unsetenv("LATERALIS_DISABLE");
    setenv("LATERALIS_DIR", traced->directory, 1);
    set_or_not("LATERALIS_RECORD", traced->record);
    set_or_not("LATERALIS_RING", traced->ring);
    if (traced->output[0] != 0) {
        const int file = open(traced->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0)
            die(traced->output);
        close(file);
    }
    execv(arguments[0], arguments);
    die(arguments[0]);
}

void traced_start(struct traced *traced, const char *role, ...)
{
    static char self[4096];
    const char *arguments[ARGUMENTS_MAX] = {self, role};
    int count = 2;
    va_list rest;
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0)
        die("/proc/self/exe");
    self[length] = 0;
    va_start(rest, role);
    while (count < ARGUMENTS_MAX - 1 && (arguments[count] = va_arg(rest, const char *)) != NULL)
        count++;
    va_end(rest);
    traced_exec(traced, (char *const *)(uintptr_t)arguments);
}

int traced_wait(struct traced *traced)
{
    int status = -1;
    while (waitpid(traced->pid, &status, 0) < 0)
        continue;
    return status;
}

void traced_remove(struct traced *traced)
{
    char path[512];
    DIR *entries = opendir(traced->directory);
    if (entries == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", traced->directory, entry->d_name);
        unlink(path);
    }
    closedir(entries);
    rmdir(traced->directory);
}
