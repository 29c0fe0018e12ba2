// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The pool of bootstrap.h: each block has its size in front of it. */
#include "bootstrap.h"

#include <errno.h>
#include <string.h>

unsigned char preload_bootstrap_pool[PRELOAD_BOOTSTRAP_BYTES] __attribute__((aligned(64)));
static size_t used;

static size_t size_of(const void *block)
{
    size_t size;
    memcpy(&size, (const unsigned char *)block - sizeof size, sizeof size);
    return size;
}

void *preload_bootstrap(size_t align, size_t size)
{
    if (align < 16)
        align = 16;
    if (size <= PRELOAD_BOOTSTRAP_BYTES && align <= PRELOAD_BOOTSTRAP_BYTES / 2) {
        const size_t needed = size + align + sizeof size;
        size_t start = __atomic_load_n(&used, __ATOMIC_RELAXED);
        /* Relaxed: the bytes handed out are this thread's alone. Pair: other threads' calls. */
        do {
            if (start + needed > PRELOAD_BOOTSTRAP_BYTES) {
                errno = ENOMEM;
                return NULL;
            }
        } while (!__atomic_compare_exchange_n(&used, &start, start + needed, 1, __ATOMIC_RELAXED,
                                              __ATOMIC_RELAXED));
        const uintptr_t pool = (uintptr_t)preload_bootstrap_pool;
        const uintptr_t first = pool + start + sizeof size;
        const uintptr_t place = (first + align - 1) & ~(uintptr_t)(align - 1);
        unsigned char *block = preload_bootstrap_pool + (place - pool);
        memcpy(block - sizeof size, &size, sizeof size);
        return block;
    }
    errno = ENOMEM;
    return NULL;
}

void preload_bootstrap_copy(void *to, const void *block, size_t size)
{
    const size_t had = size_of(block);
    memcpy(to, block, had < size ? had : size);
}

void *preload_bootstrap_again(void *old, size_t size)
{
    void *block = preload_bootstrap(16, size);
    if (block != NULL && old != NULL)
        preload_bootstrap_copy(block, old, size);
    return block;
}
