/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPU utilisation where a port has the scheduler: it keeps a `lat_utilisation_slot` in each thread and
 * a `lat_utilisation_cpu` for each processor, and tells each switch. Freestanding.
 *
 *     lat_utilisation_switched(&cpus[id], &from->slot, &to->slot, to == idle, clock());
 *
 * Context: all functions about a processor are called on it with its interrupts off, or while it
 * stands; so nothing here is atomic. Cost of a switch: a test, while nothing is tracked; else two
 * additions.
 */
#ifndef LAT_UTILISATION_PORT_H
#define LAT_UTILISATION_PORT_H

#include <stddef.h>
#include <stdint.h>

/** What a thread had, in ticks of the port's clock. It may have it on several processors, one after
 * the other. */
struct lat_utilisation_slot {
    uint64_t ticks;
    uint64_t schedules;
};

/** What happened on a processor since it was reset. */
struct lat_utilisation_cpu {
    struct lat_utilisation_slot all;  /* all threads, the idle one too */
    struct lat_utilisation_slot idle; /* of it, the idle thread */
    uint64_t since;                   /* clock at the last switch or reset */
    uint32_t is_tracking;
    uint32_t is_idle;
};

/** Sets the counts of a thread to 0. Where it is used several times, before each reset. */
static inline void lat_utilisation_slot_reset(struct lat_utilisation_slot *thread)
{
    thread->ticks = 0;
    thread->schedules = 0;
}

/** Begins to track: `is_idle` says whether the thread that runs is the idle one. */
static inline void lat_utilisation_cpu_reset(struct lat_utilisation_cpu *cpu, int is_idle,
                                             uint64_t now)
{
    lat_utilisation_slot_reset(&cpu->all);
    lat_utilisation_slot_reset(&cpu->idle);
    cpu->since = now;
    cpu->is_idle = is_idle != 0;
    cpu->is_tracking = 1;
}

/* The time since the last switch belongs to who ran. */
static inline void lat_i_utilisation_charge(struct lat_utilisation_cpu *cpu,
                                            struct lat_utilisation_slot *ran, uint64_t now)
{
    uint64_t ticks = now - cpu->since;
    cpu->since = now;
    cpu->all.ticks += ticks;
    if (cpu->is_idle)
        cpu->idle.ticks += ticks;
    if (ran != NULL)
        ran->ticks += ticks;
}

/** The processor turns from one thread to another; either may be NULL. */
static inline void lat_utilisation_switched(struct lat_utilisation_cpu *cpu,
                                            struct lat_utilisation_slot *from,
                                            struct lat_utilisation_slot *to, int to_idle,
                                            uint64_t now)
{
    if (!cpu->is_tracking)
        return;
    lat_i_utilisation_charge(cpu, from, now);
    cpu->is_idle = to_idle != 0;
    cpu->all.schedules += 1;
    cpu->idle.schedules += to_idle != 0;
    if (to != NULL)
        to->schedules += 1;
}

/** Ends tracking: what `running` had until now is counted. Without a reset it does nothing. */
static inline void lat_utilisation_cpu_finalize(struct lat_utilisation_cpu *cpu,
                                                struct lat_utilisation_slot *running,
                                                uint64_t now)
{
    if (!cpu->is_tracking)
        return;
    lat_i_utilisation_charge(cpu, running, now);
    cpu->is_tracking = 0;
}

#endif
