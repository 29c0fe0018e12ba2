/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Of seL4's library the benchmarking calls, on Linux: the log of tracepoints and CPU utilisation, both at
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

/** Size of a log buffer, of a large frame: the same on all machines here. */
#define seL4_LogBufferSize (1ul << 20)

#define seL4_MsgMaxLength 120
typedef struct seL4_IPCBuffer_ {
    seL4_Word tag;
    seL4_Word msg[seL4_MsgMaxLength];
} seL4_IPCBuffer;
/** Of the thread that calls. */
seL4_IPCBuffer *seL4_GetIPCBuffer(void);
static inline seL4_Word seL4_GetMR(int number)
{
    return seL4_GetIPCBuffer()->msg[number];
}

/** Forgets the log, and begins to track utilisation. */
seL4_Error seL4_BenchmarkResetLog(void);
/**
 * Puts what was logged into the buffer, and ends tracking utilisation.
 * @return how many entries there were: more than the buffer holds if some were dropped.
 */
seL4_Word seL4_BenchmarkFinalizeLog(void);
/** Where the log goes: here the address of seL4_LogBufferSize bytes, which kernel_logging_sync_log does not
 * need. 0 takes it back. */
seL4_Error seL4_BenchmarkSetLogBuffer(seL4_Word frame);

/** Words of the IPC buffer, by the names of <sel4/benchmark_utilisation_types.h>: what a thread had, and
   all. */
void seL4_BenchmarkGetThreadUtilisation(seL4_CPtr thread);
void seL4_BenchmarkResetThreadUtilisation(seL4_CPtr thread);
/** Writes the utilisation of all threads to standard output, as JSON that `lat` reads. */
void seL4_BenchmarkDumpAllThreadsUtilisation(void);
void seL4_BenchmarkResetAllThreadsUtilisation(void);

/** Enters the kernel and does nothing there. */
void seL4_BenchmarkNullSyscall(void);
/** Fills the caches with other data: a program may not flush them. Some milliseconds. */
void seL4_BenchmarkFlushCaches(void);

#ifdef __cplusplus
}
#endif

#endif
