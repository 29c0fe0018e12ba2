// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds the functions wrapped by this library, without dlsym.
 *
 * dlsym allocates, always if a name does not exist. The first call of a wrapper may come
 * from the program's own allocator, holding its lock (Chromium's names its memory by prctl on
 * first use, which is before any constructor of this library): it must not be re-entered. So the
 * tables of the loaded libraries are read here, which needs no memory.
 *
 * Only libraries loaded by the dynamic linker are read: it has checked them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

/* Flag of a version that only references with that version match [gABI, symbol versioning]. */
#define VERSION_HIDDEN 0x8000u

/* This library's own dynamic section, by which it is found in the list. */
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

/* The tables of one library. */
struct tables {
    const ElfW(Sym) *symbols;
    const char *strings;
    const uint16_t *versions; /* NULL: it has none */
    const uint32_t *gnu_hash; /* NULL: it has none */
    const uint32_t *hash;     /* NULL: it has none */
};

/* @return the position after the name. */
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

/* The dynamic linker relocates these pointers in most libraries, but not in all. */
static const void *pointer_of(const struct link_map *library, ElfW(Addr) value)
{
    const ElfW(Addr) address = value < library->l_addr ? value + library->l_addr : value;
    return (const void *)address;
}

/* @return whether there are symbols to search. */
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

/* Own code: libc's is a page that a short-lived program does not touch otherwise. */
static int is_same(const char *one, const char *other)
{
    while (*one != 0 && *one == *other)
        one++, other++;
    return *one == *other;
}

static int is_wanted(const struct tables *tables, uint32_t at, const char *name)
{
    const ElfW(Sym) *symbol = &tables->symbols[at];
    const unsigned binding = symbol->st_info >> 4, type = symbol->st_info & 15;
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        (binding != STB_GLOBAL && binding != STB_WEAK) ||
        (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC) ||
        !is_same(tables->strings + symbol->st_name, name))
        return 0;
    /* Version 0 is a local symbol. */
    return tables->versions == NULL ||
           ((tables->versions[at] & VERSION_HIDDEN) == 0 && tables->versions[at] != 0);
}

/* Parts of DT_GNU_HASH. Layout: buckets, first symbol, words of the filter, its shift; the filter, the
 * buckets, a hash word for each symbol from the first on, whose bit 0 ends a chain. */
struct gnu_hash {
    uint32_t buckets, first, words, shift;
    const ElfW(Addr) *filter;
    const uint32_t *heads, *hashes;
};

static struct gnu_hash gnu_hash_of(const uint32_t *table)
{
    struct gnu_hash parts = {table[0], table[1], table[2], table[3], (const void *)(table + 4), NULL, NULL};
    parts.heads = (const void *)(parts.filter + parts.words);
    parts.hashes = parts.heads + parts.buckets;
    return parts;
}

/* The first symbol of the chain for a hash, 0 if there is none. */
static uint32_t chain_of(const struct gnu_hash *parts, uint32_t hash)
{
    const unsigned bits = 8 * sizeof *parts->filter;
    const ElfW(Addr) word = parts->filter[hash / bits % parts->words];
    if ((word >> hash % bits & word >> (hash >> parts->shift) % bits & 1) == 0)
        return 0;
    const uint32_t at = parts->heads[hash % parts->buckets];
    return at < parts->first ? 0 : at;
}

/* The next symbol of a chain, from this one on, with the hash; 0 if there is none. */
static uint32_t next_in_chain(const struct gnu_hash *parts, uint32_t at, uint32_t hash)
{
    for (;; at++) {
        const uint32_t other = parts->hashes[at - parts->first];
        if ((other | 1) == (hash | 1))
            return at;
        if ((other & 1) != 0)
            return 0;
    }
}

/* Searches for all missing symbols in one library. Each step is done for all of them before the next
 * one, and prefetches the memory of the next one: the accesses are spread over some hundred KiB, and waiting
 * for each of them separately took twice as long. `found`: 0, or the number of the symbol. */
static void all_by_gnu_hash(const struct tables *tables, const struct preload_symbol *symbols, size_t count,
                            uint32_t *found)
{
    const struct gnu_hash parts = gnu_hash_of(tables->gnu_hash);
    memset(found, 0, count * sizeof *found);
    if (parts.buckets == 0 || parts.words == 0)
        return;
    for (size_t one = 0; one < count; one++) {
        if (symbols[one].address != NULL)
            continue;
        found[one] = chain_of(&parts, symbols[one].hash);
        if (found[one] != 0)
            __builtin_prefetch(&parts.hashes[found[one] - parts.first]);
    }
    for (size_t one = 0; one < count; one++) {
        if (found[one] == 0)
            continue;
        found[one] = next_in_chain(&parts, found[one], symbols[one].hash);
        __builtin_prefetch(&tables->symbols[found[one]]);
        if (tables->versions != NULL)
            __builtin_prefetch(&tables->versions[found[one]]);
    }
    for (size_t one = 0; one < count; one++)
        if (found[one] != 0)
            __builtin_prefetch(tables->strings + tables->symbols[found[one]].st_name);
    for (size_t one = 0; one < count; one++)
        while (found[one] != 0 && !is_wanted(tables, found[one], symbols[one].name))
            found[one] = (parts.hashes[found[one] - parts.first] & 1) != 0
                             ? 0
                             : next_in_chain(&parts, found[one] + 1, symbols[one].hash);
}

/* Layout: buckets, chains; the first of each bucket, the next of each symbol. */
static uint32_t by_hash(const struct tables *tables, const char *name)
{
    const uint32_t buckets = tables->hash[0];
    const uint32_t *heads = tables->hash + 2, *next = heads + buckets;
    uint32_t hash = 0;
    for (const unsigned char *letter = (const void *)name; *letter != 0; letter++) {
        hash = (hash << 4) + *letter;
        hash = (hash ^ (hash & 0xf0000000u) >> 24) & 0x0fffffffu;
    }
    if (buckets == 0)
        return 0;
    for (uint32_t at = heads[hash % buckets]; at != STN_UNDEF; at = next[at])
        if (is_wanted(tables, at, name))
            return at;
    return 0;
}

/* `numbers`: room for one number each. @return number of missing symbols found. */
static size_t look_into(const struct link_map *library, struct preload_symbol *symbols, size_t count,
                        uint32_t *numbers)
{
    struct tables tables;
    size_t found_count = 0;
    if (library->l_ld == NULL || !read_tables(library, &tables))
        return 0;
    if (tables.gnu_hash != NULL)
        all_by_gnu_hash(&tables, symbols, count, numbers);
    else
        for (size_t at = 0; at < count; at++)
            numbers[at] = symbols[at].address == NULL ? by_hash(&tables, symbols[at].name) : 0;
    for (size_t at = 0; at < count; at++) {
        struct preload_symbol *one = &symbols[at];
        if (numbers[at] == 0)
            continue;
        const ElfW(Sym) *found = &tables.symbols[numbers[at]];
        /* An indirect function: dlsym calls its resolver. It exists, so dlsym allocates
         * nothing. */
        one->address = (found->st_info & 15) == STT_GNU_IFUNC
                           ? dlsym(RTLD_NEXT, one->name)
                           : (void *)(library->l_addr + found->st_value);
        found_count++;
    }
    return found_count;
}

/* The list that the dynamic linker keeps for debuggers. None of its functions is called, because a library
 * may have replaced them (sanitizers replace dl_iterate_phdr). */
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

void preload_find_next(const char *names, struct preload_symbol *symbols, uint32_t *numbers, size_t count)
{
    const int saved_errno = errno;
    size_t missing = count;
    for (size_t at = 0; at < count; at++)
        names = take_name(names, &symbols[at]);
    const struct link_map *library = own_library();
    while (library != NULL && missing > 0) {
        library = library->l_next;
        if (library != NULL)
            missing -= look_into(library, symbols, count, numbers);
    }
    errno = saved_errno;
}
