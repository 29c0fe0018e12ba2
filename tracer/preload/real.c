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
 * dlsym may itself allocate. While this thread searches, allocation is served from a small
 * pool (bootstrap.h) unless the real function is known already.
 */
#include "real.h"

#include "bootstrap.h"
#include "thread.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread unsigned preload_quiet __attribute__((tls_model("initial-exec")));
static __thread unsigned searching __attribute__((tls_model("initial-exec")));

static void search(void);

#define RETURNS_VALUE(type, name, parameters, arguments, absent)                                 \
    static type first_##name parameters                                                          \
    {                                                                                            \
        if (!searching)                                                                          \
            search();                                                                            \
        if (REAL(name) == first_##name)                                                          \
            return absent;                                                                       \
        return REAL(name) arguments;                                                             \
    }

/* The allocator's first functions know what to do meanwhile. */
static void *first_malloc(size_t size)
{
    if (!searching)
        search();
    return REAL(malloc) == first_malloc ? preload_bootstrap(16, size) : REAL(malloc)(size);
}
static void *first_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!searching)
        search();
    if (REAL(calloc) != first_calloc)
        return REAL(calloc)(count, size);
    /* The pool was never used before: it is zero. */
    return __builtin_mul_overflow(count, size, &bytes) ? NULL : preload_bootstrap(16, bytes);
}
static void *first_realloc(void *old, size_t size)
{
    if (!searching)
        search();
    return REAL(realloc) == first_realloc ? preload_bootstrap_again(old, size)
                                          : REAL(realloc)(old, size);
}
static void first_free(void *block)
{
    if (!searching)
        search();
    if (REAL(free) != first_free)
        REAL(free)(block);
    /* Otherwise it is from the pool, which takes nothing back. */
}
static int first_posix_memalign(void **block, size_t align, size_t size)
{
    if (!searching)
        search();
    if (REAL(posix_memalign) != first_posix_memalign)
        return REAL(posix_memalign)(block, align, size);
    void *found = preload_bootstrap(align, size);
    if (found == NULL)
        return ENOMEM;
    *block = found;
    return 0;
}
#define RETURNS_ALIGNED(name)                                                                    \
    static void *first_##name(size_t align, size_t size)                                         \
    {                                                                                            \
        if (!searching)                                                                          \
            search();                                                                            \
        return REAL(name) == first_##name ? preload_bootstrap(align, size)                       \
                                          : REAL(name)(align, size);                             \
    }
RETURNS_ALIGNED(aligned_alloc)
RETURNS_ALIGNED(memalign)
RETURNS_VALUE(void *, valloc, (size_t size), (size), NULL)
RETURNS_VALUE(void *, pvalloc, (size_t size), (size), NULL)
PRELOAD_LOCKS(RETURNS_VALUE)
PRELOAD_FILES(RETURNS_VALUE)
PRELOAD_STREAMS(RETURNS_VALUE)
PRELOAD_SOCKETS(RETURNS_VALUE)
PRELOAD_POLLS(RETURNS_VALUE)
PRELOAD_THREADS(RETURNS_VALUE)

#define FIRST(type, name, parameters, arguments, absent) .name = first_##name,
struct preload_real preload_real = {PRELOAD_FUNCTIONS(FIRST)};

/*
 * What the program would have found without us. Condition variables changed their layout in
 * glibc 2.3.2; the x86-64 library still has the older functions under the same names, and no
 * program for which this library can be loaded wants those.
 */
static void *next(const char *name)
{
    static const char conditions[] = "pthread_cond_";
    void *found = NULL;
    if (strncmp(name, conditions, sizeof conditions - 1) == 0)
        found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
    return found != NULL ? found : dlsym(RTLD_NEXT, name);
}

#define FIND(type, name, parameters, arguments, absent)                                          \
    {                                                                                            \
        union {                                                                                  \
            void *object;                                                                        \
            type(*function) parameters;                                                          \
        } found = {next(#name)};                                                                 \
        if (found.object != NULL)                                                                \
            __atomic_store_n(&preload_real.name, found.function, __ATOMIC_RELAXED);              \
    }

/* Several threads may do this at the same moment: they find the same. */
static void search(void)
{
    const int saved_errno = errno;
    searching = 1;
    PRELOAD_FUNCTIONS(FIND)
    /* A function that this C library does not have leaves a message for the program to find. */
    dlerror();
    searching = 0;
    errno = saved_errno;
}

uint32_t preload_thread_slow(void)
{
    return (uint32_t)syscall(SYS_gettid); /* can not fail */
}
uint32_t preload_process_slow(void)
{
    return (uint32_t)syscall(SYS_getpid);
}

/* ---- set-up and fork ---------------------------------------------------------- */

/* Around the generated constructors (priority 200), which use locks and files. */
static __attribute__((constructor(101))) void setup_begins(void)
{
    preload_quiet++;
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
