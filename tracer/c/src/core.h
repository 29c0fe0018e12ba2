// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The porting contract: what the core (core.c, freestanding, calls nothing else)
 * requires from its environment, and what it provides. A port is one file
 * that defines these functions; src/linux.c is the first.
 */
#ifndef LAT_CORE_H
#define LAT_CORE_H

#include "lat/lat.h"
#include "lat/clock.h"

/* Number of tries before an event that is restarted repeatedly is given up. */
#define LAT_RETRY_LIMIT 1000u

/* The core's view of the area; filled in by the port. */
struct lat_i_area {
    struct lat_area_header *header; /* NULL: no area, nothing is ever recorded */
    uint32_t kind;                  /* enum lat_ring_kind */
    uint32_t ring_count;
    uint64_t mapped_bytes;          /* address space of the area */
    uint64_t ring_stride;
    uint64_t packet_bytes;
    uint64_t packets_per_ring;
    uint64_t packet_room;  /* end of the space for records in a packet */
    uint64_t payload_end;  /* longest payload plus 1; 0 until the rings are usable */
    uint32_t packet_shift; /* packet_bytes is 1 << packet_shift */
    uint32_t rings_usable; /* 0 until lat_i_rings_usable has seen rings_ready (pair R1) */
};
extern struct lat_i_area lat_i_area;
/* A ring that is always full: the target of sites before there are rings. */
extern struct lat_ring lat_i_dummy_ring;

/* ---- the port provides ------------------------------------------------ */

/** Makes the calling thread a writer: fills lat_i_thread.{writer,pid}. Async-signal-safe. */
enum lat_i_thread_begun {
    LAT_I_THREAD_CANNOT = 0, /* no restartable sequences in this thread */
    LAT_I_THREAD_READY = 1,
    LAT_I_FIRST_OF_PROCESS = 2 /* and the first writer of its process */
};
int lat_i_port_thread_begin(void);
uint32_t lat_i_port_parent_pid(void);
/** The current CPU when restartable sequences work in this thread, else negative. */
int lat_i_port_cpu(void);
/** Clears the thread's reference to the descriptor of its last restartable sequence: it may
 * be in an object that will be unloaded (include/lat/ring_cpu_x86_64.h). Async-signal-safe. */
void lat_i_port_sequence_over(void);
/** Makes the first `bytes` bytes of the rings accessible. The file contains them by now; until now their
 * address space was only reserved. Async-signal-safe. @return whether they are accessible. */
int lat_i_port_open_rings(uint64_t bytes);
/** Registers a cleanup for the end of this thread, once it has claimed a ring. */
void lat_i_port_thread_claimed(void);
/** Name of the calling thread, at most 15 characters and NUL; called once per thread. Async-signal-safe. */
void lat_i_port_thread_name(char name[16]);
/** Name of the process, whichever of its threads calls. Otherwise like lat_i_port_thread_name. */
void lat_i_port_process_name(char name[16]);

/* Restartable-sequence primitives, one assembler file per CPU family. All return 1 when
 * committed, 0 when the condition did not hold or the sequence was restarted.
 * Condition: this thread runs on `cpu` and `ring->cursor == expect`. */

struct lat_i_store {
    uint64_t *address;
    uint64_t value;
};
/** Performs the stores in order, then commits by `*target = value`. */
int lat_i_rseq_stores(struct lat_ring *ring, uint32_t cpu, uint64_t expect,
                      const struct lat_i_store *stores, uint64_t count, uint64_t *target,
                      uint64_t value);
/** Writes a record (header with the clock read inside, then the pieces) at `place`
 * and commits by `ring->cursor = cursor`. */
int lat_i_rseq_record(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *place,
                      uint64_t id, const struct lat_i_piece *pieces, uint64_t count,
                      uint64_t cursor);
/** Adds one to a counter of the ring. */
int lat_i_rseq_count(struct lat_ring *ring, uint32_t cpu, uint64_t expect, uint64_t *counter);
#if defined(__x86_64__)
/** Adds one to lost_full of the current CPU's ring if neither the packet that is open there nor a
 * further one has room for a record of this size. Context: the rings are usable, discard mode. */
int lat_i_rseq_lost(uint64_t record_bytes);
/** Like lat_i_rseq_lost for lat_i_emit_words, which it completes either way: saves one call. */
void lat_i_rseq_words_or_lost(uint32_t id, uint32_t payload_bytes, const uint64_t *words);
#endif

/* ---- the core provides ------------------------------------------------ */

/** lat_i_emit_words without the fast path of lost events. */
void lat_i_emit_words_slowly(uint32_t id, uint32_t payload_bytes, const uint64_t *words);
/** Reads the geometry once the rings are usable. @return whether they are. */
int lat_i_rings_usable(void);
/** Releases the thread's rings (per-thread kind). Context: the thread's end. */
void lat_i_thread_end(void);
/** Records the new name of a thread of this process, if the calling one is a writer. */
void lat_i_tell_thread_name(uint32_t thread, const char *name);
/** Counts events that cannot be recorded for a reason that concerns no ring. */
void lat_i_count_lost(uint64_t events);
/** Discards the state inherited from the parent's thread. Context: the only thread of a forked child. */
void lat_i_thread_forked(void);

#endif
