// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds the directory of areas (spec/ring-abi.md §2). Other users may have taken any name in
 * shared folders: such names are skipped. Keep in step with crates/recorder/src/linux/dirs.rs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "directory.h"
#include "calls.h"
#include "core.h"
#include "line.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Rejects another user's directory, one that others can write, and a link. */
static int is_own_directory(const char *path)
{
    struct stat status;
    return lat_i_status_at(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == lat_i_user() &&
           (status.st_mode & 022) == 0;
}

/* A recorder that requests records has created it. If it is missing, the program sees other mounts, in which
 * nothing may be created. */
static int make_own_directory(const char *path)
{
    const int asked = lat_i_variable("LATERALIS_RECORD") != NULL;
    return (asked || mkdir(path, 0700) == 0 || errno == EEXIST) && is_own_directory(path);
}

/* Number of numbered directories in one place: 1 without a number, then -1 to -9. */
#define NUMBERED_DIRECTORIES 10u
/* Those in /dev/shm, one in /run/user, those in /tmp. */
#define DEFAULT_DIRECTORIES (2 * NUMBERED_DIRECTORIES + 1)

static const char *const shared_folders[2] = {"/dev/shm", "/tmp"};

/* The default directories in the order in which they are tried. */
static void default_directory(char *path, size_t bytes, unsigned number)
{
    const unsigned uid = lat_i_user(), in_memory = number < NUMBERED_DIRECTORIES;
    struct lat_i_line line = lat_i_line_in(path, bytes);
    if (number == NUMBERED_DIRECTORIES) {
        lat_i_line_add(&line, "/run/user/");
        lat_i_line_decimal(&line, uid);
        lat_i_line_add(&line, "/lateralis");
    } else {
        lat_i_line_add(&line, shared_folders[!in_memory]);
        lat_i_line_add(&line, "/lateralis-");
        lat_i_line_decimal(&line, uid);
        number -= in_memory ? 0 : NUMBERED_DIRECTORIES + 1;
        if (number != 0) {
            lat_i_line_add(&line, "-");
            lat_i_line_decimal(&line, number);
        }
    }
    lat_i_line_ends(&line);
}

void lat_i_entries_each(const char *path, unsigned blocks,
                        int (*look)(int directory, const char *name, void *argument),
                        void *argument)
{
    struct entry { /* of getdents64 */
        uint64_t inode;
        int64_t offset;
        uint16_t bytes;
        uint8_t type;
        char name[];
    };
    _Alignas(8) char entries[2048];
    const int directory = lat_i_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);
    if (directory < 0)
        return;
    int goes_on = 1;
    for (unsigned block = 0; goes_on && (blocks == 0 || block < blocks); block++) {
        const long length = syscall(SYS_getdents64, directory, entries, sizeof entries);
        if (length <= 0)
            break;
        for (long at = 0; goes_on && at < length;) {
            const struct entry *entry = (const struct entry *)(const void *)(entries + at);
            goes_on = look(directory, entry->name, argument);
            at += entry->bytes;
        }
    }
    lat_i_close(directory);
}

/* A directory that was created because all predictable names were taken. */
struct found {
    const char *parent;
    char prefix[32];
    char *path;
    size_t bytes;
    char first[PATH_MAX]; /* empty: none yet */
};

/* Of several, the first by name, like the recorder. */
static int look_at_entry(int directory, const char *name, void *argument)
{
    struct found *found = argument;
    (void)directory;
    if (strncmp(name, found->prefix, strlen(found->prefix)) != 0)
        return 1;
    struct lat_i_line line = lat_i_line_in(found->path, found->bytes);
    lat_i_line_add(&line, found->parent);
    lat_i_line_add(&line, "/");
    lat_i_line_add(&line, name);
    if (lat_i_line_ends(&line) && strlen(found->path) < sizeof found->first &&
        is_own_directory(found->path) &&
        (found->first[0] == 0 || strcmp(found->path, found->first) < 0))
        memcpy(found->first, found->path, strlen(found->path) + 1);
    return 1;
}

static int find_directory(char *path, size_t bytes)
{
    struct found found = {.path = path, .bytes = bytes};
    struct lat_i_line prefix = lat_i_line_in(found.prefix, sizeof found.prefix);
    lat_i_line_add(&prefix, "lateralis-");
    lat_i_line_decimal(&prefix, geteuid());
    lat_i_line_add(&prefix, "-");
    lat_i_line_ends(&prefix);
    for (unsigned folder = 0; folder < 2; folder++) {
        found.parent = shared_folders[folder];
        lat_i_entries_each(found.parent, 0, look_at_entry, &found);
        if (found.first[0] != 0) {
            struct lat_i_line line = lat_i_line_in(path, bytes);
            lat_i_line_add(&line, found.first);
            return lat_i_line_ends(&line);
        }
    }
    return 0;
}

/* No other user can have taken a name that contains the clock's time. */
static int make_unguessed_directory(char *path, size_t bytes)
{
    for (unsigned folder = 0; folder < 2; folder++) {
        struct lat_i_line line = lat_i_line_in(path, bytes);
        lat_i_line_add(&line, shared_folders[folder]);
        lat_i_line_add(&line, "/lateralis-");
        lat_i_line_decimal(&line, geteuid());
        lat_i_line_add(&line, "-");
        lat_i_line_hex(&line, lat_i_clock() << 16 ^ (uint64_t)(uint32_t)getpid());
        if (lat_i_line_ends(&line) && make_own_directory(path))
            return 1;
    }
    return 0;
}

int lat_i_area_directory(char *path, size_t bytes)
{
    const char *given = lat_i_variable("LATERALIS_DIR");
    if (given != NULL && given[0] != 0) {
        struct lat_i_line line = lat_i_line_in(path, bytes);
        lat_i_line_add(&line, given);
        return lat_i_line_ends(&line) && make_own_directory(path);
    }
    /* An existing one takes precedence over one that can be created: recorder and program still find the same
     * when another user removes a name. */
    for (unsigned number = 0; number < DEFAULT_DIRECTORIES; number++) {
        default_directory(path, bytes, number);
        if (is_own_directory(path))
            return 1;
    }
    if (find_directory(path, bytes))
        return 1;
    for (unsigned number = 0; number < DEFAULT_DIRECTORIES; number++) {
        default_directory(path, bytes, number);
        if (make_own_directory(path))
            return 1;
    }
    return make_unguessed_directory(path, bytes);
}
