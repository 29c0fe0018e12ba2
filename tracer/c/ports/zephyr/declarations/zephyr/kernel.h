// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The parts of Zephyr that lateralis_zephyr.c uses, restated from its public headers (names, types and
 * meaning) so that the file can be compiled and tested without Zephyr. With Zephyr its own headers are used.
 */
#ifndef RESTATED_ZEPHYR_KERNEL_H
#define RESTATED_ZEPHYR_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As Kconfig would define it. */
#ifndef CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC
#define CONFIG_SYS_CLOCK_HW_CYCLES_PER_SEC 12000000
#endif
#define CONFIG_NUM_PREEMPT_PRIORITIES 15
#ifndef CONFIG_MP_MAX_NUM_CPUS
#define CONFIG_MP_MAX_NUM_CPUS 1
#endif
#define CONFIG_THREAD_MONITOR 1

#define __noinit __attribute__((section(".noinit")))

/* zephyr/kernel_structs.h */
#define _THREAD_PENDING (1u << 1)
#define _THREAD_SLEEPING (1u << 2)
#define _THREAD_DEAD (1u << 3)
#define _THREAD_SUSPENDED (1u << 4)
#define _THREAD_ABORTING (1u << 5)
#define _THREAD_QUEUED (1u << 7)

#define K_LOWEST_THREAD_PRIO CONFIG_NUM_PREEMPT_PRIORITIES
#define K_IDLE_PRIO K_LOWEST_THREAD_PRIO

typedef struct {
    int64_t ticks;
} k_timeout_t;

struct _thread_base {
    uint8_t user_options;
    uint8_t thread_state;
    int8_t prio;
};
struct k_thread {
    struct _thread_base base;
    char name[32];
};
typedef struct k_thread *k_tid_t;

struct k_sem {
    unsigned int count, limit;
};
struct k_mutex {
    struct k_thread *owner;
    uint32_t lock_count;
    int owner_orig_prio;
};
struct k_msgq {
    size_t msg_size;
    uint32_t max_msgs, used_msgs;
};

k_tid_t k_sched_current_thread_query(void);
const char *k_thread_name_get(k_tid_t thread);
typedef void (*k_thread_user_cb_t)(const struct k_thread *thread, void *user_data);
void k_thread_foreach(k_thread_user_cb_t user_cb, void *user_data);

uint32_t k_cycle_get_32(void);
uint64_t k_cycle_get_64(void);

struct _cpu {
    uint8_t id;
};
struct _cpu *arch_curr_cpu(void);
unsigned int arch_irq_lock(void);
void arch_irq_unlock(unsigned int key);

#endif
