// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds the functions behind the wrappers.
 *
 * Every pointer first leads to a function that searches for all of them and then
 * goes on to the real one, so there is no order of initialisation to get wrong:
 * the allocator is called by the dynamic linker and by constructors of other libraries long
 * before ours. Ours searches too, so that afterwards nobody searches in a signal handler or between
 * fork and exec.
 *
 * The search allocates nothing and calls nothing that the program could have replaced (symbols.h): the
 * one who calls a wrapper first may be the program's own allocator, with its lock held.
 */
#include "real.h"

#include "area.h"
#include "symbols.h"
#include "thread.h"

__thread unsigned preload_quiet __attribute__((tls_model("initial-exec")));

/* Beside the functions, in memory that is written anyway. */
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

/* Several threads may do this at the same moment: they find the same. What was not found once does not
 * exist, and libraries may be unloaded later. */
static void search(void)
{
    if (__atomic_load_n(&has_searched, __ATOMIC_ACQUIRE))
        return;
    /* No array of pointers: each would have to be relocated in each program that starts. */
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
    /* Pair: the load above. Release: who sees it sees the functions. */
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

/* Of which a program has thousands before anybody can look at its rings. */
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
    /* Behind the tracer's own registration, so that this runs first before the fork and last
     * after it: the locks that other handlers take in the parent and release in the child
     * would look unpaired. */
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
    errno = saved_errno;
    preload_quiet--;
}
