// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What a recorder asks of a program that starts (spec/ring-abi.md §8). Context: start-up.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "request.h"
#include "calls.h"
#include "register.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Longest request that is read from a file. */
#define STANDING_BYTES_MAX (128 << 10)

static uint64_t parse_number(const char *text, int base)
{
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(text, &end, base);
    return errno == 0 ? value : 0;
}

/* Whether each `program=` of a line of a request matches: the path of this program if the pattern
 * has a `/`, else its file name. */
static int line_is_for(const char *exe, const char *line, size_t bytes)
{
    const char *slash = strrchr(exe, '/'), *end = line + bytes;
    const char *name = slash != NULL ? slash + 1 : exe;
    while (line < end) {
        const char *stop = memchr(line, ';', (size_t)(end - line));
        if (stop == NULL)
            stop = end;
        if (stop - line >= 8 && memcmp(line, "program=", 8) == 0) {
            const size_t length = (size_t)(stop - line) - 8;
            const char *text = memchr(line + 8, '/', length) != NULL ? exe : name;
            if (!lat_i_glob_matches(line + 8, length, text, strlen(text)))
                return 0;
        }
        line = stop < end ? stop + 1 : end;
    }
    return 1;
}

/* The first line of a request that is for this program: spec/ring-abi.md §8. @return whether it is
 * in `copy`. */
static int copy_line(const char *text, size_t bytes, char *copy, size_t copy_bytes)
{
    const char *end = text + bytes;
    char exe[PATH_MAX] = "";
    int has_exe = 0;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const size_t line = (size_t)((stop != NULL ? stop : end) - text);
        /* Most requests are for every program: then its path is not asked for. */
        if (!has_exe && memmem(text, line, "program=", 8) != NULL) {
            const ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
            exe[length > 0 ? length : 0] = 0;
            has_exe = 1;
        }
        if (line != 0 && line_is_for(exe, text, line)) {
            if (line >= copy_bytes)
                return 0;
            memcpy(copy, text, line);
            copy[line] = 0;
            return 1;
        }
        text += line + (stop != NULL);
    }
    return 0;
}

/* A request, spec/ring-abi.md §8; unknown keys are left to later versions. */
static int parse_request(const char *text, size_t bytes, struct lat_i_request *request)
{
    static char copy[2048];
    char *rest;
    if (text == NULL || !copy_line(text, bytes, copy, sizeof copy))
        return 0;
    for (char *item = strtok_r(copy, ";", &rest); item != NULL; item = strtok_r(NULL, ";", &rest)) {
        char *value = strchr(item, '=');
        if (value == NULL) {
            request->waits |= strcmp(item, "wait") == 0;
            request->locked |= strcmp(item, "lock") == 0;
            request->grows |= strcmp(item, "grow") == 0;
            continue;
        }
        *value++ = 0;
        if (strcmp(item, "session") == 0)
            request->session = parse_number(value, 16);
        else if (strcmp(item, "recorder") == 0)
            request->recorder = (uint32_t)parse_number(value, 10);
        else if (strcmp(item, "buffer") == 0)
            request->buffer_bytes = parse_number(value, 10);
        else if (strcmp(item, "packet") == 0)
            request->packet_bytes = parse_number(value, 10);
        else if (strcmp(item, "cap") == 0)
            request->cap_bytes = parse_number(value, 10);
        else if (strcmp(item, "cpus") == 0)
            request->cpus = (uint32_t)parse_number(value, 10);
        else if (strcmp(item, "mode") == 0)
            request->mode = strcmp(value, "overwrite") == 0 ? LAT_MODE_OVERWRITE : LAT_MODE_DISCARD;
        else if (strcmp(item, "enable") == 0)
            request->enable = value;
    }
    return request->session != 0;
}

/* Whether somebody holds a lock on a file; with what holds one nothing is done. */
static int is_locked(int file)
{
    return flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* If the file cannot be seen from here (another mount namespace), the recorder would not see an area
 * either. */
int lat_i_session_lock_open(const struct lat_i_request *request, const char *directory)
{
    char path[PATH_MAX];
    if (!request->locked || directory == NULL ||
        snprintf(path, sizeof path, "%s/session-%016llx.lock", directory,
                 (unsigned long long)request->session) >= (int)sizeof path)
        return -1;
    return lat_i_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
}

int lat_i_session_lives(const struct lat_i_request *request, int lock)
{
    return !request->locked || (lock >= 0 && is_locked(lock));
}

void lat_i_session_lock_close(int lock)
{
    if (lock >= 0)
        lat_i_close(lock);
}

int lat_i_request_of_launcher(struct lat_i_request *request)
{
    const char *text = getenv("LATERALIS_RECORD");
    return parse_request(text, text != NULL ? strlen(text) : 0, request);
}

/* The recorder holds a lock on the file as long as it records; what a killed one left says
 * nothing. */
int lat_i_request_standing(const char *directory, struct lat_i_request *request)
{
    char path[PATH_MAX];
    struct stat status;
    int asked = 0;
    if (snprintf(path, sizeof path, "%s/record.request", directory) >= (int)sizeof path)
        return 0;
    const int file = lat_i_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0)
        return 0;
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        status.st_size > 0 && status.st_size <= STANDING_BYTES_MAX &&
        is_locked(file)) {
        /* On the heap of nobody: it may be this program's own allocator that is traced. */
        const size_t bytes = (size_t)status.st_size;
        char *text = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (text != MAP_FAILED) {
            const ssize_t length = lat_i_read(file, text, bytes);
            asked = length > 0 && parse_request(text, (size_t)length, request);
            munmap(text, bytes);
        }
    }
    lat_i_close(file);
    return asked;
}
