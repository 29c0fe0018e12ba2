// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The functions of the trait RtosTrace over the small area. Context: as each says, and before set-up. */
#include <lat/rtos_context.h>
#include <lat/rtos_events.h>

#include "lat_port.h"

struct lat_i_rtos lat_i_rtos = {LAT_RTOS_MAIN, 0, 0, 0, 0, {0}};
/* The task that has the processor is being executed, not only the last one that was. */
static volatile uint32_t is_executed;

static const struct lat_schema *const schemas[] = {LAT_SCHEMA(rtos)};

uint32_t lat_rtos_begin(uint32_t area_bytes, uint32_t packet_bytes, uint32_t packets, uint32_t mode);
void lat_rtos_enable(uint32_t on);
void lat_rtos_new(uint32_t id, uint32_t priority);
void lat_rtos_name(uint32_t id, const char *name, size_t bytes);
void lat_rtos_end(uint32_t id);
void lat_rtos_exec_begin(uint32_t id);
void lat_rtos_exec_end(void);
void lat_rtos_ready(uint32_t id);
void lat_rtos_idle(void);
void lat_rtos_isr_enter(void);
void lat_rtos_isr_exit(void);
void lat_rtos_mark_name(uint32_t marker, const char *name, size_t bytes);
void lat_rtos_mark(uint32_t marker);
void lat_rtos_mark_begin(uint32_t marker);
void lat_rtos_mark_end(uint32_t marker);

/* 0 is idleness, and 1 the program before its first task. */
static uint32_t thread_of(uint32_t id)
{
    return id > 1u ? id : id - 2u;
}

static int is_in_interrupt(void)
{
    return lat_port_context() != lat_i_rtos.task;
}

uint32_t lat_rtos_begin(uint32_t area_bytes, uint32_t packet_bytes, uint32_t packets, uint32_t mode)
{
    const struct lat_small_setup setup = {area_bytes, packet_bytes, packets, mode, schemas, 1};
    return (uint32_t)lat_small_init(&setup);
}

void lat_rtos_enable(uint32_t on)
{
    lat_small_enable(LAT_SCHEMA(rtos), LAT_SMALL_ALL, on != 0);
}

/* Names of Rust have no end mark; Embassy's have one sometimes. What is longer is cut. */
struct name {
    char text[32];
};
static struct name name_of(const char *name, size_t bytes)
{
    struct name copy;
    size_t i = 0;
    for (; i < bytes && i < sizeof copy.text - 1u && name[i] != '\0'; i++)
        copy.text[i] = name[i];
    copy.text[i] = '\0';
    return copy;
}

void lat_rtos_new(uint32_t id, uint32_t priority)
{
    lat_rtos_task_new(thread_of(id), priority);
}

void lat_rtos_name(uint32_t id, const char *name, size_t bytes)
{
    lat_rtos_thread_name(LAT_SMALL_PROCESS, thread_of(id), name_of(name, bytes).text);
}

static void switch_to(uint32_t thread)
{
    const uint32_t before = lat_i_rtos.task;
    if (before == thread)
        return;
    lat_rtos_sched_switch(before, thread,
                          (enum lat_enum_rtos_state)lat_i_rtos.state);
    *(volatile uint32_t *)&lat_i_rtos.task = thread;
}

void lat_rtos_end(uint32_t id)
{
    lat_rtos_task_end(thread_of(id));
    if (thread_of(id) == lat_i_rtos.task)
        lat_i_rtos.state = LAT_ENUM_RTOS_STATE_ENDED;
}

/* A task has the processor until another one or idleness has it: what the executor does between counts to
 * the one before. */
void lat_rtos_exec_begin(uint32_t id)
{
    switch_to(thread_of(id));
    lat_i_rtos.state = LAT_ENUM_RTOS_STATE_WAITING;
    is_executed = 1;
}

void lat_rtos_exec_end(void)
{
    is_executed = 0;
}

void lat_rtos_ready(uint32_t id)
{
    const uint32_t thread = thread_of(id);
    /* Woken while it is executed, it does not wait afterwards. */
    if (is_executed && thread == lat_i_rtos.task)
        lat_i_rtos.state = LAT_ENUM_RTOS_STATE_READY;
    lat_rtos_sched_waking(thread, is_in_interrupt() ? 8u : 0u);
}

void lat_rtos_idle(void)
{
    lat_small_keep_time();
    switch_to(0);
    lat_i_rtos.state = LAT_ENUM_RTOS_STATE_READY;
}

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define IRQ() lat_i_rtos_exception()
#else
#define IRQ() 1u
#endif

void lat_rtos_isr_enter(void)
{
    if (lat_i_rtos_enter(IRQ()))
        lat_rtos_irq_handler_entry(IRQ());
}

void lat_rtos_isr_exit(void)
{
    const uint32_t level = lat_i_rtos_level(IRQ());
    if (level == 0)
        return;
    lat_rtos_irq_handler_exit(IRQ());
    lat_i_rtos_set_depth(level - 1u);
}

void lat_rtos_mark_name(uint32_t marker, const char *name, size_t bytes)
{
    lat_rtos_marker_name(marker, name_of(name, bytes).text);
}

void lat_rtos_mark(uint32_t marker)
{
    lat_rtos_marker(marker);
}

void lat_rtos_mark_begin(uint32_t marker)
{
    lat_rtos_marker_begin(marker);
}

void lat_rtos_mark_end(uint32_t marker)
{
    lat_rtos_marker_end(marker);
}
