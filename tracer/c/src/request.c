// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The requests of a recorder to a starting program (spec/ring-abi.md §8). Context: start-up.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "request.h"
#include "calls.h"
#include "line.h"
#include "register.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maximum size of a request that is read from a file. */
#define STANDING_BYTES_MAX (128 << 10)

/* Whether an item of a request starts with a key and `=`. */
static int has_key(const char *item, const char *end, const char *key)
{
    while (*key != 0 && item < end && *item == *key)
        item++, key++;
    return *key == 0 && item < end && *item == '=';
}
#define PROGRAM_KEY_BYTES (sizeof "program=" - 1)

/* Whether the path of this program matches each `program=` of a line of a request: the whole path if the
 * pattern contains a `/`, else the file name. Not inlined: most requests are for every program, and then
 * this large stack frame is not touched. */
static __attribute__((noinline)) int is_for_this_program(const char *line, const char *end)
{
    char exe[PATH_MAX];
    const ssize_t exe_bytes = lat_i_read_link("/proc/self/exe", exe, sizeof exe - 1);
    exe[exe_bytes > 0 ? exe_bytes : 0] = 0;
    const char *slash = strrchr(exe, '/');
    const char *name = slash != NULL ? slash + 1 : exe;
    while (line < end) {
        const char *stop = lat_i_find(line, end, ';');
        if (has_key(line, stop, "program")) {
            const char *pattern = line + PROGRAM_KEY_BYTES;
            const char *text = lat_i_find(pattern, stop, '/') != stop ? exe : name;
            if (!lat_i_glob_matches(pattern, (size_t)(stop - pattern), text, strlen(text)))
                return 0;
        }
        line = stop < end ? stop + 1 : end;
    }
    return 1;
}

static int line_is_for_this_program(const char *line, const char *end)
{
    for (const char *item = line; item < end; item = lat_i_find(item, end, ';') + 1)
        if (has_key(item, end, "program"))
            return is_for_this_program(line, end);
    return 1;
}

/* Copies the first line of a request that is for this program: spec/ring-abi.md §8. @return whether there
 * was one. */
static int copy_line(const char *text, size_t bytes, char *copy, size_t copy_bytes)
{
    const char *end = text + bytes;
    while (text < end) {
        const char *stop = lat_i_find(text, end, '\n');
        const size_t line = (size_t)(stop - text);
        if (line != 0 && line_is_for_this_program(text, stop)) {
            if (line >= copy_bytes)
                return 0;
            memcpy(copy, text, line);
            copy[line] = 0;
            return 1;
        }
        text = stop < end ? stop + 1 : end;
    }
    return 0;
}

/* Parses a request, spec/ring-abi.md §8; unknown keys are ignored, for later versions. */
static int parse_request(const char *text, size_t bytes, struct lat_i_request *request)
{
    static char copy[2048];
    if (text == NULL || !copy_line(text, bytes, copy, sizeof copy))
        return 0;
    const char *end = copy + strlen(copy);
    for (char *item = copy, *next; item < end; item = next) {
        char *stop = copy + (lat_i_find(item, end, ';') - copy);
        char *value = copy + (lat_i_find(item, stop, '=') - copy);
        next = stop + 1;
        *stop = 0;
        if (value == stop) {
            request->waits |= strcmp(item, "wait") == 0;
            request->locked |= strcmp(item, "lock") == 0;
            request->grows |= strcmp(item, "grow") == 0;
            continue;
        }
        *value++ = 0;
        if (strcmp(item, "session") == 0)
            request->session = lat_i_number_at(value, 16);
        else if (strcmp(item, "recorder") == 0)
            request->recorder = (uint32_t)lat_i_number_at(value, 10);
        else if (strcmp(item, "buffer") == 0)
            request->buffer_bytes = lat_i_number_at(value, 10);
        else if (strcmp(item, "packet") == 0)
            request->packet_bytes = lat_i_number_at(value, 10);
        else if (strcmp(item, "cap") == 0)
            request->cap_bytes = lat_i_number_at(value, 10);
        else if (strcmp(item, "cpus") == 0)
            request->cpus = (uint32_t)lat_i_number_at(value, 10);
        else if (strcmp(item, "prepared") == 0)
            request->prepared = (uint32_t)lat_i_number_at(value, 10);
        else if (strcmp(item, "pidns") == 0)
            request->pid_namespace = lat_i_number_at(value, 10);
        else if (strcmp(item, "mode") == 0)
            request->mode = strcmp(value, "overwrite") == 0 ? LAT_MODE_OVERWRITE : LAT_MODE_DISCARD;
        else if (strcmp(item, "enable") == 0)
            request->enable = value;
    }
    return request->session != 0;
}

/* Whether another process holds a lock on a file. The holder's id is not used. */
static int is_locked(int file)
{
    return lat_i_flock(file, LOCK_SH | LOCK_NB) == -EWOULDBLOCK;
}

/* If the file cannot be seen from here (another mount namespace), the recorder would not see an area
 * either. */
int lat_i_session_lock_open(const struct lat_i_request *request, const char *directory, char *room)
{
    if (!request->locked || directory == NULL)
        return -1;
    struct lat_i_line line = lat_i_line_in(room, PATH_MAX);
    lat_i_line_add(&line, directory);
    lat_i_line_add(&line, "/session-");
    lat_i_line_hex(&line, request->session);
    lat_i_line_add(&line, ".lock");
    if (!lat_i_line_ends(&line))
        return -1;
    return lat_i_open(room, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
}

int lat_i_session_lives(const struct lat_i_request *request, int lock)
{
    return !request->locked || (lock >= 0 && is_locked(lock));
}

/* The kernel reports the holder of a fcntl lock by its pid in the namespace of the
 * caller. In another namespace there is none, or a different one. Reading /proc would take 26 us. */
uint64_t lat_i_session_namespace(const struct lat_i_request *request, int lock)
{
    struct flock asked = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    if (lock < 0 || request->recorder == 0 || lat_i_lock_of(lock, &asked) != 0)
        return 0;
    return asked.l_type == F_WRLCK && asked.l_pid == (pid_t)request->recorder ? request->pid_namespace : 0;
}

void lat_i_session_lock_close(int lock)
{
    if (lock >= 0)
        lat_i_close(lock);
}

int lat_i_request_of_launcher(struct lat_i_request *request)
{
    const char *text = lat_i_variable("LATERALIS_RECORD");
    return parse_request(text, text != NULL ? strlen(text) : 0, request);
}

/* The recorder holds a lock on the file while it records; the file of a killed recorder is
 * ignored. */
int lat_i_request_standing(const char *directory, struct lat_i_request *request)
{
    char path[PATH_MAX];
    struct stat status;
    int asked = 0;
    struct lat_i_line line = lat_i_line_in(path, sizeof path);
    lat_i_line_add(&line, directory);
    lat_i_line_add(&line, "/record.request");
    if (!lat_i_line_ends(&line))
        return 0;
    const int file = lat_i_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0)
        return 0;
    if (lat_i_status_of(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == lat_i_user() &&
        status.st_size > 0 && status.st_size <= STANDING_BYTES_MAX &&
        is_locked(file)) {
        /* Not on the heap: this program's own allocator may be the traced one. */
        const size_t bytes = (size_t)status.st_size;
        char *text = lat_i_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        if (text != NULL) {
            const ssize_t length = lat_i_read(file, text, bytes);
            asked = length > 0 && parse_request(text, (size_t)length, request);
            lat_i_unmap(text, bytes);
        }
    }
    lat_i_close(file);
    return asked;
}
