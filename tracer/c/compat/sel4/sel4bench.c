/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* libsel4bench on Linux: counters by perf_event_open(2), and the library's buffers and sorts of logs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sel4bench/logging.h>
#include <sel4bench/sel4bench.h>

#include "sel4_events.h"

#include <lat/clock.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

event_id_t GENERIC_EVENTS[SEL4BENCH_NUM_GENERIC_EVENTS] = {
    SEL4BENCH_EVENT_CACHE_L1I_MISS,      SEL4BENCH_EVENT_CACHE_L1D_MISS,
    SEL4BENCH_EVENT_TLB_L1I_MISS,        SEL4BENCH_EVENT_TLB_L1D_MISS,
    SEL4BENCH_EVENT_EXECUTE_INSTRUCTION, SEL4BENCH_EVENT_BRANCH_MISPREDICT,
    SEL4BENCH_EVENT_MEMORY_ACCESS,
};
static char l1i[] = "L1 i-cache misses", l1d[] = "L1 d-cache misses", itlb[] = "L1 i-tlb misses",
            dtlb[] = "L1 d-tlb misses", instructions[] = "Instructions", branches[] = "Branch mispredict",
            memory[] = "Memory access";
char *GENERIC_EVENT_NAMES[SEL4BENCH_NUM_GENERIC_EVENTS] = {
    l1i, l1d, itlb, dtlb, instructions, branches, memory,
};

static struct {
    int file; /* 0: counts nothing */
    event_id_t event;
    char description[32];
} counters[SEL4BENCH_LINUX_COUNTERS];
static seL4_Word counter_count;
static char error[160];

static long open_counter(event_id_t event)
{
    struct perf_event_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.size = sizeof attributes;
    attributes.type = event >> 32 == 0 ? PERF_TYPE_RAW : (uint32_t)(event >> 32) - 1u;
    attributes.config = event & 0xffffffffu;
    attributes.disabled = 1;
    attributes.exclude_hv = 1;
    long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (file < 0 && (errno == EACCES || errno == EPERM)) {
        /* User space only, which may be permitted where counting the kernel is not. */
        attributes.exclude_kernel = 1;
        file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    return file;
}

static void set_error(int number, event_id_t event)
{
    const char *advice = "count something else";
    if (number == EACCES || number == EPERM)
        advice = "allow it by sysctl kernel.perf_event_paranoid=2 or less, or CAP_PERFMON";
    else if (number == ENOSYS)
        advice = "this kernel counts nothing";
    else if (number == ENOENT || number == EOPNOTSUPP || number == ENODEV)
        advice = "this machine has no such counter (virtual machines often have none)";
    snprintf(error, sizeof error, "perf_event_open: event 0x%lx: %s: %s", event, strerror(number), advice);
}

void sel4bench_init(void)
{
    int files[SEL4BENCH_LINUX_COUNTERS];
    counter_count = 0;
    error[0] = 0;
    /* Every counter can count instructions. The kernel would multiplex further counters: they are not
     * used. */
    while (counter_count < SEL4BENCH_LINUX_COUNTERS) {
        const long file = open_counter(SEL4BENCH_EVENT_EXECUTE_INSTRUCTION);
        struct {
            uint64_t value;
        } read_once;
        if (file < 0) {
            if (counter_count == 0)
                set_error(errno, SEL4BENCH_EVENT_EXECUTE_INSTRUCTION);
            break;
        }
        ioctl((int)file, PERF_EVENT_IOC_ENABLE, 0);
        const int counts = read((int)file, &read_once, sizeof read_once) == sizeof read_once &&
                           read_once.value != 0;
        files[counter_count] = (int)file;
        if (!counts) {
            close((int)file);
            if (counter_count == 0)
                set_error(ENODEV, SEL4BENCH_EVENT_EXECUTE_INSTRUCTION);
            break;
        }
        counter_count++;
    }
    for (seL4_Word i = 0; i < counter_count; i++)
        close(files[i]);
}

void sel4bench_destroy(void)
{
    for (unsigned i = 0; i < SEL4BENCH_LINUX_COUNTERS; i++) {
        if (counters[i].file > 0)
            close(counters[i].file);
        counters[i].file = 0;
    }
}

ccnt_t sel4bench_get_cycle_count(void)
{
    lat_i_clock_fence();
    return lat_i_clock();
}

seL4_Word sel4bench_get_num_counters(void)
{
    return counter_count;
}

const char *sel4bench_counters_error(void)
{
    return error;
}

const char *sel4bench_get_counter_description(counter_t counter)
{
    if (counter >= SEL4BENCH_LINUX_COUNTERS || (counter >= counter_count && counters[counter].file <= 0))
        return NULL;
    if (counters[counter].file <= 0)
        return "a counter of the processor, by perf_event_open";
    for (unsigned i = 0; i < SEL4BENCH_NUM_GENERIC_EVENTS; i++)
        if (GENERIC_EVENTS[i] == counters[counter].event)
            return GENERIC_EVENT_NAMES[i];
    snprintf(counters[counter].description, sizeof counters[counter].description, "event 0x%lx",
             counters[counter].event);
    return counters[counter].description;
}

void sel4bench_set_count_event(counter_t counter, event_id_t event)
{
    if (counter >= SEL4BENCH_LINUX_COUNTERS)
        return;
    if (counters[counter].file > 0)
        close(counters[counter].file);
    counters[counter].file = 0;
    counters[counter].event = event;
    error[0] = 0;
    const long file = open_counter(event);
    if (file < 0)
        set_error(errno, event);
    else
        counters[counter].file = (int)file;
}

static void all(counter_bitfield_t mask, unsigned long request)
{
    for (unsigned i = 0; i < SEL4BENCH_LINUX_COUNTERS; i++)
        if ((mask >> i & 1u) != 0 && counters[i].file > 0)
            ioctl(counters[i].file, request, 0);
}

void sel4bench_start_counters(counter_bitfield_t mask)
{
    all(mask, PERF_EVENT_IOC_ENABLE);
}

void sel4bench_stop_counters(counter_bitfield_t mask)
{
    all(mask, PERF_EVENT_IOC_DISABLE);
}

void sel4bench_reset_counters(void)
{
    all(~(counter_bitfield_t)0, PERF_EVENT_IOC_RESET);
}

ccnt_t sel4bench_get_counter(counter_t counter)
{
    uint64_t value = 0;
    if (counter >= SEL4BENCH_LINUX_COUNTERS || counters[counter].file <= 0 ||
        read(counters[counter].file, &value, sizeof value) != sizeof value)
        return 0;
    return value;
}

ccnt_t sel4bench_get_counters(counter_bitfield_t mask, ccnt_t *values)
{
    for (counter_t i = 0; i < SEL4BENCH_LINUX_COUNTERS; i++)
        if ((mask >> i & 1u) != 0)
            values[i] = sel4bench_get_counter(i);
    return sel4bench_get_cycle_count();
}

counter_bitfield_t sel4bench_enable_counters(seL4_Word event_count, event_id_t *events, seL4_Word chunk,
                                             seL4_Word count)
{
    counter_bitfield_t mask = 0;
    for (seL4_Word i = 0; i < count && i < SEL4BENCH_LINUX_COUNTERS && chunk * count + i < event_count; i++) {
        sel4bench_set_count_event(i, events[chunk * count + i]);
        mask |= (counter_bitfield_t)1 << i;
    }
    sel4bench_reset_counters();
    sel4bench_start_counters(mask);
    return mask;
}

counter_bitfield_t sel4bench_enable_generic_counters(seL4_Word chunk, seL4_Word count)
{
    return sel4bench_enable_counters(SEL4BENCH_NUM_GENERIC_EVENTS, GENERIC_EVENTS, chunk, count);
}

void sel4bench_read_and_stop_counters(counter_bitfield_t mask, seL4_Word chunk, seL4_Word count,
                                      ccnt_t *results)
{
    sel4bench_stop_counters(mask);
    for (counter_t i = 0; i < SEL4BENCH_LINUX_COUNTERS; i++) {
        if ((mask >> i & 1u) == 0)
            continue;
        results[chunk * count + i] = sel4bench_get_counter(i);
        lat_sel4bench_counter((uint32_t)i, counters[i].event, results[chunk * count + i]);
    }
}

/* ---- logs
   ------------------------------------------------------------------------------------------------ */

void logging_init_log_buffer(log_buffer_t *buffer, unsigned int initial_capacity)
{
    buffer->capacity = initial_capacity != 0 ? initial_capacity : 1;
    buffer->length = 0;
    buffer->buffer = (seL4_Word *)malloc(buffer->capacity * sizeof(seL4_Word));
    buffer->full = buffer->buffer == NULL;
    if (buffer->full)
        buffer->capacity = 0;
}

void logging_append_log_buffer(log_buffer_t *buffer, seL4_Word data)
{
    if (buffer->length == buffer->capacity) {
        const size_t room = buffer->capacity != 0 ? 2 * (size_t)buffer->capacity : 1;
        seL4_Word *const more =
            buffer->full ? NULL : (seL4_Word *)realloc(buffer->buffer, room * sizeof(seL4_Word));
        if (more == NULL || room > UINT32_MAX) {
            buffer->full = 1;
            return;
        }
        buffer->buffer = more;
        buffer->capacity = (unsigned int)room;
    }
    buffer->buffer[buffer->length++] = data;
}

void logging_separate_log(kernel_log_entry_t *logs, unsigned int count, log_buffer_t *buffers,
                          unsigned int buffer_count)
{
    for (unsigned int i = 0; i < count; i++)
        if (kernel_logging_entry_get_key(&logs[i]) < buffer_count)
            logging_append_log_buffer(&buffers[kernel_logging_entry_get_key(&logs[i])],
                                      kernel_logging_entry_get_data(&logs[i]));
}

/* Merges runs of 1, 2, 4 … entries: stable, n log n in the worst case. Without memory, inserts one by one. */
void logging_stable_sort_log(kernel_log_entry_t *logs, unsigned int count)
{
    kernel_log_entry_t *const other = (kernel_log_entry_t *)malloc(((size_t)count + 1) * sizeof *other);
    if (other == NULL) {
        for (unsigned int i = 1; i < count; i++) {
            const kernel_log_entry_t entry = logs[i];
            unsigned int at = i;
            for (; at != 0 && logs[at - 1].id > entry.id; at--)
                logs[at] = logs[at - 1];
            logs[at] = entry;
        }
        return;
    }
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t from = 0; from < count; from += 2 * run) {
            const size_t middle = from + run < count ? from + run : count;
            const size_t end = from + 2 * run < count ? from + 2 * run : count;
            size_t left = from, right = middle;
            for (size_t at = from; at < end; at++) {
                const int takes_left = right == end || (left < middle && logs[left].id <= logs[right].id);
                other[at] = takes_left ? logs[left++] : logs[right++];
            }
        }
        memcpy(logs, other, count * sizeof *logs);
    }
    free(other);
}

void logging_sort_log(kernel_log_entry_t *logs, unsigned int count)
{
    logging_stable_sort_log(logs, count);
}

void logging_group_log_by_key(kernel_log_entry_t *logs, unsigned int count, unsigned int *sizes,
                              unsigned int *offsets, unsigned int group_count)
{
    for (unsigned int i = 0; i < group_count; i++)
        sizes[i] = offsets[i] = 0;
    for (unsigned int i = 0; i < count; i++) {
        const seL4_Word key = kernel_logging_entry_get_key(&logs[i]);
        if (key < group_count && sizes[key]++ == 0)
            offsets[key] = i;
    }
}
