// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The trace macros as the functions of V10.4 use them: with the names of V10.4.6 [FreeRTOS.h], and in scope
 * the variables that V10.4.6 has there [tasks.c, queue.c, timers.c, event_groups.c, stream_buffer.c,
 * heap_4.c]. Compiled, never run.
 */
#include <stddef.h>
#include <stdint.h>

typedef long BaseType_t;
typedef unsigned long UBaseType_t;
typedef uint32_t TickType_t;
#define pdFALSE ((BaseType_t)0)
#define pdTRUE ((BaseType_t)1)
#define queueOVERWRITE ((BaseType_t)2)
#define taskNOTIFICATION_RECEIVED ((uint8_t)2)

#define configUSE_TRACE_FACILITY 1
#include <lat/freertos.h>

struct list {
    UBaseType_t uxNumberOfItems;
};
typedef struct {
    struct list *pxContainer;
} ListItem_t;
#define listIS_CONTAINED_WITHIN(pxList, pxListItem) \
    (((pxListItem)->pxContainer == (pxList)) ? pdTRUE : pdFALSE)
typedef struct {
    ListItem_t xStateListItem;
    UBaseType_t uxPriority, uxTCBNumber, uxTaskNumber;
    char pcTaskName[16];
    volatile uint8_t ucNotifyState[1];
} TCB_t;
typedef TCB_t *TaskHandle_t;
typedef struct {
    union {
        struct {
            int8_t *pcTail, *pcReadFrom;
        } xQueue;
        struct {
            TaskHandle_t xMutexHolder;
            UBaseType_t uxRecursiveCallCount;
        } xSemaphore;
    } u;
    volatile UBaseType_t uxMessagesWaiting;
    UBaseType_t uxLength, uxItemSize, uxQueueNumber;
    uint8_t ucQueueType;
} Queue_t;
typedef struct {
    const char *pcTimerName;
    TickType_t xTimerPeriodInTicks;
} Timer_t;

extern TCB_t *volatile pxCurrentTCB;
extern struct list pxReadyTasksLists[8];
TaskHandle_t xTaskGetCurrentTaskHandle(void);
size_t xPortGetFreeHeapSize(void);

void of_tasks(TCB_t *pxTCB, TickType_t xTicksToDelay, TickType_t xTickCount, UBaseType_t uxIndex);
void of_tasks(TCB_t *pxTCB, TickType_t xTicksToDelay, TickType_t xTickCount, UBaseType_t uxIndex)
{
    uint8_t ucOriginalNotifyState = pxTCB->ucNotifyState[uxIndex];
    traceTASK_SWITCHED_OUT();
    traceTASK_SWITCHED_IN();
    traceINCREASE_TICK_COUNT(xTicksToDelay);
    traceLOW_POWER_IDLE_BEGIN();
    traceLOW_POWER_IDLE_END();
    traceTASK_PRIORITY_INHERIT(pxTCB, pxCurrentTCB->uxPriority);
    traceTASK_PRIORITY_DISINHERIT(pxTCB, pxTCB->uxPriority);
    traceMOVED_TASK_TO_READY_STATE(pxTCB);
    traceTASK_CREATE(pxTCB);
    traceTASK_DELETE(pxTCB);
    traceTASK_DELAY_UNTIL(xTickCount);
    traceTASK_DELAY();
    traceTASK_PRIORITY_SET(pxTCB, pxTCB->uxPriority);
    traceTASK_SUSPEND(pxTCB);
    traceTASK_RESUME(pxTCB);
    traceTASK_RESUME_FROM_ISR(pxTCB);
    traceTASK_INCREMENT_TICK(xTickCount);
    traceTASK_NOTIFY_TAKE_BLOCK(uxIndex);
    traceTASK_NOTIFY_TAKE(uxIndex);
    traceTASK_NOTIFY_WAIT_BLOCK(uxIndex);
    traceTASK_NOTIFY_WAIT(uxIndex);
    traceTASK_NOTIFY(uxIndex);
    traceTASK_NOTIFY_FROM_ISR(uxIndex);
    traceTASK_NOTIFY_GIVE_FROM_ISR(uxIndex);
}

void of_queues(Queue_t *pxQueue, BaseType_t xCopyPosition, const char *pcQueueName);
void of_queues(Queue_t *pxQueue, BaseType_t xCopyPosition, const char *pcQueueName)
{
    BaseType_t xEntryTimeSet = pdFALSE;
    traceQUEUE_CREATE(pxQueue);
    traceQUEUE_SEND(pxQueue);
    traceQUEUE_SEND_FAILED(pxQueue);
    traceBLOCKING_ON_QUEUE_SEND(pxQueue);
    traceQUEUE_SET_SEND(pxQueue);
    traceQUEUE_RECEIVE(pxQueue);
    traceQUEUE_RECEIVE_FAILED(pxQueue);
    traceBLOCKING_ON_QUEUE_RECEIVE(pxQueue);
    traceQUEUE_PEEK(pxQueue);
    traceQUEUE_PEEK_FAILED(pxQueue);
    traceBLOCKING_ON_QUEUE_PEEK(pxQueue);
    traceQUEUE_DELETE(pxQueue);
    traceGIVE_MUTEX_RECURSIVE(pxQueue);
    traceTAKE_MUTEX_RECURSIVE(pxQueue);
    traceQUEUE_REGISTRY_ADD(pxQueue, pcQueueName);
}

void of_interrupts(Queue_t *pxQueue);
void of_interrupts(Queue_t *pxQueue)
{
    traceQUEUE_SEND_FROM_ISR(pxQueue);
    traceQUEUE_SEND_FROM_ISR_FAILED(pxQueue);
    traceQUEUE_RECEIVE_FROM_ISR(pxQueue);
    traceQUEUE_RECEIVE_FROM_ISR_FAILED(pxQueue);
    traceQUEUE_PEEK_FROM_ISR(pxQueue);
    traceQUEUE_PEEK_FROM_ISR_FAILED(pxQueue);
}

void of_others(Timer_t *pxTimer, void *xObject, UBaseType_t uxBits, BaseType_t xReturn, size_t xBytes,
               TickType_t xTicksToWait);
void of_others(Timer_t *pxTimer, void *xObject, UBaseType_t uxBits, BaseType_t xReturn, size_t xBytes,
               TickType_t xTicksToWait)
{
    traceTIMER_CREATE(pxTimer);
    traceTIMER_COMMAND_SEND(pxTimer, xReturn, uxBits, xReturn);
    traceTIMER_EXPIRED(pxTimer);
    traceTIMER_COMMAND_RECEIVED(pxTimer, xReturn, uxBits);
    tracePEND_FUNC_CALL(of_interrupts, xObject, uxBits, xReturn);
    tracePEND_FUNC_CALL_FROM_ISR(of_interrupts, xObject, uxBits, xReturn);
    traceEVENT_GROUP_CREATE(xObject);
    traceEVENT_GROUP_SYNC_BLOCK(xObject, uxBits, uxBits);
    traceEVENT_GROUP_SYNC_END(xObject, uxBits, uxBits, xReturn);
    traceEVENT_GROUP_WAIT_BITS_BLOCK(xObject, uxBits);
    traceEVENT_GROUP_WAIT_BITS_END(xObject, uxBits, xReturn);
    traceEVENT_GROUP_CLEAR_BITS(xObject, uxBits);
    traceEVENT_GROUP_SET_BITS(xObject, uxBits);
    traceEVENT_GROUP_DELETE(xObject);
    traceSTREAM_BUFFER_CREATE(xObject, xReturn);
    traceSTREAM_BUFFER_DELETE(xObject);
    traceSTREAM_BUFFER_RESET(xObject);
    traceBLOCKING_ON_STREAM_BUFFER_SEND(xObject);
    traceSTREAM_BUFFER_SEND(xObject, xBytes);
    traceSTREAM_BUFFER_SEND_FAILED(xObject);
    traceSTREAM_BUFFER_SEND_FROM_ISR(xObject, xBytes);
    traceBLOCKING_ON_STREAM_BUFFER_RECEIVE(xObject);
    traceSTREAM_BUFFER_RECEIVE(xObject, xBytes);
    traceSTREAM_BUFFER_RECEIVE_FAILED(xObject);
    traceSTREAM_BUFFER_RECEIVE_FROM_ISR(xObject, xBytes);
    traceMALLOC(xObject, xBytes);
    traceFREE(xObject, xBytes);
}
