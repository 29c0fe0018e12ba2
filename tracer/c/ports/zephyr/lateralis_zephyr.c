// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The hooks that Zephyr calls with CONFIG_TRACING_USER. They override Zephyr's empty weak ones.
 * Nothing here blocks or allocates, or writes to the kernel's data.
 *
 * Hooks of semaphores, mutexes and message queues are called by kernels whose tracing_user.h lists them;
 * with older kernels those functions are never called, and the linker drops them.
 */
#include "lateralis_zephyr.h"

#include <zephyr/kernel.h>
#include <zephyr/tracing/tracing.h>

#include "lat_port.h"

#define NESTING 8u /* nested interrupts; deeper ones are not recorded */

__noinit uint64_t lat_port_area[LAT_ZEPHYR_AREA_BYTES / 8u];

struct cpu {
    uint32_t context;   /* thread last seen running on the CPU; 0 before the first */
    uint32_t scheduled; /* the same thread in switch events: 0 for an idle thread */
    enum lat_enum_zephyr_state leaves_as;
    uint32_t depth; /* interrupts that have begun and not ended */
    uint32_t irqs[NESTING];
};
static struct cpu cpus[LAT_PORT_CORES];

static uint32_t number_of(const volatile void *object)
{
    return (uint32_t)(uintptr_t)object;
}

static struct cpu *this_cpu(void)
{
    return &cpus[lat_port_core()];
}

/* The number of the active interrupt, if the machine provides it. */
static uint32_t interrupt_number(void)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    uint32_t exception;
    __asm__ volatile("mrs %0, ipsr" : "=r"(exception)); /* [ARMv7-M ARM, B1.4.2] */
    return exception;
#elif defined(__riscv)
    unsigned long cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause)); /* [RISC-V Privileged ISA, 3.1.15] */
    return (uint32_t)(cause & 0xfffu);
#else
    return 1;
#endif
}

uint32_t lat_zephyr_context(void)
{
    const struct cpu *const cpu = this_cpu();
    const uint32_t depth = *(const volatile uint32_t *)&cpu->depth;
    if (depth != 0)
        return LAT_ZEPHYR_INTERRUPTS + cpu->irqs[(depth < NESTING ? depth : NESTING) - 1u];
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
    /* A handler unknown to Zephyr (IRQ_DIRECT_CONNECT); SVCall and PendSV are the kernel's. */
    const uint32_t exception = interrupt_number();
    if (exception >= 15u)
        return LAT_ZEPHYR_INTERRUPTS + exception;
#endif
    return cpu->context;
}

/* ---- threads --------------------------------------------------------------------- */

static int is_idle(const struct k_thread *thread)
{
    return thread->base.prio == K_IDLE_PRIO;
}

/* State of a thread after it leaves the CPU. */
static enum lat_enum_zephyr_state state_of(const struct k_thread *thread)
{
    const unsigned state = thread->base.thread_state;
    if ((state & (_THREAD_DEAD | _THREAD_ABORTING)) != 0)
        return LAT_ENUM_ZEPHYR_STATE_ENDED;
    if ((state & _THREAD_PENDING) != 0)
        return LAT_ENUM_ZEPHYR_STATE_WAITING;
#ifdef _THREAD_SLEEPING
    if ((state & _THREAD_SLEEPING) != 0)
        return LAT_ENUM_ZEPHYR_STATE_WAITING;
#endif
    if ((state & _THREAD_SUSPENDED) != 0)
        return LAT_ENUM_ZEPHYR_STATE_SUSPENDED;
    return LAT_ENUM_ZEPHYR_STATE_READY;
}

/* The CPU runs this thread. The record belongs to the previous thread, so the context is updated after it. */
static void runs(struct cpu *cpu, const struct k_thread *thread)
{
    const uint32_t number = number_of(thread);
    if (cpu->context == number)
        return;
    const uint32_t scheduled = is_idle(thread) ? 0u : number;
    lat_zephyr_sched_switch(cpu->scheduled, scheduled, cpu->leaves_as, thread->base.prio);
    cpu->context = number;
    cpu->scheduled = scheduled;
    cpu->leaves_as = LAT_ENUM_ZEPHYR_STATE_READY;
}

static void name(struct k_thread *thread)
{
    const char *const text = k_thread_name_get(thread);
    if (text != NULL && text[0] != '\0')
        lat_zephyr_thread_name(LAT_SMALL_PROCESS, number_of(thread), text);
}

void sys_trace_thread_switched_out_user(void)
{
    struct cpu *const cpu = this_cpu();
    const struct k_thread *const thread = k_sched_current_thread_query();
    /* A thread without a switched_in event: before lat_zephyr_begin, or if a port has no such hook. */
    runs(cpu, thread);
    cpu->leaves_as = state_of(thread);
}

void sys_trace_thread_switched_in_user(void)
{
    runs(this_cpu(), k_sched_current_thread_query());
}

void sys_trace_thread_create_user(struct k_thread *thread)
{
    lat_zephyr_thread_create(number_of(thread), thread->base.prio);
    name(thread);
}

void sys_trace_thread_abort_user(struct k_thread *thread)
{
    lat_zephyr_thread_end(number_of(thread));
}

void sys_trace_thread_suspend_user(struct k_thread *thread)
{
    lat_zephyr_thread_suspend(number_of(thread));
}

void sys_trace_thread_resume_user(struct k_thread *thread)
{
    lat_zephyr_thread_resume(number_of(thread));
}

void sys_trace_thread_name_set_user(struct k_thread *thread)
{
    name(thread);
}

void sys_trace_thread_info_user(struct k_thread *thread)
{
    name(thread);
}

void sys_trace_thread_priority_set_user(struct k_thread *thread, int prio)
{
    lat_zephyr_thread_priority(number_of(thread), prio);
}

void sys_trace_thread_sched_ready_user(struct k_thread *thread)
{
    lat_zephyr_sched_waking(number_of(thread), thread->base.prio, this_cpu()->depth != 0 ? 8u : 0u);
}

/* ---- interrupts and idleness -------------------------------------------------------- */

void sys_trace_isr_enter_user(void)
{
    struct cpu *const cpu = this_cpu();
    const uint32_t level = cpu->depth, irq = interrupt_number();
    if (level < NESTING)
        cpu->irqs[level] = irq;
    *(volatile uint32_t *)&cpu->depth = level + 1u;
    if (level < NESTING)
        lat_zephyr_irq_handler_entry(irq);
}

void sys_trace_isr_exit_user(void)
{
    struct cpu *const cpu = this_cpu();
    const uint32_t depth = cpu->depth;
    if (depth == 0)
        return;
    lat_small_keep_time();
    if (depth <= NESTING)
        lat_zephyr_irq_handler_exit(cpu->irqs[depth - 1u]);
    *(volatile uint32_t *)&cpu->depth = depth - 1u;
}

void sys_trace_idle_user(void)
{
    lat_small_keep_time();
}

/* ---- semaphores ------------------------------------------------------------------------ */

void sys_trace_k_sem_init_user(struct k_sem *sem, int ret)
{
    if (ret == 0)
        lat_zephyr_semaphore_init(number_of(sem), sem->count, sem->limit);
}

/* Before a waiting thread is woken: its records come later. */
void sys_trace_k_sem_give_enter_user(struct k_sem *sem)
{
    if (sem->count >= sem->limit)
        lat_zephyr_semaphore_give_full(number_of(sem));
    else
        lat_zephyr_semaphore_give(number_of(sem));
}

void sys_trace_k_sem_take_enter_user(struct k_sem *sem, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_semaphore_want(number_of(sem));
}

void sys_trace_k_sem_take_blocking_user(struct k_sem *sem, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_semaphore_block(number_of(sem));
}

void sys_trace_k_sem_take_exit_user(struct k_sem *sem, k_timeout_t timeout, int ret)
{
    (void)timeout;
    if (ret == 0)
        lat_zephyr_semaphore_take(number_of(sem), sem->count);
    else
        lat_zephyr_semaphore_take_failed(number_of(sem), ret);
}

void sys_trace_k_sem_reset_user(struct k_sem *sem)
{
    lat_zephyr_semaphore_reset(number_of(sem));
}

/* ---- mutexes ------------------------------------------------------------------------------ */

void sys_trace_k_mutex_lock_enter_user(struct k_mutex *mutex, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_mutex_want(number_of(mutex));
}

void sys_trace_k_mutex_lock_blocking_user(struct k_mutex *mutex, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_mutex_block(number_of(mutex));
}

void sys_trace_k_mutex_lock_exit_user(struct k_mutex *mutex, k_timeout_t timeout, int ret)
{
    (void)timeout;
    if (ret != 0) {
        lat_zephyr_mutex_lock_failed(number_of(mutex), ret);
        return;
    }
    lat_zephyr_mutex_locked(number_of(mutex));
    if (mutex->lock_count == 1u)
        lat_zephyr_mutex_hold(number_of(mutex));
    else
        lat_zephyr_mutex_again(number_of(mutex), mutex->lock_count);
}

/* Before it is handed to a waiting thread. */
void sys_trace_k_mutex_unlock_enter_user(struct k_mutex *mutex)
{
    if (mutex->owner != k_sched_current_thread_query())
        return; /* the kernel refuses it */
    if (mutex->lock_count <= 1u)
        lat_zephyr_mutex_free(number_of(mutex));
    else
        lat_zephyr_mutex_still(number_of(mutex), mutex->lock_count - 1u);
}

/* ---- message queues --------------------------------------------------------------------------- */

void sys_trace_k_msgq_init_user(struct k_msgq *msgq)
{
    lat_zephyr_msgq_init(number_of(msgq), msgq->max_msgs, (uint32_t)msgq->msg_size);
}

void sys_trace_k_msgq_put_enter_user(struct k_msgq *msgq, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_msgq_put_want(number_of(msgq));
}

void sys_trace_k_msgq_put_blocking_user(struct k_msgq *msgq, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_msgq_put_block(number_of(msgq));
}

void sys_trace_k_msgq_put_exit_user(struct k_msgq *msgq, k_timeout_t timeout, int ret)
{
    (void)timeout;
    if (ret == 0)
        lat_zephyr_msgq_put(number_of(msgq), msgq->used_msgs);
    else
        lat_zephyr_msgq_put_failed(number_of(msgq), ret);
}

/* Put at the front: recorded like any other, so the arrows of such messages and those in the queue are
 * swapped. */
void sys_trace_k_msgq_put_front_enter_user(struct k_msgq *msgq, k_timeout_t timeout)
{
    sys_trace_k_msgq_put_enter_user(msgq, timeout);
}

void sys_trace_k_msgq_put_front_blocking_user(struct k_msgq *msgq, k_timeout_t timeout)
{
    sys_trace_k_msgq_put_blocking_user(msgq, timeout);
}

void sys_trace_k_msgq_put_front_exit_user(struct k_msgq *msgq, k_timeout_t timeout, int ret)
{
    sys_trace_k_msgq_put_exit_user(msgq, timeout, ret);
}

void sys_trace_k_msgq_get_enter_user(struct k_msgq *msgq, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_msgq_get_want(number_of(msgq));
}

void sys_trace_k_msgq_get_blocking_user(struct k_msgq *msgq, k_timeout_t timeout)
{
    (void)timeout;
    lat_zephyr_msgq_get_block(number_of(msgq));
}

void sys_trace_k_msgq_get_exit_user(struct k_msgq *msgq, k_timeout_t timeout, int ret)
{
    (void)timeout;
    if (ret == 0)
        lat_zephyr_msgq_get(number_of(msgq), msgq->used_msgs);
    else
        lat_zephyr_msgq_get_failed(number_of(msgq), ret);
}

void sys_trace_k_msgq_purge_user(struct k_msgq *msgq)
{
    lat_zephyr_msgq_purge(number_of(msgq));
}

/* ---- set-up ----------------------------------------------------------------------------------- */

#ifdef CONFIG_THREAD_MONITOR
static void name_each(const struct k_thread *thread, void *unused)
{
    (void)unused;
    name((struct k_thread *)(uintptr_t)thread);
}
#endif

enum lat_small_error lat_zephyr_begin(const struct lat_small_setup *setup)
{
    const enum lat_small_error error = lat_small_init(setup);
    if (error != LAT_SMALL_OK)
        return error;
    const struct k_thread *const thread = k_sched_current_thread_query();
    struct cpu *const cpu = this_cpu();
    cpu->context = 0;
    cpu->scheduled = LAT_SMALL_THREAD;
    cpu->leaves_as = LAT_ENUM_ZEPHYR_STATE_READY;
    lat_small_enable(LAT_SCHEMA(zephyr), LAT_SMALL_ALL, 1);
    runs(cpu, thread);
#ifdef CONFIG_THREAD_MONITOR
    k_thread_foreach(name_each, NULL);
#else
    name((struct k_thread *)(uintptr_t)thread);
#endif
    return LAT_SMALL_OK;
}
