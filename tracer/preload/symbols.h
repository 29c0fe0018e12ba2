// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The functions wrapped by this library, found without the dynamic linker's own search. */
#ifndef PRELOAD_SYMBOLS_H
#define PRELOAD_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct preload_symbol {
    const char *name; /* and `hash`, of the name: set by preload_find_next */
    uint32_t hash;
    void *address; /* NULL: not found */
};

/**
 * Finds the same functions as dlsym(RTLD_NEXT, name) for each of `count` names in the libraries that the
 * program started with: the default version of the first definition after this library. `names`: one after
 * the other, each with its NUL. `numbers`: room for one number each, scratch memory.
 *
 * Allocates nothing, takes no lock, leaves errno and dlerror alone. Context: while the program starts; later,
 * a library that is being unloaded could be read.
 */
__attribute__((visibility("hidden"))) void preload_find_next(const char *names,
                                                             struct preload_symbol *symbols,
                                                             uint32_t *numbers, size_t count);
/** Path of this library in the dynamic linker's list, NULL if it has none. dladdr would search
 * its symbols. Context: as above. */
__attribute__((visibility("hidden"))) const char *preload_own_path(void);

#endif
