/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The benchmarking calls of seL4's library, on Linux: the log of tracepoints and CPU utilisation, both at
 * once.
 *
 * A capability to a thread is the Linux id of a thread of this process, or seL4_CapInitThreadTCB for the
 * first. Context: any thread, no signal handler.
 */
#ifndef SEL4_SEL4_H
#define SEL4_SEL4_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long seL4_Word;
typedef seL4_Word seL4_CPtr;
typedef enum {
    seL4_NoError = 0,
    seL4_InvalidArgument,
    seL4_InvalidCapability
} seL4_Error;

#define seL4_CapInitThreadTCB ((seL4_CPtr)1)

/** Size of a log buffer, which is a large frame in seL4; the same on all machines here. */
#define seL4_LogBufferSize (1ul << 20)

#define seL4_MsgMaxLength 120
typedef struct seL4_IPCBuffer_ {
    seL4_Word tag;
    seL4_Word msg[seL4_MsgMaxLength];
} seL4_IPCBuffer;
/** The IPC buffer of the calling thread. */
seL4_IPCBuffer *seL4_GetIPCBuffer(void);
static inline seL4_Word seL4_GetMR(int number)
{
    return seL4_GetIPCBuffer()->msg[number];
}

/** Clears the log, and starts tracking utilisation. */
seL4_Error seL4_BenchmarkResetLog(void);
/**
 * Copies the logged entries into the buffer, and stops tracking utilisation.
 * @return number of entries logged: more than the buffer holds if some were dropped.
 */
seL4_Word seL4_BenchmarkFinalizeLog(void);
/** Sets the log buffer: here the address of seL4_LogBufferSize bytes. kernel_logging_sync_log works without
  * one. 0 removes it. */
seL4_Error seL4_BenchmarkSetLogBuffer(seL4_Word frame);

/** Writes the utilisation of a thread and of the whole program to the IPC buffer, by the names of
    <sel4/benchmark_utilisation_types.h>. */
void seL4_BenchmarkGetThreadUtilisation(seL4_CPtr thread);
void seL4_BenchmarkResetThreadUtilisation(seL4_CPtr thread);
/** Writes the utilisation of all threads to standard output, as JSON that `lat` reads. */
void seL4_BenchmarkDumpAllThreadsUtilisation(void);
void seL4_BenchmarkResetAllThreadsUtilisation(void);

/** Enters the kernel and returns at once. */
void seL4_BenchmarkNullSyscall(void);
/** Fills the caches with other data, because a program may not flush them. Takes some milliseconds. */
void seL4_BenchmarkFlushCaches(void);

#ifdef __cplusplus
}
#endif

#endif
