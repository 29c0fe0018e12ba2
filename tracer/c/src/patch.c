// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Patchable sites: a disabled site is an instruction without effect, an enabled one a jump to
 * its cold code, where the enable byte is still tested. So the byte decides, and the
 * jump only leads to the test. The two instructions differ in their first byte (spec/ring-abi.md §10).
 *
 * Here sites are set while an object is being loaded. Later the recorder
 * sets them, in the same way, through /proc/PID/mem; it finds the tables through the process slot.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "register.h"
#include "calls.h"
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

struct lat_i_patch_table *lat_i_patch_tables;

#define SITE_DISABLED 0xa9 /* test $imm32, %eax */
#define SITE_ENABLED 0xe9  /* jmp rel32 */

/* Publishes the head of the list for the recorder. */
static void publish_tables(void)
{
    struct lat_area_header *header = lat_i_area.header;
    if (header == NULL)
        return;
    struct lat_area_process *process =
        (struct lat_area_process *)(void *)((char *)header + LAT_AREA_PROCESSES_OFFSET);
    for (uint32_t i = 0; i < LAT_AREA_PROCESS_COUNT; i++)
        if (process[i].pid == (uint32_t)getpid())
            __atomic_store_n(&process[i].patch_table, (uint64_t)(uintptr_t)lat_i_patch_tables,
                             __ATOMIC_RELEASE); /* pair R2 */
}

void lat_i_forget_sites(struct lat_i_patch_table *table)
{
    lat_i_register_lock();
    for (struct lat_i_patch_table **link = &lat_i_patch_tables; *link; link = &(*link)->next) {
        if (*link == table) {
            *link = table->next;
            publish_tables();
            break;
        }
    }
    lat_i_register_unlock();
}

#if defined(__x86_64__)
static int add_table(struct lat_i_patch_table *table)
{
    lat_i_register_lock();
    for (const struct lat_i_patch_table *known = lat_i_patch_tables; known; known = known->next) {
        if (known == table) {
            lat_i_register_unlock();
            return 0;
        }
    }
    table->next = lat_i_patch_tables;
    lat_i_patch_tables = table;
    publish_tables();
    lat_i_register_unlock();
    return 1;
}
#endif

void lat_i_register_sites(struct lat_i_patch_table *table)
{
#if defined(__x86_64__)
    const int saved_errno = errno;
    if (!add_table(table))
        return;
    /* Through the kernel and not by mprotect: no page of code is ever writable here. Where that is
     * forbidden the sites stay disabled, so their events stay off. */
    const int memory = lat_i_open("/proc/self/mem", O_WRONLY | O_CLOEXEC, 0);
    for (const struct lat_i_site *site = table->begin; site < table->end; site++) {
        const struct lat_schema *schema =
            (const struct lat_schema *)(const void *)((const char *)&site->schema + site->schema);
        const uint8_t *code = (const uint8_t *)&site->site + site->site;
        const uint8_t enabled = SITE_ENABLED;
        if (memory >= 0 && lat_i_on(schema, site->index) != 0 && *code == SITE_DISABLED &&
            pwrite(memory, &enabled, 1, (off_t)(uintptr_t)code) != 1)
            break;
    }
    if (memory >= 0)
        lat_i_close(memory);
    errno = saved_errno;
#else
    (void)table;
#endif
}
