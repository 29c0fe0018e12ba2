// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The Linux port: identifies the writing thread and its CPU, handles threads, forks and exits. area.c makes
 * the area. Set-up may use libc; the functions called by the slow path of an event
 * (lat_i_port_*) are async-signal-safe and leave errno alone.
 *
 * The traced program must not be affected: nothing here prints, waits, or fails visibly. If
 * something is missing, `lat_i_area.header` stays NULL and every event stays
 * disabled.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core.h"
#include "area.h"
#include "calls.h"
#include "register.h"
#include "request.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Facts about this process, cached so that no system call is needed while the program runs: a
 * sandboxed program (seccomp) is killed for an unexpected system call. Written
 * at start and in a forked child, which has one thread.
 */
static uint32_t this_pid;
static uint32_t parent_pid;
static char process_name[16];   /* of the first thread, as far as it was reported */
static uint32_t announced_pid;  /* process whose PROCESS record was requested */
static int libc_has_thread;     /* libc's id of a thread is the kernel's */
/* Not 0 in the process that wrote the above. The kernel clears it in a process that was forked
 * without running the handlers; NULL where that is not supported. */
static volatile uint32_t *not_forked_unseen;
static pthread_key_t thread_end_key;
static int thread_end_key_made;

/* Name of this thread, if it was reported or read. */
static __thread char thread_name[16] __attribute__((tls_model("initial-exec")));
int lat_i_names_are_told;

/* ---- called by the core (core.h) ---------------------------------------- */

#if defined(__GLIBC__)
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
#endif

/* The beginning of struct rseq [rseq(2)]. */
struct rseq_begin {
    uint32_t cpu_id_start;
    uint32_t cpu_id;
    uint64_t sequence; /* descriptor of the restartable sequence begun last */
};

#if defined(__x86_64__) || defined(__aarch64__)
/* Receives the descriptors of sites while no restartable sequences are used: sites store them
 * before they check, and lat_i_state.rseq_offset must never point into the thread's own data. */
static __thread volatile struct rseq_begin no_rseq
    __attribute__((tls_model("initial-exec"))) = {0, UINT32_MAX, 0};

static char *thread_pointer(void)
{
    char *pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

static volatile struct rseq_begin *rseq_of_thread(void)
{
    return (volatile struct rseq_begin *)(void *)(thread_pointer() + lat_i_state.rseq_offset);
}

static void use_no_rseq(void)
{
    lat_i_state.rseq_offset = (const volatile char *)&no_rseq - thread_pointer();
}

int lat_i_port_cpu(void)
{
    return (int)rseq_of_thread()->cpu_id; /* negative while not registered */
}

void lat_i_port_sequence_over(void)
{
    rseq_of_thread()->sequence = 0;
}
#else
void lat_i_port_sequence_over(void)
{
}
static void use_no_rseq(void)
{
}
int lat_i_port_cpu(void)
{
    return -1;
}
int lat_i_rseq_stores(struct lat_ring *ring, uint32_t cpu, uint64_t expect,
                      const struct lat_i_store *stores, uint64_t count, uint64_t *target,
                      uint64_t value)
{
    (void)ring, (void)cpu, (void)expect, (void)stores, (void)count, (void)target, (void)value;
    return 0; /* never called: this machine has per-thread rings */
}
int lat_i_rseq_record(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *place,
                      uint64_t id, const struct lat_i_piece *pieces, uint64_t count,
                      uint64_t cursor)
{
    (void)ring, (void)cpu, (void)expect, (void)place, (void)id, (void)pieces, (void)count,
        (void)cursor;
    return 0;
}
int lat_i_rseq_count(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *counter)
{
    (void)ring, (void)cpu, (void)expect, (void)counter;
    return 0;
}
#endif

int lat_i_rseq_works(void)
{
#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
    /* glibc 2.35 and later registers every thread; 0 where the kernel refused. */
    if (&__rseq_size == NULL || &__rseq_offset == NULL || __rseq_size == 0)
        return 0;
    lat_i_state.rseq_offset = __rseq_offset;
    if (lat_i_port_cpu() >= 0)
        return 1;
    use_no_rseq();
    return 0;
#else
    return 0;
#endif
}

static struct lat_area_process *processes(void)
{
    return (struct lat_area_process *)(void *)((char *)lat_i_area.header +
                                               LAT_AREA_PROCESSES_OFFSET);
}

/* Whether no process ever took the slot. The first free slot is taken, and slots keep their pids, so no slot
 * after this one is in use. (The rest of the table are three pages that most programs never touch.) */
static int never_taken(const struct lat_area_process *slot, uint32_t state)
{
    return state == LAT_SLOT_FREE && __atomic_load_n(&slot->pid, __ATOMIC_RELAXED) == 0;
}

static void copy_name(char to[16], const char *from)
{
    uint32_t at = 0;
    for (; at < 15 && from[at] != 0; at++)
        to[at] = from[at];
    to[at] = 0;
}

static void ask_thread_name(char name[16])
{
    if (syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) != 0)
        name[0] = 0;
    name[15] = 0;
}

/* libc derives a thread's clock from its id, without a system call [clock_gettime of Linux: an id
 * below 0 is ~id << 3 plus the kind of clock]. Returns 0 if libc does not know. */
static uint32_t thread_by_libc(pthread_t handle)
{
    clockid_t clock;
    if (pthread_getcpuclockid(handle, &clock) != 0 || clock >= 0)
        return 0;
    return ~(uint32_t)(clock >> 3);
}

/* For a process that was forked without the handlers: sets up its ids with system calls. libc's id
 * of its first thread is not used again, because it may be the parent's. */
static void look_who_this_is(void)
{
    const uint32_t pid = (uint32_t)syscall(SYS_getpid);
    if (pid != this_pid) {
        libc_has_thread = 0;
        this_pid = pid;
        parent_pid = (uint32_t)syscall(SYS_getppid);
        ask_thread_name(process_name);
        lat_i_register_process();
    }
    if (not_forked_unseen != NULL)
        *not_forked_unseen = 1;
}

uint32_t lat_i_this_process(void)
{
    const int saved_errno = errno;
    if (lat_i_area.header != NULL && (not_forked_unseen == NULL || *not_forked_unseen == 0))
        look_who_this_is();
    errno = saved_errno;
    return this_pid;
}

uint32_t lat_i_thread_of(pthread_t handle)
{
    return libc_has_thread ? thread_by_libc(handle) : 0;
}

uint32_t lat_i_this_thread(void)
{
    uint32_t thread = libc_has_thread ? thread_by_libc(pthread_self()) : 0;
    if (thread == 0)
        thread = (uint32_t)syscall(SYS_gettid); /* cannot fail */
    return thread;
}

/* Async-signal-safe. A process without a slot still has its PROCESS record in the trace. */
void lat_i_register_process(void)
{
    struct lat_area_process *table = processes();
    for (uint32_t i = 0; i < LAT_AREA_PROCESS_COUNT; i++) {
        struct lat_area_process *slot = &table[i];
        uint32_t state = LAT_SLOT_FREE;
        if (!__atomic_compare_exchange_n(&slot->state, &state, LAT_SLOT_CLAIMED, 0,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        copy_name(slot->name, process_name);
        slot->pid = this_pid;
        slot->parent_pid = parent_pid;
        slot->patch_table = (uint64_t)(uintptr_t)lat_i_patch_tables;
        __atomic_store_n(&slot->state, LAT_SLOT_READY, __ATOMIC_RELEASE); /* pair R2 */
        return;
    }
    __atomic_fetch_add(&lat_i_area.header->lost_processes, 1, __ATOMIC_RELAXED);
}

int lat_i_port_thread_begin(void)
{
    if (lat_i_area.kind == LAT_RING_PER_CPU && lat_i_port_cpu() < 0)
        return 0;
    const uint32_t pid = lat_i_this_process();
    const int first = __atomic_exchange_n(&announced_pid, pid, __ATOMIC_RELAXED) != pid;
    lat_i_thread.pid = pid;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a handler that sees the id sees the pid */
    lat_i_thread.writer = lat_i_this_thread();
    return first ? LAT_I_FIRST_OF_PROCESS : LAT_I_THREAD_READY;
}

uint32_t lat_i_port_parent_pid(void)
{
    return parent_pid;
}

void lat_i_port_thread_claimed(void)
{
    /* The key was created at start, so its slot is in the thread
     * block itself: setting it allocates nothing. */
    if (thread_end_key_made)
        pthread_setspecific(thread_end_key, &lat_i_thread);
}

/* Names given to threads by other threads, kept until the named thread first writes. Best effort: if there is
 * no room, or a name is read while it is overwritten, the trace lacks that name. */
#define NAMED_COUNT 64u
static struct {
    uint32_t thread; /* 0: free (release, acquire: pair of itself) */
    char name[16];
} named[NAMED_COUNT];
static uint32_t next_named; /* relaxed */

void lat_i_name_thread(uint32_t thread, const char *name)
{
    const uint32_t at = __atomic_fetch_add(&next_named, 1, __ATOMIC_RELAXED) % NAMED_COUNT;
    if (lat_i_area.header == NULL || thread == 0)
        return;
    __atomic_store_n(&named[at].thread, 0, __ATOMIC_RELEASE);
    copy_name(named[at].name, name);
    __atomic_store_n(&named[at].thread, thread, __ATOMIC_RELEASE);
    lat_i_tell_thread_name(thread, named[at].name);
}

static void take_name_by_other(void)
{
    for (uint32_t at = 0; lat_i_thread.writer != 0 && at < NAMED_COUNT; at++) {
        if (__atomic_load_n(&named[at].thread, __ATOMIC_ACQUIRE) != lat_i_thread.writer)
            continue;
        copy_name(thread_name, named[at].name);
        __atomic_store_n(&named[at].thread, 0, __ATOMIC_RELEASE);
    }
}

/* Calls the kernel only if the name of the thread was not reported: not for the first thread of a process,
 * and not with the preload library, which sees thread starts and renames. */
void lat_i_port_thread_name(char name[16])
{
    const int saved_errno = errno;
    take_name_by_other();
    if (thread_name[0] == 0 &&
        (lat_i_names_are_told || lat_i_thread.writer == lat_i_thread.pid))
        copy_name(thread_name, process_name);
    if (thread_name[0] == 0)
        ask_thread_name(thread_name);
    copy_name(name, thread_name);
    errno = saved_errno;
}

void lat_i_port_process_name(char name[16])
{
    copy_name(name, process_name);
}

const char *lat_i_name_of_thread(void)
{
    return thread_name[0] != 0 ? thread_name : process_name;
}

/* The name of the first thread is the name of its process. */
static void name_process(const char *name)
{
    struct lat_area_process *table = processes();
    copy_name(process_name, name);
    for (uint32_t i = 0; i < LAT_AREA_PROCESS_COUNT; i++) {
        const uint32_t state = __atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE); /* pair R2 */
        if (never_taken(&table[i], state))
            break;
        if (state == LAT_SLOT_READY && table[i].pid == this_pid)
            copy_name(table[i].name, name);
    }
}

void lat_i_begin_thread(const char *name)
{
    copy_name(thread_name, name);
}

void lat_i_rename_thread(const char *name)
{
    if (lat_i_area.header == NULL)
        return;
    copy_name(thread_name, name);
    if (lat_i_this_thread() == lat_i_this_process())
        name_process(name);
    if (lat_i_thread.writer != 0)
        lat_i_tell_thread_name(lat_i_thread.writer, thread_name);
}

static void thread_ended(void *unused)
{
    (void)unused;
    lat_i_thread_end();
}

/* ---- forks, start and end ---------------------------------------------- */

/* Holds the lock across fork, so that no registration is half done in the child. */
static int forked_by_first; /* thread of its process; under the lock */
static void before_fork(void)
{
    lat_i_register_lock();
    lat_i_area_alone = 0;
    forked_by_first = lat_i_this_thread() == this_pid;
}
static void forked_parent(void)
{
    lat_i_register_unlock();
}
static void forked_child(void)
{
    const int saved_errno = errno;
    lat_i_register_unlock();
    lat_i_thread_forked();
    memset(named, 0, sizeof named);
    if (lat_i_area.header != NULL) {
        parent_pid = this_pid;
        this_pid = lat_i_this_thread();
        if (thread_name[0] != 0)
            copy_name(process_name, thread_name);
        else if (!lat_i_names_are_told && !forked_by_first)
            ask_thread_name(process_name);
        if (not_forked_unseen != NULL)
            *not_forked_unseen = 1;
        lat_i_register_process();
    }
    errno = saved_errno;
}

/* Joins the area that programs share. If a launcher requests records, the first program makes it, and one
 * that cannot join makes an area of its own: none is left out of the recording. */
static void join_or_make(const char *path, uint64_t text_bytes)
{
    const int requested = lat_i_launcher_asks();
    lat_i_area_join(path);
    if (lat_i_area.header == NULL && requested)
        lat_i_area_make(path, text_bytes);
    if (lat_i_area.header == NULL && requested)
        lat_i_area_join(path); /* another program has made it meanwhile */
    if (lat_i_area.header == NULL && requested)
        lat_i_area_make(NULL, text_bytes);
}

static void look_who_starts(void)
{
    void *page;
    this_pid = (uint32_t)syscall(SYS_getpid);
    parent_pid = (uint32_t)syscall(SYS_getppid);
    const uint32_t thread = (uint32_t)syscall(SYS_gettid);
    libc_has_thread = thread_by_libc(pthread_self()) == thread;
    ask_thread_name(thread == this_pid ? process_name : thread_name);
    if (process_name[0] == 0)
        copy_name(process_name, thread_name);
#ifdef MADV_WIPEONFORK
    page = lat_i_map(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (page != NULL && lat_i_advise(page, 4096, MADV_WIPEONFORK) == 0) {
        not_forked_unseen = (volatile uint32_t *)page;
        *not_forked_unseen = 1;
    } else if (page != NULL) {
        lat_i_unmap(page, 4096);
    }
#else
    (void)page;
#endif
}

void lat_i_port_start(uint64_t text_bytes)
{
    static int started;
    const int saved_errno = errno;
    const char *shared = lat_i_variable("LATERALIS_AREA");
    if (started)
        return;
    started = 1;
    use_no_rseq();
    if (getauxval(AT_SECURE) == 0 && lat_i_variable("LATERALIS_DISABLE") == NULL) {
        thread_end_key_made = pthread_key_create(&thread_end_key, thread_ended) == 0;
        pthread_atfork(before_fork, forked_parent, forked_child);
        look_who_starts();
        if (shared != NULL && shared[0] != 0)
            join_or_make(shared, text_bytes);
        else
            lat_i_area_make(NULL, text_bytes);
        /* Otherwise the first event would make the rings accessible. */
        lat_i_rings_usable();
    }
    errno = saved_errno;
}

/* Normal exit: marks the area as over, without system calls. The recorder removes the area; without a
 * recorder, the next program that makes an area, or lat, removes areas that are over. */
static __attribute__((destructor(101))) void process_ends(void)
{
    struct lat_area_header *header = lat_i_area.header;
    const int saved_errno = errno;
    const int forked_unseen = not_forked_unseen != NULL && *not_forked_unseen == 0;
    int others = 0;
    struct lat_area_process *table = header != NULL ? processes() : NULL;
    /* A process that was forked without the handlers, and wrote nothing, has no slot to release. */
    for (uint32_t i = 0; header != NULL && !forked_unseen && i < LAT_AREA_PROCESS_COUNT; i++) {
        const uint32_t state = __atomic_load_n(&table[i].state, __ATOMIC_ACQUIRE);
        if (never_taken(&table[i], state))
            break;
        if (state != LAT_SLOT_READY)
            continue;
        if (table[i].pid == this_pid)
            __atomic_store_n(&table[i].state, LAT_SLOT_FREE, __ATOMIC_RELEASE);
        else
            others = 1;
    }
    /* A shared area remains for the next program while its recorder needs it. An area that had no slot for
     * some process cannot determine whether that process is still running. */
    if (header != NULL && !forked_unseen && !others && header->lost_processes == 0 &&
        (!lat_i_area_shared || header->session == 0))
        __atomic_store_n(&header->state, LAT_AREA_EXITED, __ATOMIC_RELEASE); /* pair R2 */
    /* This may be the unloading of a plug-in that contains the tracer, while threads continue to run. */
    if (thread_end_key_made)
        pthread_key_delete(thread_end_key);
    thread_end_key_made = 0;
    errno = saved_errno;
}
