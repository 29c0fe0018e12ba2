/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CPU utilisation where a port has the scheduler: it keeps a `lat_utilisation_slot` in each thread and
 * a `lat_utilisation_cpu` for each processor, and reports each switch. Freestanding.
 *
 *     lat_utilisation_switched(&cpus[id], &from->slot, &to->slot, to == idle, clock());
 *
 * Context: all functions about a processor are called on it with its interrupts off, or while it
 * is stopped, so nothing here is atomic. Cost of a switch: a test while nothing is tracked, else two
 * additions.
 */
#ifndef LAT_UTILISATION_PORT_H
#define LAT_UTILISATION_PORT_H

#include <stddef.h>
#include <stdint.h>

/** Values of a thread, in ticks of the port's clock, possibly from several processors one after
 * the other. */
struct lat_utilisation_slot {
    uint64_t ticks;
    uint64_t schedules;
};

/** Values of a processor since it was reset. */
struct lat_utilisation_cpu {
    struct lat_utilisation_slot all;  /* all threads, the idle one too */
    struct lat_utilisation_slot idle; /* the part of the idle thread */
    uint64_t since;                   /* clock at the last switch or reset */
    uint32_t is_tracking;
    uint32_t is_idle;
};

/** Sets the counts of a thread to 0. If it is used several times, call this before each reset. */
static inline void lat_utilisation_slot_reset(struct lat_utilisation_slot *thread)
{
    thread->ticks = 0;
    thread->schedules = 0;
}

/** Starts tracking; `is_idle` specifies whether the running thread is the idle one. */
static inline void lat_utilisation_cpu_reset(struct lat_utilisation_cpu *cpu, int is_idle,
                                             uint64_t now)
{
    lat_utilisation_slot_reset(&cpu->all);
    lat_utilisation_slot_reset(&cpu->idle);
    cpu->since = now;
    cpu->is_idle = is_idle != 0;
    cpu->is_tracking = 1;
}

/* Adds the time since the last switch to the thread that ran. */
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

/** The processor switches from one thread to another; either may be NULL. */
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

/** Stops tracking; counts the time of `running` up to now. Without a reset it does nothing. */
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
