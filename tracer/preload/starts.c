// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A table of fixed size, searched from a position given by a hash, for at most PROBES slots.
 *
 *     free ─▶ claimed ─▶ starts ─▶ free           a process that executes a program, until that reports
 *                   ├──▶ begun  ─▶ free           its start; or the other order, if its parent is slower
 *                   └──▶ counted                  programs that are not recorded, by reason and name
 *
 * Slots still in the state `starts` when the session ends are programs that were not recorded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "starts.h"
#include "calls.h"
#include "line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Also in crates/recorder/src/linux/unrecorded/table.rs. */
#define SLOT_COUNT 1024u
#define NAME_BYTES 120u
#define PROBES 64u

enum state { FREE = 0, CLAIMED = 1, STARTS = 2, BEGUN = 3, COUNTED = 4 };

struct preload_start {
    uint32_t state; /* an enum state; COUNTED has the reason in bits 8 to 15 */
    uint32_t value; /* STARTS, BEGUN: the process; COUNTED: the number */
    char name[NAME_BYTES];
};
_Static_assert(sizeof(struct preload_start) == 128, "two cache lines, none of them shared");

/* Slot 0 has in `value` the number of notes without a slot. */
static struct preload_start *table;
static char own_session[17]; /* its number in hexadecimal digits; set once, with the table */

int preload_starts_are_counted(void)
{
    return table != NULL;
}

/* The number in a request, and its length; 0 if there is none. Own code, as in line.h: libc's would be pages
 * that a short-lived program does not touch otherwise. */
static int session_of(const char *request, const char **session)
{
    static const char key[] = "session=";
    int digits = 0;
    for (; request != NULL && *request != 0; request++) {
        size_t same = 0;
        while (same < sizeof key - 1 && request[same] == key[same])
            same++;
        if (same < sizeof key - 1)
            continue;
        *session = request + same;
        while (((*session)[digits] >= '0' && (*session)[digits] <= '9') ||
               ((*session)[digits] >= 'a' && (*session)[digits] <= 'f'))
            digits++;
        return digits;
    }
    return 0;
}

int preload_is_of_session(const char *request)
{
    const char *session;
    const int digits = session_of(request, &session);
    return digits > 0 && (size_t)digits == strlen(own_session) &&
           memcmp(session, own_session, (size_t)digits) == 0;
}

void preload_starts_map(void)
{
    const char *folder = lat_i_variable("LATERALIS_DIR"), *session;
    const int digits = session_of(lat_i_variable("LATERALIS_RECORD"), &session);
    const size_t bytes = SLOT_COUNT * sizeof *table;
    struct stat status;
    char path[256];
    if (digits == 0 || (size_t)digits >= sizeof own_session || folder == NULL)
        return;
    struct lat_i_line line = lat_i_line_in(path, sizeof path);
    lat_i_line_add(&line, folder);
    lat_i_line_add(&line, "/unrecorded-");
    lat_i_line_part(&line, session, (size_t)digits);
    if (!lat_i_line_ends(&line))
        return;
    const int file = lat_i_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0)
        return;
    if (lat_i_status_of(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == (off_t)bytes) {
        void *mapped = lat_i_map(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file);
        if (mapped != NULL) {
            memcpy(own_session, session, (size_t)digits);
            table = mapped;
        }
    }
    lat_i_close(file);
}

static uint32_t hash_of(const char *text, uint32_t hash)
{
    for (; *text != 0; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u; /* FNV-1a */
    return hash;
}

/* The slots for a hash, one after the other: 1 … SLOT_COUNT - 1. */
static struct preload_start *slot_at(uint32_t hash, uint32_t probe)
{
    return &table[1 + (hash * 2654435761u + probe) % (SLOT_COUNT - 1)];
}

/* The part of a path after the last slash, which names the program. */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != 0 ? slash + 1 : path;
}

static int claim_slot(struct preload_start *slot, uint32_t expected)
{
    return __atomic_load_n(&slot->state, __ATOMIC_RELAXED) == expected &&
           __atomic_compare_exchange_n(&slot->state, &expected, CLAIMED, 0, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* If no slot is free, reuses one in state BEGUN: system() starts shells without the wrappers. */
static struct preload_start *claim(uint32_t hash, const char *name, uint32_t value, uint32_t state)
{
    for (uint32_t probe = 0; probe < 2 * PROBES; probe++) {
        struct preload_start *slot = slot_at(hash, probe % PROBES);
        if (!claim_slot(slot, probe < PROBES ? FREE : BEGUN))
            continue;
        const size_t length = strnlen(name, NAME_BYTES - 1);
        memcpy(slot->name, name, length);
        slot->name[length] = 0;
        __atomic_store_n(&slot->value, value, __ATOMIC_RELAXED);
        /* Sequentially consistent, like the loads of take(): if start and begin of one process are noted
         * at the same time, at least one of the two sees the other. */
        __atomic_store_n(&slot->state, state, __ATOMIC_SEQ_CST);
        return slot;
    }
    return NULL;
}

/* Frees the slot of a process in a state. @return whether there was one. */
static int take(uint32_t process, uint32_t state)
{
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        struct preload_start *slot = slot_at(process, probe);
        uint32_t expected = state;
        if (__atomic_load_n(&slot->state, __ATOMIC_SEQ_CST) == state &&
            __atomic_load_n(&slot->value, __ATOMIC_RELAXED) == process &&
            __atomic_compare_exchange_n(&slot->state, &expected, FREE, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return 1;
    }
    return 0;
}

static void count_without_slot(void)
{
    __atomic_fetch_add(&table[0].value, 1, __ATOMIC_RELAXED);
}

void preload_not_recorded(char reason, const char *path)
{
    const char *name = file_name(path);
    const uint32_t state = COUNTED | (uint32_t)(unsigned char)reason << 8;
    const uint32_t hash = hash_of(name, (unsigned char)reason);
    if (table == NULL)
        return;
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        struct preload_start *slot = slot_at(hash, probe);
        /* Pair: the store of claim(). A slot in this state never changes it. */
        if (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) == state &&
            strncmp(slot->name, name, NAME_BYTES - 1) == 0) {
            __atomic_fetch_add(&slot->value, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    if (claim(hash, name, 1, state) == NULL)
        count_without_slot();
}

static uint32_t this_process(void)
{
    /* Not the id stored by libc or the tracer: a child of vfork has its parent's memory. */
    return (uint32_t)syscall(SYS_getpid);
}

struct preload_start *preload_starts(const char *path)
{
    if (table == NULL)
        return NULL;
    const uint32_t process = this_process();
    /* A program in this process began before without a noted start: system() starts a shell without the
     * wrappers. */
    (void)take(process, BEGUN);
    struct preload_start *slot = claim(process, file_name(path), process, STARTS);
    if (slot == NULL)
        count_without_slot();
    return slot;
}

void preload_start_failed(struct preload_start *start)
{
    if (start != NULL)
        (void)take(__atomic_load_n(&start->value, __ATOMIC_RELAXED), STARTS);
}

/* Whether children see other pids for themselves than this process does: unshare(CLONE_NEWPID). */
static int children_are_elsewhere(void)
{
    const int saved_errno = errno;
    struct stat own, of_children;
    const int differ =
        syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &own, 0) == 0 &&
        syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid_for_children", &of_children, 0) == 0 &&
        own.st_ino != of_children.st_ino;
    errno = saved_errno;
    return differ;
}

void preload_started(pid_t process, const char *path)
{
    if (table == NULL || process <= 0 || take((uint32_t)process, BEGUN) || children_are_elsewhere())
        return;
    if (claim((uint32_t)process, file_name(path), (uint32_t)process, STARTS) == NULL)
        count_without_slot();
    else if (take((uint32_t)process, BEGUN))
        (void)take((uint32_t)process, STARTS);
}

void preload_has_begun(void)
{
    if (table == NULL)
        return;
    const uint32_t process = this_process();
    if (take(process, STARTS) || claim(process, "", process, BEGUN) == NULL)
        return;
    if (take(process, STARTS))
        (void)take(process, BEGUN);
}
