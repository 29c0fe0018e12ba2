// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds the wrapped functions.
 *
 * Every pointer initially points to a function that looks up all of them and then
 * calls the real one, so there is no order of initialisation to get wrong:
 * the allocator is called by the dynamic linker and by constructors of other libraries long
 * before those of this library. Its constructor also runs the lookup, so that later none happens in a signal
 * handler or between fork and exec.
 *
 * The lookup allocates nothing and calls nothing that the program could have replaced (symbols.h): the
 * first caller of a wrapper may be the program's own allocator, holding its lock.
 */
#include "real.h"

#include "area.h"
#include "symbols.h"
#include "thread.h"

__thread unsigned preload_quiet __attribute__((tls_model("initial-exec")));

/* Next to the pointers, in memory that is written anyway. */
static int has_searched __attribute__((section(".data"))) = 0; /* release, acquire: pair of itself */
static void search(void);

#define RETURNS_VALUE(type, name, parameters, arguments, absent)                                 \
    static type first_##name parameters                                                          \
    {                                                                                            \
        search();                                                                                \
        if (REAL(name) == first_##name)                                                          \
            return absent;                                                                       \
        return REAL(name) arguments;                                                             \
    }

PRELOAD_ALLOCATION(RETURNS_VALUE)
PRELOAD_LOCKS(RETURNS_VALUE)
PRELOAD_FILES(RETURNS_VALUE)
PRELOAD_STREAMS(RETURNS_VALUE)
PRELOAD_SOCKETS(RETURNS_VALUE)
PRELOAD_POLLS(RETURNS_VALUE)
PRELOAD_THREADS(RETURNS_VALUE)
PRELOAD_PROGRAMS(RETURNS_VALUE)

#define FIRST(type, name, parameters, arguments, absent) .name = first_##name,
struct preload_real preload_real = {PRELOAD_FUNCTIONS(FIRST)};

/* Several threads may do this at the same time, with the same result. A function that was not found does not
 * exist; later a library could be unloaded meanwhile. */
static void search(void)
{
    if (__atomic_load_n(&has_searched, __ATOMIC_ACQUIRE))
        return;
    /* Not an array of pointers: each would have to be relocated in each program that starts. */
#define NAME(type, name, parameters, arguments, absent) #name "\0"
    static const char names[] = PRELOAD_FUNCTIONS(NAME);
#define ONE(type, name, parameters, arguments, absent) +1
    struct preload_symbol found[0 PRELOAD_FUNCTIONS(ONE)];
    uint32_t numbers[sizeof found / sizeof found[0]];
    const struct preload_symbol *next = found;
    preload_find_next(names, found, numbers, sizeof found / sizeof found[0]);
#define TAKE(type, name, parameters, arguments, absent)                                          \
    {                                                                                            \
        union {                                                                                  \
            void *object;                                                                        \
            type(*function) parameters;                                                          \
        } one = {(next++)->address};                                                             \
        if (one.object != NULL)                                                                  \
            __atomic_store_n(&preload_real.name, one.function, __ATOMIC_RELAXED);                \
    }
    PRELOAD_FUNCTIONS(TAKE)
    /* Pair: the load above. Release: a thread that sees it also sees the functions. */
    __atomic_store_n(&has_searched, 1, __ATOMIC_RELEASE);
}

uint32_t preload_thread_slow(void)
{
    return lat_i_this_thread();
}
uint32_t preload_process_slow(void)
{
    return lat_i_this_process();
}

/* ---- set-up and fork ---------------------------------------------------------- */

/* Subsystems with thousands of events before the recorder can poll the rings. */
static const char *const frequent[] = {"malloc", "mutex", NULL};

/* Around the generated constructors (priority 200), which use locks and files. */
static __attribute__((constructor(101))) void setup_begins(int count, char **arguments)
{
    (void)count;
    preload_quiet++;
    lat_i_names_are_told = 1;
    lat_i_frequent_subsystems = frequent;
    lat_i_arguments = arguments; /* the GNU C library passes them to constructors */
    search();
}

static void before_fork(void)
{
    preload_quiet++;
}
static void after_fork(void)
{
    preload_quiet--;
}
static void after_fork_in_child(void)
{
    preload_threads_forked();
    preload_quiet--;
}

static __attribute__((constructor(300))) void setup_ends(void)
{
    const int saved_errno = errno;
    /* Registered after the tracer's own handlers, so that this runs first before the fork and last
     * after it: the locks that other handlers acquire in the parent and release in the child
     * would otherwise look unpaired. */
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    errno = saved_errno;
    preload_quiet--;
}
