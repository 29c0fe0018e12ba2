// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Memory for allocations that are made while the allocator is being searched for. */
#ifndef PRELOAD_BOOTSTRAP_H
#define PRELOAD_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#define PRELOAD_BOOTSTRAP_BYTES 32768u
__attribute__((visibility("hidden"))) extern unsigned char
    preload_bootstrap_pool[PRELOAD_BOOTSTRAP_BYTES];

/** Zeroed memory that is never given back; NULL and ENOMEM when the pool is used up.
 * Context: any thread. `align`: a power of two. */
__attribute__((visibility("hidden"))) void *preload_bootstrap(size_t align, size_t size);
/** realloc of a block of the pool, or of NULL, within the pool. */
__attribute__((visibility("hidden"))) void *preload_bootstrap_again(void *old, size_t size);

/** Whether the block came from the pool: the real allocator must not see it. */
static inline int preload_is_bootstrap(const void *block)
{
    return __builtin_expect((uintptr_t)block - (uintptr_t)preload_bootstrap_pool <
                                PRELOAD_BOOTSTRAP_BYTES, 0);
}

/** Copies a block of the pool into one of the real allocator's. */
__attribute__((visibility("hidden"))) void preload_bootstrap_copy(void *to, const void *block,
                                                                   size_t size);

#endif
