// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Configuration of the kernel of the example images, on all machines. The last line enables recording. */
#ifndef FREERTOS_CONFIG_H
#define FREERTOS_CONFIG_H

#define configUSE_PREEMPTION 1
#define configTICK_RATE_HZ 1000
#define configMAX_PRIORITIES 8
#define configMINIMAL_STACK_SIZE 256
#define configMAX_TASK_NAME_LEN 16
#define configUSE_16_BIT_TICKS 0
#define configIDLE_SHOULD_YIELD 1
#define configTOTAL_HEAP_SIZE (128 * 1024)
#define configSUPPORT_DYNAMIC_ALLOCATION 1
#define configSUPPORT_STATIC_ALLOCATION 0

#define configUSE_MUTEXES 1
#define configUSE_RECURSIVE_MUTEXES 1
#define configUSE_COUNTING_SEMAPHORES 1
#define configUSE_QUEUE_SETS 1
#define configUSE_TASK_NOTIFICATIONS 1
#define configTASK_NOTIFICATION_ARRAY_ENTRIES 2
#define configQUEUE_REGISTRY_SIZE 8
#define configUSE_IDLE_HOOK 0
#define configUSE_TICK_HOOK 1
#define configUSE_MALLOC_FAILED_HOOK 0
#define configCHECK_FOR_STACK_OVERFLOW 0

#define configUSE_TIMERS 1
#define configTIMER_TASK_PRIORITY 7
#define configTIMER_QUEUE_LENGTH 8
#define configTIMER_TASK_STACK_DEPTH 256

#define INCLUDE_vTaskDelay 1
#define INCLUDE_xTaskDelayUntil 1
#define INCLUDE_vTaskDelete 1
#define INCLUDE_vTaskSuspend 1
#define INCLUDE_vTaskPrioritySet 1
#define INCLUDE_uxTaskPriorityGet 1
#define INCLUDE_xTaskGetCurrentTaskHandle 1

#define configUSE_TRACE_FACILITY 1

#ifndef __ASSEMBLER__
/* The example counts switches by itself: vTaskSwitchContext reads this "clock" once each time. */
#define configGENERATE_RUN_TIME_STATS 1
#define portCONFIGURE_TIMER_FOR_RUN_TIME_STATS()
#define portALT_GET_RUN_TIME_COUNTER_VALUE(time) ((time) = example_count_switch())
#ifdef __cplusplus
extern "C"
#endif
unsigned long example_count_switch(void);

#ifdef __cplusplus
extern "C"
#endif
void example_fault(const char *file, int line);
#define configASSERT(x)                                                                         \
    if (!(x))                                                                                   \
    example_fault(__FILE__, __LINE__)
#endif

#if defined(__riscv)
/* QEMU's virt: CLINT, 10 MHz. */
#define configCPU_CLOCK_HZ 10000000
#define configMTIME_BASE_ADDRESS 0x0200bff8
#define configMTIMECMP_BASE_ADDRESS 0x02004000
#define configISR_STACK_SIZE_WORDS 512
#elif defined(__arm__)
#ifdef BOARD_AN505
#define configCPU_CLOCK_HZ 20000000
#define configENABLE_FPU 0
#define configENABLE_MPU 0
#define configENABLE_TRUSTZONE 0
#define configRUN_FREERTOS_SECURE_ONLY 1
#else
#define configCPU_CLOCK_HZ 25000000
#define vPortSVCHandler SVC_Handler
#define xPortPendSVHandler PendSV_Handler
#define xPortSysTickHandler SysTick_Handler
#endif
#define configKERNEL_INTERRUPT_PRIORITY 0xff
#define configMAX_SYSCALL_INTERRUPT_PRIORITY 0x40
#else
#define configCPU_CLOCK_HZ 1000000000
#endif

#ifndef EXAMPLE_WITHOUT_TRACE
#include <lat/freertos.h>
#endif

#endif
