// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The trace macros of FreeRTOS, V10.4 to V11.2, one core, over the small area: include this as the
 * last line of FreeRTOSConfig.h, and the kernel records what it does by the schema `freertos`
 * (spec/freertos.pleco). ports/freertos/README.md has the steps.
 *
 * Needs LAT_SMALL and configUSE_TRACE_FACILITY, which gives tasks and queues the numbers and kinds that
 * events contain. The macros read variables of the kernel's functions, so they fit these versions only;
 * with another version a missing name is a compile error.
 *
 * Nothing here blocks, allocates or makes a task ready. One variable of the kernel is written:
 * xEntryTimeSet, which the kernel compares with pdFALSE only, becomes 2 once the wait has been recorded, so
 * that one call is one wait however many spurious wakeups the task has.
 */
#ifndef LAT_FREERTOS_H
#define LAT_FREERTOS_H

/* The kernel's assembler files include FreeRTOSConfig.h too. */
#ifndef __ASSEMBLER__

#ifndef LAT_SMALL
#error "lat/freertos.h: define LAT_SMALL for all files of the program"
#endif
#if !defined(configUSE_TRACE_FACILITY) || configUSE_TRACE_FACILITY != 1
#error "lat/freertos.h: set configUSE_TRACE_FACILITY to 1, and include this last in FreeRTOSConfig.h"
#endif
#if defined(configNUMBER_OF_CORES) && configNUMBER_OF_CORES > 1
#error "lat/freertos.h: configNUMBER_OF_CORES has to be 1"
#endif

#include "rtos_context.h"
#include "freertos_events.h"

/** Number of free bytes of the heap. heap_3 has no function for it: define it as 0 there. */
#ifndef LAT_FREERTOS_HEAP_FREE
#define LAT_FREERTOS_HEAP_FREE() xPortGetFreeHeapSize()
#endif
/** The number of the interrupt whose handler runs: 1 to 0xffff. */
#ifndef LAT_FREERTOS_IRQ
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define LAT_FREERTOS_IRQ() lat_i_rtos_exception()
#elif defined(__riscv)
/* The code of the cause [RISC-V Privileged ISA, 3.1.15]. */
#define LAT_FREERTOS_IRQ() lat_i_freertos_cause()
static inline uint32_t lat_i_freertos_cause(void)
{
    unsigned long cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    return (uint32_t)(cause & 0xffful);
}
#elif defined(__unix__)
#define LAT_FREERTOS_IRQ() 14u /* the port for POSIX: its tick is SIGALRM */
#else
#define LAT_FREERTOS_IRQ() 1u
#endif
#endif

/* One definition for the program, shared by all its files that include this. */
__attribute__((weak, visibility("hidden"))) struct lat_i_rtos lat_i_rtos = {
    LAT_RTOS_MAIN, 0, 0, 0, 0, {0}};

/* Out of line, once in each file of the kernel that uses it. */
#define LAT_I_FREERTOS __attribute__((noinline, unused)) static
#define LAT_I_FREERTOS_ID(address) ((uint32_t)(uintptr_t)(address))
#define LAT_I_FREERTOS_TID(tcb) ((uint32_t)(tcb)->uxTCBNumber + 1u)

/** Names an interrupt in the trace; events must be enabled. */
LAT_I_FREERTOS void lat_freertos_name_interrupt(uint32_t irq, const char *name)
{
    lat_freertos_thread_name(LAT_SMALL_PROCESS, LAT_RTOS_INTERRUPTS + irq, name);
}

/** Records the names of tasks again, after an overwritten ring has lost them: the arguments are the array
 * filled by uxTaskGetSystemState, and its length. */
#define LAT_FREERTOS_NAME_TASKS(tasks, count)                                                   \
    do {                                                                                        \
        for (UBaseType_t lat_i = 0; lat_i < (count); lat_i++)                                   \
            lat_freertos_thread_name(LAT_SMALL_PROCESS, (uint32_t)(tasks)[lat_i].xTaskNumber + 1u, \
                                     (tasks)[lat_i].pcTaskName);                                \
    } while (0)

/* ---- interrupts ----------------------------------------------------------- */

/* Ports call the exit in portYIELD_FROM_ISR, whether or not the handler began with traceISR_ENTER: an
 * exit without an entry is not recorded. */
LAT_I_FREERTOS void lat_i_freertos_isr_enter(uint32_t irq)
{
    if (lat_i_rtos_enter(irq))
        lat_freertos_irq_handler_entry(irq);
}

LAT_I_FREERTOS void lat_i_freertos_isr_exit(uint32_t irq)
{
    const uint32_t level = lat_i_rtos_level(irq);
    if (level == 0)
        return;
    lat_freertos_irq_handler_exit(irq);
    lat_i_rtos_set_depth(level - 1u);
}

#define traceISR_ENTER() lat_i_freertos_isr_enter(LAT_FREERTOS_IRQ())
#define traceISR_EXIT() lat_i_freertos_isr_exit(LAT_FREERTOS_IRQ())
#define traceISR_EXIT_TO_SCHEDULER() lat_i_freertos_isr_exit(LAT_FREERTOS_IRQ())

/* ---- tasks: tasks.c ------------------------------------------------------- */

#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/* The ports' handlers call traceISR_ENTER and traceISR_EXIT around the tick. */
#define LAT_I_FREERTOS_FLAGS() (lat_i_rtos_exception() == 0 ? 0u : 8u)
#else
#define LAT_I_FREERTOS_FLAGS() (lat_i_rtos.depth == 0 ? 0u : 8u)
/* Other ports do not: the tick's handler is this function, except where it processes ticks that occurred
 * while the scheduler was suspended (V11 only; in earlier versions the task seems to cause the wakeups of a
 * tick). */
#define traceENTER_xTaskIncrementTick()                                                         \
    if (uxSchedulerSuspended != 0U || xPendedTicks == 0U)                                       \
    lat_i_freertos_isr_enter(LAT_FREERTOS_IRQ())
#define traceRETURN_xTaskIncrementTick(xSwitchRequired) lat_i_freertos_isr_exit(LAT_FREERTOS_IRQ())
#endif

static inline uint32_t lat_i_freertos_tid(uint32_t task)
{
    return task == lat_i_rtos.idle ? 0u : task;
}

LAT_I_FREERTOS void lat_i_freertos_switch(uint32_t task, uint32_t priority, uint32_t state)
{
    lat_freertos_sched_switch(lat_i_freertos_tid(lat_i_rtos.task), lat_i_freertos_tid(task),
                              (enum lat_enum_freertos_state)state, (uint16_t)priority);
}

LAT_I_FREERTOS void lat_i_freertos_created(uint32_t task, uint32_t priority, const char *name)
{
#ifdef configIDLE_TASK_NAME
    const char *idle = configIDLE_TASK_NAME;
#else
    const char *idle = "IDLE";
#endif
    uint32_t i = 0;
    while (name[i] != '\0' && name[i] == idle[i])
        i++;
    /* The kernel truncates names. */
    if (name[i] == '\0' && i != 0 && priority == 0 && lat_i_rtos.idle == 0)
        lat_i_rtos.idle = task;
    lat_freertos_thread_name(LAT_SMALL_PROCESS, task, name);
    lat_freertos_task_create(task, priority);
}

/* A task that leaves is ready if it is in a ready list. Otherwise its state is the one it requested, or else
 * waiting. The code before the scheduler is never resumed. */
#define LAT_I_FREERTOS_STATE(leaving)                                                           \
    ((leaving) == NULL ? (uint32_t)LAT_ENUM_FREERTOS_STATE_DELETED                              \
     : listIS_CONTAINED_WITHIN(&pxReadyTasksLists[(leaving)->uxPriority],                       \
                               &(leaving)->xStateListItem)                                      \
         ? (uint32_t)LAT_ENUM_FREERTOS_STATE_READY                                              \
     : lat_i_rtos.state != 0 ? lat_i_rtos.state                                         \
                                 : (uint32_t)LAT_ENUM_FREERTOS_STATE_BLOCKED)
#define traceTASK_SWITCHED_OUT()                                                                \
    do {                                                                                        \
        lat_i_rtos.leaving = pxCurrentTCB;                                                  \
    } while (0)
/* A switch is recorded on behalf of the task that leaves. */
#define traceTASK_SWITCHED_IN()                                                                 \
    do {                                                                                        \
        const TCB_t *const lat_next = pxCurrentTCB, *const lat_leaving = lat_i_rtos.leaving; \
        if (lat_next != lat_leaving) {                                                          \
            const uint32_t lat_task = LAT_I_FREERTOS_TID(lat_next);                             \
            if (lat_freertos_sched_switch_enabled())                                            \
                lat_i_freertos_switch(lat_task, (uint32_t)lat_next->uxPriority,                 \
                                      LAT_I_FREERTOS_STATE(lat_leaving));                       \
            *(volatile uint32_t *)&lat_i_rtos.task = lat_task;                              \
        }                                                                                       \
        lat_i_rtos.state = 0;                                                               \
    } while (0)
#define LAT_I_FREERTOS_GOES(tcb, into)                                                          \
    do {                                                                                        \
        if ((tcb) == pxCurrentTCB)                                                              \
            lat_i_rtos.state = (uint32_t)(into);                                                   \
    } while (0)
#define traceMOVED_TASK_TO_READY_STATE(pxTCB)                                                   \
    lat_freertos_sched_waking(lat_i_freertos_tid(LAT_I_FREERTOS_TID(pxTCB)),               \
                              (uint16_t)(pxTCB)->uxPriority, LAT_I_FREERTOS_FLAGS())
#define traceTASK_CREATE(pxNewTCB)                                                              \
    lat_i_freertos_created(LAT_I_FREERTOS_TID(pxNewTCB), (uint32_t)(pxNewTCB)->uxPriority, \
                           (pxNewTCB)->pcTaskName)
#define traceTASK_DELETE(pxTaskToDelete)                                                        \
    do {                                                                                        \
        lat_freertos_task_delete(LAT_I_FREERTOS_TID(pxTaskToDelete));                      \
        LAT_I_FREERTOS_GOES(pxTaskToDelete, LAT_ENUM_FREERTOS_STATE_DELETED);                   \
    } while (0)
#define traceTASK_DELAY() lat_freertos_task_delay((uint32_t)xTicksToDelay)
#define traceTASK_DELAY_UNTIL(x) lat_freertos_task_delay_until((uint32_t)(x))
#define traceTASK_SUSPEND(pxTaskToSuspend)                                                      \
    do {                                                                                        \
        lat_freertos_task_suspend(LAT_I_FREERTOS_TID(pxTaskToSuspend));                    \
        LAT_I_FREERTOS_GOES(pxTaskToSuspend, LAT_ENUM_FREERTOS_STATE_SUSPENDED);                \
    } while (0)
#define traceTASK_RESUME(pxTaskToResume)                                                        \
    lat_freertos_task_resume(LAT_I_FREERTOS_TID(pxTaskToResume))
#define traceTASK_RESUME_FROM_ISR(pxTaskToResume)                                               \
    lat_freertos_task_resume(LAT_I_FREERTOS_TID(pxTaskToResume))
#define traceTASK_PRIORITY_SET(pxTask, uxNewPriority)                                           \
    lat_freertos_task_priority(LAT_I_FREERTOS_TID(pxTask), (uint32_t)(uxNewPriority))
#define traceTASK_PRIORITY_INHERIT(pxTCBOfMutexHolder, uxInheritedPriority)                     \
    lat_freertos_task_inherit(LAT_I_FREERTOS_TID(pxTCBOfMutexHolder),                      \
                              (uint32_t)(uxInheritedPriority))
#define traceTASK_PRIORITY_DISINHERIT(pxTCBOfMutexHolder, uxOriginalPriority)                   \
    lat_freertos_task_disinherit(LAT_I_FREERTOS_TID(pxTCBOfMutexHolder),                   \
                                 (uint32_t)(uxOriginalPriority))
/* A 32-bit clock is extended here; see the README if ticks are more than 2^30 clock ticks apart. */
#define traceTASK_INCREMENT_TICK(xTickCount)                                                    \
    do {                                                                                        \
        lat_small_keep_time();                                                                  \
        lat_freertos_tick((uint32_t)(xTickCount));                                              \
    } while (0)
#define traceINCREASE_TICK_COUNT(x)                                                             \
    do {                                                                                        \
        (void)(x);                                                                              \
        lat_small_keep_time();                                                                  \
    } while (0)
#define traceLOW_POWER_IDLE_BEGIN() lat_freertos_low_power_begin()
#define traceLOW_POWER_IDLE_END() lat_freertos_low_power_end()

/* If several notifications are pending, the take is paired with the first; later ones are merged. */
LAT_I_FREERTOS void lat_i_freertos_notified(uint32_t task, uint32_t index, int is_pending)
{
    if (is_pending)
        lat_freertos_notify_merged(task, index);
    else
        lat_freertos_notify_send(task, index);
}
LAT_I_FREERTOS void lat_i_freertos_notification(uint32_t task, uint32_t index, int is_pending)
{
    if (is_pending)
        lat_freertos_notify_receive(task, index);
    else
        lat_freertos_notify_none(index);
}
#define LAT_I_FREERTOS_NOTIFIED(index)                                                          \
    lat_i_freertos_notified(LAT_I_FREERTOS_TID(pxTCB), (uint32_t)(index),                    \
                            ucOriginalNotifyState == taskNOTIFICATION_RECEIVED)
#define LAT_I_FREERTOS_NOTIFICATION(index)                                                      \
    lat_i_freertos_notification(LAT_I_FREERTOS_TID(pxCurrentTCB), (uint32_t)(index),         \
                                pxCurrentTCB->ucNotifyState[index] == taskNOTIFICATION_RECEIVED)
#define traceTASK_NOTIFY(uxIndexToNotify) LAT_I_FREERTOS_NOTIFIED(uxIndexToNotify)
#define traceTASK_NOTIFY_FROM_ISR(uxIndexToNotify) LAT_I_FREERTOS_NOTIFIED(uxIndexToNotify)
#define traceTASK_NOTIFY_GIVE_FROM_ISR(uxIndexToNotify) LAT_I_FREERTOS_NOTIFIED(uxIndexToNotify)
#define traceTASK_NOTIFY_TAKE(uxIndexToWait) LAT_I_FREERTOS_NOTIFICATION(uxIndexToWait)
#define traceTASK_NOTIFY_WAIT(uxIndexToWait) LAT_I_FREERTOS_NOTIFICATION(uxIndexToWait)
#define traceTASK_NOTIFY_TAKE_BLOCK(uxIndexToWait) lat_freertos_notify_wait((uint32_t)(uxIndexToWait))
#define traceTASK_NOTIFY_WAIT_BLOCK(uxIndexToWait) lat_freertos_notify_wait((uint32_t)(uxIndexToWait))

/* ---- queues, semaphores, mutexes: queue.c ----------------------------------- */

/* Kinds are the kernel's queueQUEUE_TYPE_…; a queue set is 0 in V10 and 5 in V11, and counts as a queue. */
enum {
    LAT_I_FREERTOS_MUTEX = 1,
    LAT_I_FREERTOS_COUNTING = 2,
    LAT_I_FREERTOS_BINARY = 3,
    LAT_I_FREERTOS_RECURSIVE = 4
};
static inline int lat_i_freertos_is_mutex(uint32_t kind)
{
    return kind == LAT_I_FREERTOS_MUTEX || kind == LAT_I_FREERTOS_RECURSIVE;
}
static inline int lat_i_freertos_is_semaphore(uint32_t kind)
{
    return kind == LAT_I_FREERTOS_COUNTING || kind == LAT_I_FREERTOS_BINARY;
}

LAT_I_FREERTOS void lat_i_freertos_put(uint32_t object, uint32_t kind, uint32_t count)
{
    if (lat_i_freertos_is_mutex(kind))
        lat_freertos_mutex_give(object);
    else if (lat_i_freertos_is_semaphore(kind))
        lat_freertos_semaphore_give(object, count);
    else
        lat_freertos_queue_send(object, count);
}
LAT_I_FREERTOS void lat_i_freertos_get(uint32_t object, uint32_t kind, uint32_t count)
{
    if (lat_i_freertos_is_mutex(kind))
        lat_freertos_mutex_take(object);
    else if (lat_i_freertos_is_semaphore(kind))
        lat_freertos_semaphore_take(object, count);
    else
        lat_freertos_queue_receive(object, count);
}
LAT_I_FREERTOS void lat_i_freertos_put_failed(uint32_t object, uint32_t kind)
{
    if (lat_i_freertos_is_semaphore(kind))
        lat_freertos_semaphore_give_failed(object);
    else if (!lat_i_freertos_is_mutex(kind))
        lat_freertos_queue_send_failed(object);
}
LAT_I_FREERTOS void lat_i_freertos_get_failed(uint32_t object, uint32_t kind)
{
    if (lat_i_freertos_is_mutex(kind))
        lat_freertos_mutex_take_failed(object);
    else if (lat_i_freertos_is_semaphore(kind))
        lat_freertos_semaphore_take_failed(object);
    else
        lat_freertos_queue_receive_failed(object);
}
LAT_I_FREERTOS void lat_i_freertos_wait(uint32_t object, uint32_t kind)
{
    if (lat_i_freertos_is_mutex(kind))
        lat_freertos_mutex_wait(object);
    else if (lat_i_freertos_is_semaphore(kind))
        lat_freertos_semaphore_wait(object);
    else
        lat_freertos_queue_receive_wait(object);
}
LAT_I_FREERTOS void lat_i_freertos_waited(uint32_t object, uint32_t kind)
{
    if (lat_i_freertos_is_mutex(kind))
        lat_freertos_mutex_waited(object);
    else if (lat_i_freertos_is_semaphore(kind))
        lat_freertos_semaphore_waited(object);
    else
        lat_freertos_queue_receive_waited(object);
}

#define LAT_I_FREERTOS_WAITS 2 /* in xEntryTimeSet */
#define LAT_I_FREERTOS_OF(queue) LAT_I_FREERTOS_ID(queue), (uint32_t)(queue)->ucQueueType
#define LAT_I_FREERTOS_WAIT(wait)                                                               \
    do {                                                                                        \
        if (xEntryTimeSet != LAT_I_FREERTOS_WAITS) {                                            \
            xEntryTimeSet = LAT_I_FREERTOS_WAITS;                                               \
            wait;                                                                               \
        }                                                                                       \
    } while (0)
#define LAT_I_FREERTOS_WAITED(waited)                                                           \
    do {                                                                                        \
        if (xEntryTimeSet == LAT_I_FREERTOS_WAITS)                                              \
            waited;                                                                             \
    } while (0)
#define LAT_I_FREERTOS_SEND_WAITED(queue)                                                       \
    LAT_I_FREERTOS_WAITED(lat_freertos_queue_send_waited(LAT_I_FREERTOS_ID(queue)))
#define LAT_I_FREERTOS_GET_WAITED(queue)                                                        \
    LAT_I_FREERTOS_WAITED(lat_i_freertos_waited(LAT_I_FREERTOS_OF(queue)))
/* The kernel initialises a mutex by a give, which is not recorded: the mutex has no holder. When the item of
 * a full queue is overwritten, the number of items stays the same. */
#define LAT_I_FREERTOS_PUT(queue)                                                               \
    do {                                                                                        \
        if (!lat_i_freertos_is_mutex((queue)->ucQueueType) ||                                   \
            (queue)->u.xSemaphore.xMutexHolder != NULL)                                         \
            lat_i_freertos_put(LAT_I_FREERTOS_OF(queue), (uint32_t)(queue)->uxMessagesWaiting + 1u); \
    } while (0)
#define LAT_I_FREERTOS_PUT_AT(queue)                                                            \
    do {                                                                                        \
        if (xCopyPosition == queueOVERWRITE && (queue)->uxMessagesWaiting == (queue)->uxLength)  \
            lat_freertos_queue_overwrite(LAT_I_FREERTOS_ID(queue));                             \
        else                                                                                    \
            LAT_I_FREERTOS_PUT(queue);                                                          \
    } while (0)

#define traceQUEUE_CREATE(pxNewQueue)                                                           \
    lat_freertos_object_create(LAT_I_FREERTOS_ID(pxNewQueue), (uint32_t)(pxNewQueue)->uxLength, \
                               (uint32_t)(pxNewQueue)->uxItemSize,                              \
                               (enum lat_enum_freertos_kind)(pxNewQueue)->ucQueueType)
#define traceQUEUE_DELETE(pxQueue) lat_freertos_object_delete(LAT_I_FREERTOS_ID(pxQueue))
#define traceQUEUE_REGISTRY_ADD(xQueue, pcQueueName)                                            \
    lat_freertos_object_name(LAT_I_FREERTOS_ID(xQueue), (pcQueueName))
#define traceQUEUE_SEND(pxQueue)                                                                \
    do {                                                                                        \
        LAT_I_FREERTOS_SEND_WAITED(pxQueue);                                                    \
        LAT_I_FREERTOS_PUT_AT(pxQueue);                                                         \
    } while (0)
#define traceQUEUE_SEND_FAILED(pxQueue)                                                         \
    do {                                                                                        \
        LAT_I_FREERTOS_SEND_WAITED(pxQueue);                                                    \
        lat_i_freertos_put_failed(LAT_I_FREERTOS_OF(pxQueue));                                  \
    } while (0)
#define traceBLOCKING_ON_QUEUE_SEND(pxQueue)                                                    \
    LAT_I_FREERTOS_WAIT(lat_freertos_queue_send_wait(LAT_I_FREERTOS_ID(pxQueue)))
#define traceQUEUE_SET_SEND(pxQueue) LAT_I_FREERTOS_PUT(pxQueue)
/* Also used in xQueueGiveFromISR, which has no xCopyPosition: there nothing is overwritten, as the number of
 * items is below the length. */
#define traceQUEUE_SEND_FROM_ISR(pxQueue)                                                       \
    do {                                                                                        \
        if ((pxQueue)->uxMessagesWaiting == (pxQueue)->uxLength)                                \
            lat_freertos_queue_overwrite(LAT_I_FREERTOS_ID(pxQueue));                           \
        else                                                                                    \
            LAT_I_FREERTOS_PUT(pxQueue);                                                        \
    } while (0)
#define traceQUEUE_SEND_FROM_ISR_FAILED(pxQueue) lat_i_freertos_put_failed(LAT_I_FREERTOS_OF(pxQueue))
#define traceQUEUE_RECEIVE(pxQueue)                                                             \
    do {                                                                                        \
        LAT_I_FREERTOS_GET_WAITED(pxQueue);                                                     \
        lat_i_freertos_get(LAT_I_FREERTOS_OF(pxQueue), (uint32_t)(pxQueue)->uxMessagesWaiting - 1u); \
    } while (0)
#define traceQUEUE_RECEIVE_FAILED(pxQueue)                                                      \
    do {                                                                                        \
        LAT_I_FREERTOS_GET_WAITED(pxQueue);                                                     \
        lat_i_freertos_get_failed(LAT_I_FREERTOS_OF(pxQueue));                                  \
    } while (0)
#define traceBLOCKING_ON_QUEUE_RECEIVE(pxQueue)                                                 \
    LAT_I_FREERTOS_WAIT(lat_i_freertos_wait(LAT_I_FREERTOS_OF(pxQueue)))
#define traceQUEUE_RECEIVE_FROM_ISR(pxQueue)                                                    \
    lat_i_freertos_get(LAT_I_FREERTOS_OF(pxQueue), (uint32_t)(pxQueue)->uxMessagesWaiting - 1u)
#define traceQUEUE_RECEIVE_FROM_ISR_FAILED(pxQueue)                                             \
    lat_i_freertos_get_failed(LAT_I_FREERTOS_OF(pxQueue))
#define traceQUEUE_PEEK(pxQueue)                                                                \
    do {                                                                                        \
        LAT_I_FREERTOS_GET_WAITED(pxQueue);                                                     \
        lat_freertos_queue_peek(LAT_I_FREERTOS_ID(pxQueue));                                    \
    } while (0)
#define traceQUEUE_PEEK_FAILED(pxQueue) traceQUEUE_RECEIVE_FAILED(pxQueue)
#define traceBLOCKING_ON_QUEUE_PEEK(pxQueue) traceBLOCKING_ON_QUEUE_RECEIVE(pxQueue)
#define traceQUEUE_PEEK_FROM_ISR(pxQueue) lat_freertos_queue_peek(LAT_I_FREERTOS_ID(pxQueue))
#define traceQUEUE_PEEK_FROM_ISR_FAILED(pxQueue) traceQUEUE_RECEIVE_FROM_ISR_FAILED(pxQueue)
#define traceTAKE_MUTEX_RECURSIVE(pxMutex)                                                      \
    do {                                                                                        \
        if ((pxMutex)->u.xSemaphore.xMutexHolder == xTaskGetCurrentTaskHandle())                \
            lat_freertos_mutex_take_again(LAT_I_FREERTOS_ID(pxMutex));                          \
    } while (0)
#define traceGIVE_MUTEX_RECURSIVE(pxMutex)                                                      \
    do {                                                                                        \
        if ((pxMutex)->u.xSemaphore.uxRecursiveCallCount > 1U)                                  \
            lat_freertos_mutex_give_one(LAT_I_FREERTOS_ID(pxMutex));                            \
    } while (0)

/* ---- software timers: timers.c ------------------------------------------------ */

#define traceTIMER_CREATE(pxNewTimer)                                                           \
    lat_freertos_timer_create(LAT_I_FREERTOS_ID(pxNewTimer),                                    \
                              (uint32_t)(pxNewTimer)->xTimerPeriodInTicks, (pxNewTimer)->pcTimerName)
#define traceTIMER_COMMAND_SEND(xTimer, xMessageID, xMessageValueValue, xReturn)                \
    lat_freertos_timer_command(LAT_I_FREERTOS_ID(xTimer), (int32_t)(xMessageID),                \
                               (uint32_t)(xMessageValueValue), (xReturn) != 0)
#define traceTIMER_COMMAND_RECEIVED(pxTimer, xMessageID, xMessageValue)                         \
    lat_freertos_timer_received(LAT_I_FREERTOS_ID(pxTimer), (int32_t)(xMessageID),              \
                                (uint32_t)(xMessageValue))
#define traceTIMER_EXPIRED(pxTimer) lat_freertos_timer_expired(LAT_I_FREERTOS_ID(pxTimer))
/* For a pended function the command is -1, or -2 from an interrupt [timers.h], and the timer is the
 * function. */
#define tracePEND_FUNC_CALL(xFunctionToPend, pvParameter1, ulParameter2, ret)                   \
    lat_freertos_timer_command(LAT_I_FREERTOS_ID(xFunctionToPend), -1, (uint32_t)(ulParameter2), (ret) != 0)
#define tracePEND_FUNC_CALL_FROM_ISR(xFunctionToPend, pvParameter1, ulParameter2, ret)          \
    lat_freertos_timer_command(LAT_I_FREERTOS_ID(xFunctionToPend), -2, (uint32_t)(ulParameter2), (ret) != 0)

/* ---- event groups: event_groups.c ----------------------------------------------- */

LAT_I_FREERTOS void lat_i_freertos_bits(uint32_t group, uint32_t bits, int has_waited, int timed_out)
{
    if (has_waited)
        lat_freertos_group_waited(group, bits, timed_out != 0);
    else if (!timed_out)
        lat_freertos_group_got(group, bits);
}
#define LAT_I_FREERTOS_BITS(group, bits, timed_out)                                             \
    lat_i_freertos_bits(LAT_I_FREERTOS_ID(group), (uint32_t)(bits), xTicksToWait != 0U, (timed_out) != 0)
#define traceEVENT_GROUP_CREATE(xEventGroup) lat_freertos_group_create(LAT_I_FREERTOS_ID(xEventGroup))
#define traceEVENT_GROUP_DELETE(xEventGroup) lat_freertos_group_delete(LAT_I_FREERTOS_ID(xEventGroup))
#define traceEVENT_GROUP_SET_BITS(xEventGroup, uxBitsToSet)                                     \
    lat_freertos_group_set(LAT_I_FREERTOS_ID(xEventGroup), (uint32_t)(uxBitsToSet))
#define traceEVENT_GROUP_CLEAR_BITS(xEventGroup, uxBitsToClear)                                 \
    lat_freertos_group_clear(LAT_I_FREERTOS_ID(xEventGroup), (uint32_t)(uxBitsToClear))
/* From an interrupt both are functions called by the timer task, which records them. */
#define traceEVENT_GROUP_WAIT_BITS_BLOCK(xEventGroup, uxBitsToWaitFor)                          \
    lat_freertos_group_wait(LAT_I_FREERTOS_ID(xEventGroup), (uint32_t)(uxBitsToWaitFor))
#define traceEVENT_GROUP_WAIT_BITS_END(xEventGroup, uxBitsToWaitFor, xTimeoutOccurred)          \
    LAT_I_FREERTOS_BITS(xEventGroup, uxBitsToWaitFor, xTimeoutOccurred)
#define traceEVENT_GROUP_SYNC_BLOCK(xEventGroup, uxBitsToSet, uxBitsToWaitFor)                  \
    lat_freertos_group_wait(LAT_I_FREERTOS_ID(xEventGroup), (uint32_t)(uxBitsToWaitFor))
#define traceEVENT_GROUP_SYNC_END(xEventGroup, uxBitsToSet, uxBitsToWaitFor, xTimeoutOccurred)  \
    LAT_I_FREERTOS_BITS(xEventGroup, uxBitsToWaitFor, xTimeoutOccurred)

/* ---- stream and message buffers: stream_buffer.c ---------------------------------- */

#define traceSTREAM_BUFFER_CREATE(pxStreamBuffer, xStreamBufferType)                            \
    lat_freertos_buffer_create(LAT_I_FREERTOS_ID(pxStreamBuffer), (uint32_t)(xStreamBufferType))
#define traceSTREAM_BUFFER_DELETE(xStreamBuffer)                                                \
    lat_freertos_buffer_delete(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceSTREAM_BUFFER_RESET(xStreamBuffer)                                                 \
    lat_freertos_buffer_reset(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceSTREAM_BUFFER_RESET_FROM_ISR(xStreamBuffer)                                        \
    lat_freertos_buffer_reset(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceBLOCKING_ON_STREAM_BUFFER_SEND(xStreamBuffer)                                      \
    lat_freertos_buffer_send_wait(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceSTREAM_BUFFER_SEND(xStreamBuffer, xBytesSent)                                      \
    lat_freertos_buffer_send(LAT_I_FREERTOS_ID(xStreamBuffer), (uint32_t)(xBytesSent))
#define traceSTREAM_BUFFER_SEND_FAILED(xStreamBuffer)                                           \
    lat_freertos_buffer_send_failed(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceSTREAM_BUFFER_SEND_FROM_ISR(xStreamBuffer, xBytesSent)                             \
    lat_freertos_buffer_send(LAT_I_FREERTOS_ID(xStreamBuffer), (uint32_t)(xBytesSent))
#define traceBLOCKING_ON_STREAM_BUFFER_RECEIVE(xStreamBuffer)                                   \
    lat_freertos_buffer_receive_wait(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceSTREAM_BUFFER_RECEIVE(xStreamBuffer, xReceivedLength)                              \
    lat_freertos_buffer_receive(LAT_I_FREERTOS_ID(xStreamBuffer), (uint32_t)(xReceivedLength))
#define traceSTREAM_BUFFER_RECEIVE_FAILED(xStreamBuffer)                                        \
    lat_freertos_buffer_receive_failed(LAT_I_FREERTOS_ID(xStreamBuffer))
#define traceSTREAM_BUFFER_RECEIVE_FROM_ISR(xStreamBuffer, xReceivedLength)                     \
    lat_freertos_buffer_receive(LAT_I_FREERTOS_ID(xStreamBuffer), (uint32_t)(xReceivedLength))

/* ---- the heap: heap_1.c to heap_5.c ------------------------------------------------- */

#define traceMALLOC(pvAddress, uiSize)                                                          \
    lat_freertos_malloc(LAT_I_FREERTOS_ID(pvAddress), (uint32_t)(uiSize),                       \
                        (uint32_t)LAT_FREERTOS_HEAP_FREE())
#define traceFREE(pvAddress, uiSize)                                                            \
    lat_freertos_free(LAT_I_FREERTOS_ID(pvAddress), (uint32_t)(uiSize),                         \
                      (uint32_t)LAT_FREERTOS_HEAP_FREE())

#endif /* __ASSEMBLER__ */
#endif
