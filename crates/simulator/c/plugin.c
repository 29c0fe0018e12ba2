/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Plugin of QEMU that writes which blocks of code each simulated CPU executes.
 *
 * It has two phases. While the guest boots, only calls of its init are detected, so that booting
 * is as fast as without a plugin. At LAT_FRAME_BEGIN all code is translated again, and then:
 *
 *   user code     every instruction counts itself, and every block of a recorded thread is written
 *   kernel code   blocks add their size to the count; with `kernel=on` they are written as well
 *
 * `mode` of each CPU is the kind that it executed last. The first block of the other kind detects
 * the change and calls a function that reads registers and memory; all other blocks do not.
 *
 * QEMU must run with -icount: one thread then executes all CPUs in turn, so that nothing here
 * needs a lock, and the guest's time stamp counter is the number of instructions executed so far (one
 * nanosecond each) plus the nanoseconds in which all CPUs were idle.
 *
 * Code is translated once for all places at which the same page is mapped, in programs that share a
 * library, for instance. So the address of execution is read from the CPU for each page, and again
 * whenever the kernel ran in between, because only the kernel changes mappings (`distance`).
 *
 * Blocks are also translated once for all CPUs, and QEMU 10 passes the number of the CPU that
 * translated a block instead of the one that runs it, both in calls and in inline operations.
 * So with several CPUs every block calls, and `find_cpu` determines which of them runs.
 */
#include "protocol.h"
#include "qemu_plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 4;

enum { CPUS_MAX = 64, WORDS = 1 << 14, DEFINITIONS = 1 << 16, INSTRUCTION_BYTES = 16, VECTORS = 256 };

enum mode { MODE_KERNEL, MODE_USER, MODE_CLOCK_READ };

/* Addresses of the kernel have the highest bit. */
#define KERNEL (1ull << 63)
/* Segments of programs of 64 bits [Linux: arch/x86/include/asm/segment.h]. */
#define USER_CS 0x33
#define USER_SS 0x2b
/* The process that the kernel starts. */
#define INIT 1

/* Changed by inline operations of translated code. */
struct slot {
    uint64_t count; /* instructions begun */
    uint64_t mode;
};

struct cpu {
    struct qemu_plugin_register *cr3, *gs, *kernel_gs, *rip, *rsp, *rax, *rdx, *rdi, *rsi;
    struct slot *slot;
    uint64_t block_begin; /* count when the last written block began */
    uint32_t block_size;  /* 0: there is none */
    uint32_t block_id;
    bool is_recorded;     /* blocks that are executed now */
    bool is_thread_known; /* the thread below was written */
    uint32_t tid, process;
    uint64_t cr3_value;
    uint64_t others;      /* instructions of other CPUs when the last block began */
    uint64_t recorded;
    uint64_t epoch;       /* changes whenever a program resumes */
    uint64_t distance;    /* written last: from the defined addresses of blocks to the executed ones */
    uint64_t last_truth;
};

struct block {
    uint64_t hash;
    uint64_t ip;
    uint32_t count;
    uint32_t page;
    bool is_system_call; /* its last instruction is `syscall` */
};

/* Translated code, and its address when it was last read. */
struct page {
    uint64_t number;
    uint64_t epoch;
    uint64_t distance;
};

static struct cpu cpus[CPUS_MAX];
static unsigned cpu_count;
/* The CPU that runs. */
static unsigned running;
/* Address of the kernel's per-CPU memory. */
static uint64_t bases[CPUS_MAX];
static struct qemu_plugin_scoreboard *slots;
static qemu_plugin_u64 counter, mode_of;
static GByteArray *memory;

static struct block *blocks;
static uint32_t block_count, block_room;
/* Numbers of blocks by their hash, 0 where none is, else one more than the number. */
static uint32_t *table;
static uint32_t table_room;
static struct page *pages;
static uint32_t page_count, page_room;
static uint64_t epochs;
static uint8_t definitions[DEFINITIONS];
static uint32_t definition_bytes;

/*
 * Words of all CPUs, in the order of execution: if a thread migrates to another CPU, its words there
 * follow those of what it executed before.
 */
static uint32_t words[WORDS];
static uint32_t word_count;
static unsigned word_cpu;
static uint64_t truth[WORDS];
static uint32_t truth_count;
static unsigned truth_cpu;

static int out = -1;
static bool with_kernel, with_truth;
static bool is_recording, is_reset_asked;
static struct lat_begin kernel;
static uint64_t handlers[VECTORS];
/* The process that becomes the program by its next exec. */
static uint32_t starter;
static uint64_t starter_cr3;
static bool has_starter;
/* Time stamp counter minus the instructions of all CPUs. */
static uint64_t idle_time;

/* Whether translated code may change and test slots with inline operations. */
static bool is_alone(void) { return cpu_count == 1; }

/* If the reader has closed the pipe, there is nothing left to do. */
static void write_all(const void *data, size_t size) {
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t written = write(out, at, size);
        if (written > 0) {
            at += written;
            size -= (size_t)written;
        } else if (written < 0 && errno != EINTR) {
            _exit(1);
        }
    }
}

static void write_frame(uint16_t kind, unsigned cpu, const void *data, size_t size) {
    struct lat_frame_header header = {kind, (uint16_t)cpu, (uint32_t)size};
    write_all(&header, sizeof header);
    write_all(data, size);
}

static void flush_definitions(void) {
    if (definition_bytes > 0) {
        write_frame(LAT_FRAME_BLOCKS, 0, definitions, definition_bytes);
        definition_bytes = 0;
    }
}

/* Definitions come first: a block that is executed is known to the reader. */
static void flush(void) {
    flush_definitions();
    if (word_count > 0) {
        write_frame(LAT_FRAME_FLOW, 0, words, word_count * sizeof words[0]);
        word_count = 0;
    }
    if (truth_count > 0) {
        write_frame(LAT_FRAME_TRUTH, 0, truth, truth_count * sizeof truth[0]);
        truth_count = 0;
    }
}

/* Room for a few words that belong together, so that no frame ends between them. */
static uint32_t *room(unsigned index, uint32_t count) {
    enum { CPU_WORDS = 2 };
    if (word_count + count + CPU_WORDS > WORDS) {
        flush();
    }
    if (index != word_cpu) {
        word_cpu = index;
        words[word_count++] = LAT_WORD_CPU;
        words[word_count++] = index;
    }
    uint32_t *first = &words[word_count];
    word_count += count;
    return first;
}

static void put_long(unsigned index, uint32_t word, uint64_t value) {
    uint32_t *at = room(index, 3);
    at[0] = word;
    at[1] = (uint32_t)value;
    at[2] = (uint32_t)(value >> 32);
}

static void put_truth(unsigned index, uint64_t word) {
    if (truth_count + 2 > WORDS) {
        flush();
    }
    if (index != truth_cpu) {
        truth_cpu = index;
        truth[truth_count++] = LAT_TRUTH_THREAD | cpus[index].tid;
    }
    truth[truth_count++] = word;
}

static uint64_t read_register(struct qemu_plugin_register *handle) {
    uint64_t value = 0;
    g_byte_array_set_size(memory, 0);
    int size = handle ? qemu_plugin_read_register(handle, memory) : 0;
    if (size > 0 && (size_t)size <= sizeof value) {
        memcpy(&value, memory->data, (size_t)size);
    }
    return value;
}

static bool read_memory(uint64_t address, void *to, size_t size) {
    g_byte_array_set_size(memory, 0);
    if (!qemu_plugin_read_memory_vaddr(address, memory, size) || memory->len < size) {
        return false;
    }
    memcpy(to, memory->data, size);
    return true;
}

/*
 * Which CPU runs: the kernel keeps the address of the per-CPU memory in one of two registers,
 * and swaps them when it enters and leaves a program.
 */
static void find_cpu(void) {
    uint64_t one = read_register(cpus[0].kernel_gs);
    if (one == bases[running]) {
        return;
    }
    uint64_t other = read_register(cpus[0].gs);
    for (unsigned index = 0; index < cpu_count; index++) {
        if (bases[index] == one || bases[index] == other) {
            running = index;
            return;
        }
    }
}

static uint64_t all_counts(void) {
    uint64_t all = 0;
    for (unsigned index = 0; index < cpu_count; index++) {
        all += cpus[index].slot->count;
    }
    return all;
}

static uint64_t now(void) { return all_counts() + idle_time; }

/* The previous block has ended: writes how many of its instructions were begun, if not all. */
static void end_block(unsigned index) {
    struct cpu *cpu = &cpus[index];
    uint64_t begun = cpu->slot->count - cpu->block_begin;
    if (cpu->block_size > 0) {
        cpu->recorded += begun;
        if (begun != cpu->block_size) {
            uint32_t *at = room(index, 2);
            at[0] = LAT_WORD_PART;
            at[1] = (uint32_t)begun;
        }
    }
}

static void leave(unsigned index) {
    *room(index, 1) = LAT_WORD_LEAVE;
    cpus[index].is_recorded = false;
    cpus[index].block_size = 0;
}

/*
 * Where the CPU would have continued without the interrupt or exception: one of the words that it pushes
 * before a handler runs, possibly with an error code below them. With `from_user`, the segments of
 * programs are in their places.
 */
static uint64_t saved_address(unsigned index, bool from_user) {
    uint64_t frame[6];
    uint64_t stack = read_register(cpus[index].rsp);
    if (!read_memory(stack, frame, sizeof frame)) {
        return 0;
    }
    if (from_user) {
        if (frame[1] == USER_CS && frame[4] == USER_SS) {
            return frame[0];
        }
        return frame[2] == USER_CS && frame[5] == USER_SS ? frame[1] : 0;
    }
    /* The code segment of the kernel or of a program, then flags whose second bit is always set. */
    bool is_plain = (frame[1] == 0x10 || frame[1] == USER_CS) && (frame[2] & 2);
    return is_plain ? frame[0] : frame[1];
}

static void put_event(unsigned index, uint64_t saved) {
    struct cpu *cpu = &cpus[index];
    put_long(index, LAT_WORD_EVENT, saved);
    if (with_truth && saved == cpu->last_truth) {
        put_truth(index, LAT_TRUTH_UNDONE);
        cpu->last_truth = 0;
    }
}

/* The clock was read by the instruction before. */
static void take_clock(unsigned index) {
    uint64_t low = read_register(cpus[index].rax);
    uint64_t high = read_register(cpus[index].rdx);
    idle_time = ((high << 32) | (uint32_t)low) - all_counts();
}

/* The first block of the kernel after one of a program, or after the clock was read. */
static void enter_kernel(unsigned index, void *userdata) {
    if (!is_alone()) {
        find_cpu();
    }
    index = running;
    struct cpu *cpu = &cpus[index];
    uint64_t before = cpu->slot->mode;
    (void)userdata;
    if (before == MODE_KERNEL) {
        return;
    }
    cpu->slot->mode = MODE_KERNEL;
    if (before == MODE_CLOCK_READ) {
        take_clock(index);
        return;
    }
    if (!cpu->is_recorded || with_kernel) {
        return;
    }
    end_block(index);
    bool is_whole = cpu->slot->count - cpu->block_begin == cpu->block_size;
    if (!is_whole || !blocks[cpu->block_id].is_system_call) {
        put_event(index, saved_address(index, true));
    }
    leave(index);
}

/* Finds out which thread runs. Kernel code passes the task that it switches to. */
static void find_thread(unsigned index, uint64_t task, uint64_t cr3) {
    struct cpu *cpu = &cpus[index];
    uint32_t numbers[2] = {0, 0};
    uint64_t mm = 0;
    bool is_found = read_memory(task + kernel.pid, numbers, sizeof numbers) &&
                    read_memory(task + kernel.mm, &mm, sizeof mm);
    uint32_t tid = numbers[0], process = numbers[1];
    if (has_starter && tid == starter && cr3 != 0 && cr3 != starter_cr3) {
        starter = 0; /* it has become the program */
    }
    bool is_program = is_found && mm != 0 && process > INIT && has_starter && tid != starter;
    if (!is_program) {
        cpu->is_thread_known = false;
        cpu->is_recorded = false;
        return;
    }
    if (!cpu->is_thread_known || tid != cpu->tid || cr3 != cpu->cr3_value) {
        uint32_t *at = room(index, 5);
        at[0] = LAT_WORD_THREAD;
        at[1] = tid;
        at[2] = process;
        at[3] = (uint32_t)cr3;
        at[4] = (uint32_t)(cr3 >> 32);
        cpu->is_thread_known = true;
        cpu->tid = tid;
        cpu->process = process;
        cpu->cr3_value = cr3;
        if (with_truth) {
            put_truth(index, LAT_TRUTH_THREAD | tid);
        }
    }
    cpu->is_recorded = true;
}

/* The first block of a program after one of the kernel. */
static void enter_user(unsigned index, void *userdata) {
    if (!is_alone()) {
        find_cpu();
    }
    index = running;
    struct cpu *cpu = &cpus[index];
    uint64_t task = 0;
    (void)userdata;
    if (cpu->slot->mode == MODE_USER) {
        return;
    }
    cpu->slot->mode = MODE_USER;
    cpu->epoch = ++epochs;
    uint64_t cr3 = read_register(cpu->cr3);
    bool was_recorded = cpu->is_recorded;
    if (!read_memory(read_register(cpu->kernel_gs) + kernel.current_task, &task, sizeof task)) {
        task = 0;
    }
    if (was_recorded) {
        /* The flow of the kernel led here, and continues unless this is another thread. */
        end_block(index);
        cpu->block_size = 0;
    }
    find_thread(index, task, cr3);
    if (was_recorded && !cpu->is_recorded) {
        leave(index);
    }
    if (cpu->is_recorded) {
        put_long(index, LAT_WORD_TIME, now());
        cpu->others = all_counts() - cpu->slot->count;
    }
}

/* The kernel begins to run another thread. */
static void switch_to(unsigned index, void *userdata) {
    index = running;
    struct cpu *cpu = &cpus[index];
    uint64_t address = (uint64_t)(uintptr_t)userdata;
    if (cpu->is_recorded) {
        end_block(index);
        put_long(index, LAT_WORD_EVENT, address);
        leave(index);
    }
    /* The second argument: the task. Its address space is in place already. */
    find_thread(index, read_register(cpu->rsi), read_register(cpu->cr3));
    if (cpu->is_recorded) {
        put_long(index, LAT_WORD_TIME, now());
    }
}

/* The first block of a handler, with the flow of the kernel. */
static void interrupted(unsigned index, void *userdata) {
    index = running;
    struct cpu *cpu = &cpus[index];
    (void)userdata;
    if (cpu->is_recorded) {
        end_block(index);
        cpu->block_size = 0;
        put_event(index, saved_address(index, false));
    }
}

/* From where a block was translated to where it is executed. */
static uint64_t distance(unsigned index, uint32_t id) {
    struct cpu *cpu = &cpus[index];
    const struct block *block = &blocks[id];
    if (block->ip & KERNEL) {
        return 0;
    }
    struct page *page = &pages[block->page];
    if (page->epoch != cpu->epoch) {
        page->epoch = cpu->epoch;
        page->distance = read_register(cpu->rip) - block->ip;
    }
    return page->distance;
}

static void execute(unsigned index, void *userdata) {
    index = running;
    struct cpu *cpu = &cpus[index];
    if (!cpu->is_recorded) {
        return;
    }
    uint32_t id = (uint32_t)(uintptr_t)userdata;
    if (cpu->block_size > 0) {
        end_block(index);
    }
    if (cpu_count > 1) {
        uint64_t others = all_counts() - cpu->slot->count;
        if (others != cpu->others) {
            cpu->others = others;
            put_long(index, LAT_WORD_TIME, now());
        }
    }
    uint64_t moved = distance(index, id);
    if (moved != cpu->distance) {
        cpu->distance = moved;
        put_long(index, LAT_WORD_MOVE, moved);
    }
    *room(index, 1) = id;
    cpu->block_begin = cpu->slot->count;
    cpu->block_size = blocks[id].count;
    cpu->block_id = id;
}

static void execute_instruction(unsigned index, void *userdata) {
    index = running;
    struct cpu *cpu = &cpus[index];
    if (cpu->is_recorded) {
        cpu->last_truth = (uint64_t)(uintptr_t)userdata + cpu->distance;
        put_truth(index, cpu->last_truth);
    }
}

/* A string instruction is entered again for each repetition. */
static void execute_repeated(unsigned index, void *userdata) {
    index = running;
    struct cpu *cpu = &cpus[index];
    if (cpu->is_recorded && cpu->last_truth != (uint64_t)(uintptr_t)userdata + cpu->distance) {
        execute_instruction(index, userdata);
    }
}

static void count_more(unsigned index, void *userdata) {
    (void)index;
    cpus[running].slot->count += (uint64_t)(uintptr_t)userdata;
}

static void read_clock(unsigned index, void *userdata) {
    (void)index;
    (void)userdata;
    cpus[running].slot->mode = MODE_CLOCK_READ;
}

static bool is_call(const uint8_t *bytes, size_t size) {
    static const uint8_t call[] = {LAT_CALL_BYTES};
    return size == sizeof call && memcmp(bytes, call, sizeof call) == 0;
}

/* rdtsc, rdtscp */
static bool reads_clock(const uint8_t *bytes, size_t size) {
    return (size == 2 && bytes[0] == 0x0f && bytes[1] == 0x31) ||
           (size == 3 && bytes[0] == 0x0f && bytes[1] == 0x01 && bytes[2] == 0xf9);
}

static bool is_system_call(const uint8_t *bytes, size_t size) {
    return size == 2 && bytes[0] == 0x0f && bytes[1] == 0x05;
}

/* A repeat prefix, possibly other prefixes, and an opcode of string instructions. */
static bool is_repeated(const uint8_t *bytes, size_t size) {
    bool has_prefix = false;
    for (size_t at = 0; at < size; at++) {
        uint8_t byte = bytes[at];
        if (byte == 0xf2 || byte == 0xf3) {
            has_prefix = true;
        } else if (byte != 0x66 && byte != 0x67 && (byte & 0xf0) != 0x40) {
            return has_prefix && ((byte >= 0xa4 && byte <= 0xa7) || (byte >= 0xaa && byte <= 0xaf) ||
                                  (byte >= 0x6c && byte <= 0x6f));
        }
    }
    return false;
}

static void *grown(void *old, size_t size) {
    void *grown = realloc(old, size);
    if (!grown) {
        abort();
    }
    return grown;
}

/* The entry for code of a page; few blocks are translated, so a linear search is fast enough. */
static uint32_t page_of(uint64_t ip) {
    uint64_t number = ip >> 12;
    for (uint32_t at = page_count; at > 0; at--) {
        if (pages[at - 1].number == number) {
            return at - 1;
        }
    }
    if (page_count == page_room) {
        page_room = page_room ? 2 * page_room : 1 << 10;
        pages = grown(pages, page_room * sizeof *pages);
    }
    pages[page_count] = (struct page){number, 0, 0};
    return page_count++;
}

static void insert(uint32_t id) {
    uint32_t at = (uint32_t)blocks[id].hash & (table_room - 1);
    while (table[at] != 0) {
        at = (at + 1) & (table_room - 1);
    }
    table[at] = id + 1;
}

/* The number of a block; the same code at the same place has the same, however often it is translated. */
static uint32_t block_of(uint64_t ip, const uint8_t *sizes, uint32_t count, const uint8_t *code,
                         uint32_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u ^ ip;
    hash = (hash ^ count) * 0x100000001b3u;
    for (uint32_t at = 0; at < bytes; at++) {
        hash = (hash ^ code[at]) * 0x100000001b3u;
    }
    hash ^= hash >> 32;
    if (table_room > 0) {
        uint32_t at = (uint32_t)hash & (table_room - 1);
        for (; table[at] != 0; at = (at + 1) & (table_room - 1)) {
            struct block *known = &blocks[table[at] - 1];
            if (known->hash == hash && known->ip == ip && known->count == count) {
                return table[at] - 1;
            }
        }
    }
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 1 << 14;
        blocks = grown(blocks, block_room * sizeof *blocks);
        table_room = 4 * block_room;
        table = grown(table, table_room * sizeof *table);
        memset(table, 0, table_room * sizeof *table);
        for (uint32_t id = 0; id < block_count; id++) {
            insert(id);
        }
    }
    uint32_t id = block_count++;
    if (id >= LAT_BLOCKS_MAX) {
        abort();
    }
    bool is_user_address = !(ip & KERNEL);
    const uint8_t *last = code + bytes - sizes[count - 1];
    blocks[id] = (struct block){hash, ip, count, is_user_address ? page_of(ip) : 0,
                                is_system_call(last, sizes[count - 1])};
    insert(id);
    struct lat_block header = {id, count, ip};
    if (definition_bytes + sizeof header + count + bytes > DEFINITIONS) {
        flush_definitions();
    }
    uint8_t *to = definitions + definition_bytes;
    memcpy(to, &header, sizeof header);
    memcpy(to + sizeof header, sizes, count);
    memcpy(to + sizeof header + count, code, bytes);
    definition_bytes += (uint32_t)sizeof header + count + bytes;
    return id;
}

static void begin(qemu_plugin_id_t id);
static qemu_plugin_id_t self;

/* The guest calls. */
static void called(unsigned index, void *userdata) {
    static uint8_t content[LAT_CALL_BYTES_MAX];
    index = running;
    struct cpu *cpu = &cpus[index];
    (void)userdata;
    uint64_t kind = read_register(cpu->rdi);
    uint64_t address = read_register(cpu->rsi);
    uint64_t size = read_register(cpu->rdx);
    if (is_recording) {
        uint64_t task = 0;
        uint32_t numbers[2] = {0, 0};
        bool is_found =
            read_memory(read_register(cpu->kernel_gs) + kernel.current_task, &task, sizeof task) &&
            read_memory(task + kernel.pid, numbers, sizeof numbers);
        if (kind == LAT_CALL_EXEC && is_found && !has_starter) {
            has_starter = true;
            starter = numbers[0];
            starter_cr3 = read_register(cpu->cr3);
            return;
        }
        /* The program itself could call, too. */
        if (!is_found || numbers[1] != INIT) {
            return;
        }
    }
    if (kind == 0 || kind > LAT_FRAME_BEGIN || size > sizeof content ||
        !read_memory(address, content, size)) {
        return;
    }
    if (kind == LAT_FRAME_BEGIN && size == sizeof kernel && !is_reset_asked) {
        memcpy(&kernel, content, sizeof kernel);
        is_reset_asked = true;
        if (!read_memory(kernel.per_cpu, bases, sizeof bases[0] * cpu_count)) {
            return;
        }
        for (unsigned vector = 0; with_kernel && vector < VECTORS; vector++) {
            uint16_t gate[8] = {0};
            if (read_memory(kernel.idt + sizeof gate * vector, gate, sizeof gate)) {
                handlers[vector] = gate[0] | (uint64_t)gate[3] << 16 | (uint64_t)gate[4] << 32 |
                                   (uint64_t)gate[5] << 48;
            }
        }
        qemu_plugin_reset(self, begin);
    }
    if (kind == LAT_FRAME_STATUS) {
        flush();
        for (unsigned at = 0; at < cpu_count; at++) {
            struct lat_counts counts = {cpus[at].slot->count, cpus[at].recorded};
            write_frame(LAT_FRAME_COUNTS, at, &counts, sizeof counts);
        }
    }
    write_frame((uint16_t)kind, index, content, size);
}

static void look_for_calls(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    size_t count = qemu_plugin_tb_n_insns(tb);
    (void)id;
    for (size_t at = 0; at < count; at++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);
        uint8_t bytes[INSTRUCTION_BYTES];
        if (is_call(bytes, qemu_plugin_insn_data(insn, bytes, sizeof bytes))) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, called, QEMU_PLUGIN_CB_R_REGS, NULL);
        }
    }
}

static bool is_handler(uint64_t address) {
    for (unsigned vector = 0; vector < VECTORS; vector++) {
        if (handlers[vector] == address) {
            return true;
        }
    }
    return false;
}

static void translate(qemu_plugin_id_t plugin, struct qemu_plugin_tb *tb) {
    enum { COUNT_MAX = 1024 };
    static uint8_t sizes[COUNT_MAX];
    static uint8_t code[COUNT_MAX * INSTRUCTION_BYTES];
    size_t count = qemu_plugin_tb_n_insns(tb);
    (void)plugin;
    if (count == 0 || count > COUNT_MAX) {
        return;
    }
    uint32_t bytes = 0;
    for (size_t at = 0; at < count; at++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);
        sizes[at] = (uint8_t)qemu_plugin_insn_data(insn, code + bytes, INSTRUCTION_BYTES);
        bytes += sizes[at];
    }
    uint64_t ip = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
    bool is_user = !(ip & KERNEL);
    uint32_t id = block_of(ip, sizes, (uint32_t)count, code, bytes);
    /* What is registered first comes first. */
    qemu_plugin_vcpu_udata_cb_t enter = is_user ? enter_user : enter_kernel;
    if (is_alone()) {
        qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, enter, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_COND_NE,
                                                  mode_of, is_user ? MODE_USER : MODE_KERNEL, NULL);
    } else {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, enter, QEMU_PLUGIN_CB_R_REGS, NULL);
    }
    if (with_kernel && ip == kernel.switch_to) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, switch_to, QEMU_PLUGIN_CB_R_REGS, (void *)(uintptr_t)ip);
    }
    if (with_kernel && is_handler(ip)) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, interrupted, QEMU_PLUGIN_CB_R_REGS, NULL);
    }
    bool is_written = is_user || with_kernel;
    if (is_written) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, execute, QEMU_PLUGIN_CB_R_REGS, (void *)(uintptr_t)id);
    } else if (is_alone()) {
        qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, counter, count);
    } else {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, count_more, QEMU_PLUGIN_CB_NO_REGS, (void *)count);
    }
    const uint8_t *at_code = code;
    for (size_t at = 0; at < count; at_code += sizes[at], at++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, at);
        if (is_written) {
            if (is_alone()) {
                qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_ADD_U64, counter,
                                                                    1);
            } else {
                qemu_plugin_register_vcpu_insn_exec_cb(insn, count_more, QEMU_PLUGIN_CB_NO_REGS,
                                                       (void *)(uintptr_t)1);
            }
            if (with_truth) {
                qemu_plugin_register_vcpu_insn_exec_cb(
                    insn, is_repeated(at_code, sizes[at]) ? execute_repeated : execute_instruction,
                    QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)qemu_plugin_insn_vaddr(insn));
            }
        }
        if (is_call(at_code, sizes[at])) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, called, QEMU_PLUGIN_CB_R_REGS, NULL);
        }
        if (!is_user && reads_clock(at_code, sizes[at])) {
            if (is_alone()) {
                qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, QEMU_PLUGIN_INLINE_STORE_U64,
                                                                    mode_of, MODE_CLOCK_READ);
            } else {
                qemu_plugin_register_vcpu_insn_exec_cb(insn, read_clock, QEMU_PLUGIN_CB_NO_REGS, NULL);
            }
        }
    }
}

/* QEMU ends before the program has. */
static void end(qemu_plugin_id_t id, void *userdata) {
    (void)id;
    (void)userdata;
    flush();
}

/* All CPUs are stopped. */
static void begin(qemu_plugin_id_t id) {
    for (unsigned index = 0; index < cpu_count; index++) {
        cpus[index].slot->count = 0;
        cpus[index].slot->mode = MODE_KERNEL;
    }
    is_recording = true;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
    qemu_plugin_register_atexit_cb(id, end, NULL);
}

static void init_cpu(qemu_plugin_id_t id, unsigned index) {
    (void)id;
    if (index >= CPUS_MAX) {
        abort();
    }
    struct cpu *cpu = &cpus[index];
    struct {
        const char *name;
        struct qemu_plugin_register **handle;
    } wanted[] = {
        {"cr3", &cpu->cr3}, {"gs_base", &cpu->gs}, {"k_gs_base", &cpu->kernel_gs}, {"rsp", &cpu->rsp},
        {"rax", &cpu->rax}, {"rdx", &cpu->rdx},    {"rdi", &cpu->rdi},             {"rsi", &cpu->rsi},
        {"rip", &cpu->rip},
    };
    GArray *all = qemu_plugin_get_registers();
    for (unsigned at = 0; all && at < all->len; at++) {
        qemu_plugin_reg_descriptor *of = &((qemu_plugin_reg_descriptor *)(void *)all->data)[at];
        for (size_t want = 0; want < sizeof wanted / sizeof wanted[0]; want++) {
            if (strcmp(of->name, wanted[want].name) == 0) {
                *wanted[want].handle = of->handle;
            }
        }
    }
    if (index + 1 > cpu_count) {
        cpu_count = index + 1;
    }
    /* The array may have moved. */
    for (unsigned at = 0; at < cpu_count; at++) {
        cpus[at].slot = qemu_plugin_scoreboard_find(slots, at);
    }
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                                           char **argv) {
    for (int at = 0; at < argc; at++) {
        if (strncmp(argv[at], "out=", 4) == 0) {
            out = atoi(argv[at] + 4);
        }
        with_kernel |= strcmp(argv[at], "kernel=on") == 0;
        with_truth |= strcmp(argv[at], "truth=on") == 0;
    }
    if (out < 0 || !info->system_emulation || strcmp(info->target_name, "x86_64") != 0) {
        return 1;
    }
    self = id;
    memory = g_byte_array_new();
    slots = qemu_plugin_scoreboard_new(sizeof(struct slot));
    counter = (qemu_plugin_u64){slots, offsetof(struct slot, count)};
    mode_of = (qemu_plugin_u64){slots, offsetof(struct slot, mode)};
    qemu_plugin_register_vcpu_init_cb(id, init_cpu);
    qemu_plugin_register_vcpu_tb_trans_cb(id, look_for_calls);
    return 0;
}
