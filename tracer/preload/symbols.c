// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds the functions behind this library by itself.
 *
 * dlsym allocates: always where a name does not exist. The first wrapper that is called may be called
 * by the program's own allocator, while that holds its lock (Chromium's names its memory by prctl when
 * it is used first, which is before any constructor of ours): it must not be entered again. So the
 * tables of the loaded libraries are read here, which needs no memory.
 *
 * Only libraries that the dynamic linker loaded are read: it has checked them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

/* The version of a symbol that only names with that version find [gABI, symbol versioning]. */
#define VERSION_HIDDEN 0x8000u

/* This library's own: it is found in the list by it. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The tables of one library. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint16_t *versions; /* NULL: it has none */
    const uint32_t *gnu_hash; /* NULL: it has none */
    const uint32_t *hash;     /* NULL: it has none */
};

/* @return what is behind the name. */
static const char *take_name(const char *name, struct preload_symbol *symbol)
{
    uint32_t hash = 5381; /* that of DT_GNU_HASH */
    symbol->name = name;
    symbol->address = NULL;
    for (; *name != 0; name++)
        hash = hash * 33 + (unsigned char)*name;
    symbol->hash = hash;
    return name + 1;
}

/* The dynamic linker relocates these pointers in most libraries, and leaves those of others alone. */
static const void *pointer_of(const struct link_map *library, ElfW(Addr) value)
{
    const ElfW(Addr) address = value < library->l_addr ? value + library->l_addr : value;
    return (const void *)address;
}

/* @return whether there is something to look for. */
static int read_tables(const struct link_map *library, struct tables *found)
{
    memset(found, 0, sizeof *found);
    for (const ElfW(Dyn) *dynamic = library->l_ld; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *pointer = pointer_of(library, dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            found->symbols = pointer;
            break;
        case DT_STRTAB:
            found->strings = pointer;
            break;
        case DT_VERSYM:
            found->versions = pointer;
            break;
        case DT_GNU_HASH:
            found->gnu_hash = pointer;
            break;
        case DT_HASH:
            found->hash = pointer;
            break;
        default:
            break;
        }
    }
    return found->symbols != NULL && found->strings != NULL &&
           (found->gnu_hash != NULL || found->hash != NULL);
}

static int is_wanted(const struct tables *tables, uint32_t at, const char *name)
{
    const ElfW(Sym) *symbol = &tables->symbols[at];
    const unsigned binding = symbol->st_info >> 4, type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        (binding != STB_GLOBAL && binding != STB_WEAK) ||
        (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) ||
        strcmp(tables->strings + symbol->st_name, name) != 0)
        return 0;
    /* 0 is a symbol that is for the library alone. */
    return tables->versions == NULL ||
           ((tables->versions[at] & VERSION_HIDDEN) == 0 && tables->versions[at] != 0);
}

/* Layout: buckets, first symbol, words of the filter, its shift; the filter, the buckets, a word of
 * hash for each symbol from the first on, of which bit 0 ends a chain. */
static const ElfW(Sym) *by_gnu_hash(const struct tables *tables, const char *name, uint32_t hash)
{
    const uint32_t *table = tables->gnu_hash;
    const uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const ElfW(Addr) *filter = (const void *)(table + 4);
    const unsigned bits = 8 * sizeof *filter;
    const uint32_t *heads = (const void *)(filter + words), *hashes = heads + buckets;
    if (buckets == 0 || words == 0)
        return NULL;
    const ElfW(Addr) word = filter[hash / bits % words];
    if ((word >> hash % bits & word >> (hash >> shift) % bits & 1) == 0)
        return NULL;
    uint32_t at = heads[hash % buckets];
    if (at < first)
        return NULL;
    for (;; at++) {
        const uint32_t other = hashes[at - first];
        if ((other | 1) == (hash | 1) && is_wanted(tables, at, name))
            return &tables->symbols[at];
        if ((other & 1) != 0)
            return NULL;
    }
}

/* Layout: buckets, chains; the first of each bucket, the next of each symbol. */
static const ElfW(Sym) *by_hash(const struct tables *tables, const char *name)
{
    const uint32_t buckets = tables->hash[0];
    const uint32_t *heads = tables->hash + 2, *next = heads + buckets;
    uint32_t hash = 0;
    for (const unsigned char *letter = (const void *)name; *letter != 0; letter++) {
        hash = (hash << 4) + *letter;
        hash = (hash ^ (hash & 0xf0000000u) >> 24) & 0x0fffffffu;
    }
    if (buckets == 0)
        return NULL;
    for (uint32_t at = heads[hash % buckets]; at != STN_UNDEF; at = next[at])
        if (is_wanted(tables, at, name))
            return &tables->symbols[at];
    return NULL;
}

/* @return how many of the missing symbols it has. */
static size_t look_into(const struct link_map *library, struct preload_symbol *symbols, size_t count)
{
    struct tables tables;
    size_t found_count = 0;
    if (library->l_ld == NULL || !read_tables(library, &tables))
        return 0;
    for (size_t at = 0; at < count; at++) {
        struct preload_symbol *one = &symbols[at];
        if (one->address != NULL)
            continue;
        const ElfW(Sym) *found = tables.gnu_hash != NULL
                                     ? by_gnu_hash(&tables, one->name, one->hash)
                                     : by_hash(&tables, one->name);
        if (found == NULL)
            continue;
        /* A function that chooses another one: dlsym knows how to ask it, and finds it, so that it
         * allocates nothing. */
        one->address = (found->st_info & 15) == STT_GNU_IFUNC
                           ? dlsym(RTLD_NEXT, one->name)
                           : (void *)(library->l_addr + found->st_value);
        found_count++;
    }
    return found_count;
}

/* The list that the dynamic linker keeps for debuggers: no function of it is called, which a library may
 * have replaced (sanitizers replace dl_iterate_phdr). */
static const struct link_map *own_library(void)
{
    const struct link_map *library = _r_debug.r_map;
    while (library != NULL && library->l_ld != _DYNAMIC)
        library = library->l_next;
    return library;
}

const char *preload_own_path(void)
{
    const struct link_map *library = own_library();
    return library != NULL ? library->l_name : NULL;
}

void preload_find_next(const char *names, struct preload_symbol *symbols, size_t count)
{
    const int saved_errno = errno;
    size_t missing = count;
    for (size_t at = 0; at < count; at++)
        names = take_name(names, &symbols[at]);
    const struct link_map *library = own_library();
    while (library != NULL && missing > 0) {
        library = library->l_next;
        if (library != NULL)
            missing -= look_into(library, symbols, count);
    }
    errno = saved_errno;
}
