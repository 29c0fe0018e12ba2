// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The hooks of CONFIG_TRACING_USER, restated like zephyr/kernel.h in this folder. */
#ifndef RESTATED_ZEPHYR_TRACING_H
#define RESTATED_ZEPHYR_TRACING_H

#include <zephyr/kernel.h>

void sys_trace_thread_create_user(struct k_thread *thread);
void sys_trace_thread_abort_user(struct k_thread *thread);
void sys_trace_thread_suspend_user(struct k_thread *thread);
void sys_trace_thread_resume_user(struct k_thread *thread);
void sys_trace_thread_name_set_user(struct k_thread *thread);
void sys_trace_thread_switched_in_user(void);
void sys_trace_thread_switched_out_user(void);
void sys_trace_thread_info_user(struct k_thread *thread);
void sys_trace_thread_priority_set_user(struct k_thread *thread, int prio);
void sys_trace_thread_sched_ready_user(struct k_thread *thread);
void sys_trace_isr_enter_user(void);
void sys_trace_isr_exit_user(void);
void sys_trace_idle_user(void);

void sys_trace_k_sem_init_user(struct k_sem *sem, int ret);
void sys_trace_k_sem_give_enter_user(struct k_sem *sem);
void sys_trace_k_sem_take_enter_user(struct k_sem *sem, k_timeout_t timeout);
void sys_trace_k_sem_take_blocking_user(struct k_sem *sem, k_timeout_t timeout);
void sys_trace_k_sem_take_exit_user(struct k_sem *sem, k_timeout_t timeout, int ret);
void sys_trace_k_sem_reset_user(struct k_sem *sem);

void sys_trace_k_mutex_lock_enter_user(struct k_mutex *mutex, k_timeout_t timeout);
void sys_trace_k_mutex_lock_blocking_user(struct k_mutex *mutex, k_timeout_t timeout);
void sys_trace_k_mutex_lock_exit_user(struct k_mutex *mutex, k_timeout_t timeout, int ret);
void sys_trace_k_mutex_unlock_enter_user(struct k_mutex *mutex);

void sys_trace_k_msgq_init_user(struct k_msgq *msgq);
void sys_trace_k_msgq_put_enter_user(struct k_msgq *msgq, k_timeout_t timeout);
void sys_trace_k_msgq_put_blocking_user(struct k_msgq *msgq, k_timeout_t timeout);
void sys_trace_k_msgq_put_exit_user(struct k_msgq *msgq, k_timeout_t timeout, int ret);
void sys_trace_k_msgq_put_front_enter_user(struct k_msgq *msgq, k_timeout_t timeout);
void sys_trace_k_msgq_put_front_blocking_user(struct k_msgq *msgq, k_timeout_t timeout);
void sys_trace_k_msgq_put_front_exit_user(struct k_msgq *msgq, k_timeout_t timeout, int ret);
void sys_trace_k_msgq_get_enter_user(struct k_msgq *msgq, k_timeout_t timeout);
void sys_trace_k_msgq_get_blocking_user(struct k_msgq *msgq, k_timeout_t timeout);
void sys_trace_k_msgq_get_exit_user(struct k_msgq *msgq, k_timeout_t timeout, int ret);
void sys_trace_k_msgq_purge_user(struct k_msgq *msgq);

#endif
