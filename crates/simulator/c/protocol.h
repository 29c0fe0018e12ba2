/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of the plugin by the guest's init, and frames that the plugin writes into its pipe.
 * crates/simulator/src/frame.rs and src/log.rs read the frames.
 */
#ifndef LAT_SIMULATOR_PROTOCOL_H
#define LAT_SIMULATOR_PROTOCOL_H

#include <stdint.h>

/*
 * A call of the plugin by the guest: `nopl 0x4c415453(%rax)`, which does nothing elsewhere, with the kind
 * in rdi, an address in rsi and a number of bytes in rdx.
 */
#define LAT_CALL_BYTES 0x0f, 0x1f, 0x80, 0x53, 0x54, 0x41, 0x4c

/* The guest sends no more at once. */
#define LAT_CALL_BYTES_MAX 65536u

/* Calls of init; the numbers are those of the frames, too. */
enum lat_frame {
    LAT_FRAME_STDOUT = 1,   /* output of the program */
    LAT_FRAME_STDERR = 2,
    LAT_FRAME_SIDEBAND = 3, /* records of the guest's perf events */
    LAT_FRAME_KALLSYMS = 4, /* text of /proc/kallsyms */
    LAT_FRAME_VDSO = 5,     /* the ELF file that the kernel maps into each program */
    LAT_FRAME_STATUS = 6,   /* struct lat_status: the program has ended */
    LAT_FRAME_PROBLEM = 7,  /* text: init could not do something */
    LAT_FRAME_BEGIN = 8,    /* struct lat_begin: the program is about to be started */
    LAT_CALL_EXEC = 9,      /* the caller becomes the program by its next exec; no frame */
    /* Frames of the plugin itself. */
    LAT_FRAME_BLOCKS = 16,  /* definitions: struct lat_block, sizes of instructions, their bytes */
    LAT_FRAME_FLOW = 17,    /* words, below */
    LAT_FRAME_COUNTS = 18,  /* struct lat_counts of one CPU, at the end */
    LAT_FRAME_TRUTH = 19,   /* 64-bit words: every instruction, where tests ask for it */
};

/* A frame is this and `size` bytes. */
struct lat_frame_header {
    uint16_t kind;
    uint16_t cpu;
    uint32_t size;
};

struct lat_block {
    uint32_t id;
    uint32_t count; /* instructions; as many bytes of sizes follow, then the code */
    uint64_t ip;
};

/* Words of a flow: a block's number, or one of these with what belongs to it. */
enum lat_word {
    LAT_WORD_PART = 0xfffffffeu,   /* begun instructions of the previous block: 1 word */
    LAT_WORD_THREAD = 0xfffffffdu, /* what follows is of this thread: tid, process, CR3 (2 words) */
    LAT_WORD_TIME = 0xfffffffcu,   /* time stamp counter of the next block: 2 words */
    LAT_WORD_EVENT = 0xfffffffbu,  /* from outside; the address that would have come next: 2 words */
    LAT_WORD_LEAVE = 0xfffffffau,  /* what follows is not recorded */
    LAT_WORD_CPU = 0xfffffff8u,    /* what follows is of this CPU: 1 word */
    LAT_WORD_MOVE = 0xfffffff9u,   /* executed minus defined address of blocks: 2 words */
};
#define LAT_BLOCKS_MAX 0xf0000000u

/* Truth: an address, or the top 16 bits are these. */
#define LAT_TRUTH_THREAD 0x7ffe000000000000u /* and a thread's number */
#define LAT_TRUTH_UNDONE 0x7ffd000000000000u /* the instruction before did not retire */

struct lat_begin {
    uint64_t current_task; /* offset of the running task's address in the per-CPU memory */
    uint64_t pid;          /* offset of `pid` in a task; `tgid` follows it */
    uint64_t mm;           /* offset of `mm` in a task */
    uint64_t idt;          /* address of the interrupt descriptor table */
    uint64_t switch_to;    /* address of __switch_to */
    uint64_t time_zero;    /* perf's clock: nanoseconds = time_zero + (tsc * mult >> shift) */
    uint32_t time_mult;
    uint32_t time_shift;
    uint64_t per_cpu; /* address of the array of addresses of per-CPU memory */
};

struct lat_status {
    uint32_t status; /* as of wait4 */
    uint32_t error;  /* errno of the exec that failed, else 0 */
};

struct lat_counts {
    uint64_t instructions; /* begun, of this CPU since recording began, recorded or not */
    uint64_t recorded;     /* begun in blocks of the flow */
};

#endif
