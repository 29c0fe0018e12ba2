// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The allocator: that of the C library, or the one that the program is linked with.
 *
 * A block is recorded after it was allocated and before it is freed: another thread may get
 * the same address at once. Functions built on these (reallocarray, strdup, operator
 * new) appear as these, called from their library.
 *
 * Context: as for the real ones; also before any constructor and inside of the dynamic linker.
 */
#include "real.h"

#include <malloc.h>
#include <stdlib.h>

/* `...`: the fields of the event after the process. */
#define MADE(event, block, size, ...)                                                            \
    do {                                                                                         \
        if (LAT_I_LIKELY((block) != NULL))                                                       \
            RECORD(event, PRELOAD_ADDRESS(block), size, PRELOAD_CALLER,                          \
                   preload_process() __VA_ARGS__);                                               \
        else                                                                                     \
            RECORD(malloc_failed, size, PRELOAD_CALLER);                                         \
    } while (0)

PRELOAD_EXPORT void *malloc(size_t size)
{
    void *block = REAL(malloc)(size);
    MADE(malloc_malloc, block, size);
    return block;
}

PRELOAD_EXPORT void *calloc(size_t count, size_t size)
{
    void *block = REAL(calloc)(count, size);
    MADE(malloc_calloc, block, count * size);
    return block;
}

PRELOAD_EXPORT void free(void *block)
{
    if (block != NULL)
        RECORD(malloc_free, PRELOAD_ADDRESS(block), PRELOAD_CALLER, preload_process());
    REAL(free)(block);
}

PRELOAD_EXPORT void *realloc(void *old, size_t size)
{
    const uint64_t old_address = PRELOAD_ADDRESS(old);
    if (old != NULL)
        RECORD(malloc_realloc_from, old_address, PRELOAD_CALLER, preload_process());
    void *block = REAL(realloc)(old, size);
    if (LAT_I_LIKELY(block != NULL)) {
        RECORD(malloc_realloc_to, PRELOAD_ADDRESS(block), size, PRELOAD_CALLER, preload_process());
    } else if (size != 0) {
        if (old_address != 0)
            RECORD(malloc_realloc_to, old_address, size, PRELOAD_CALLER, preload_process());
        RECORD(malloc_failed, size, PRELOAD_CALLER);
    }
    return block;
}

#define ALIGNED(block, size, align)                                                              \
    MADE(malloc_aligned, block, size, , (uint32_t)((align) < UINT32_MAX ? (align) : UINT32_MAX))

PRELOAD_EXPORT int posix_memalign(void **result, size_t align, size_t size)
{
    const int error = REAL(posix_memalign)(result, align, size);
    void *block = error == 0 ? *result : NULL;
    ALIGNED(block, size, align);
    return error;
}

PRELOAD_EXPORT void *aligned_alloc(size_t align, size_t size)
{
    void *block = REAL(aligned_alloc)(align, size);
    ALIGNED(block, size, align);
    return block;
}

PRELOAD_EXPORT void *memalign(size_t align, size_t size)
{
    void *block = REAL(memalign)(align, size);
    ALIGNED(block, size, align);
    return block;
}

/* Both align to the page size, which the 0 represents. */
PRELOAD_EXPORT void *valloc(size_t size)
{
    void *block = REAL(valloc)(size);
    ALIGNED(block, size, 0u);
    return block;
}

PRELOAD_EXPORT void *pvalloc(size_t size)
{
    void *block = REAL(pvalloc)(size);
    ALIGNED(block, size, 0u);
    return block;
}
