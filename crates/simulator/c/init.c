/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The first process of the simulated machine: prepares it, runs one program, and sends the plugin outside
 * the program's output, its mappings, and how it ended. No libc: it is part of `lat`, and small.
 *
 * The job is a file of strings, each ended by a zero byte: user, group, folder, file of the program,
 * number of arguments, arguments, environment.
 */
#include "protocol.h"

#include <asm/unistd.h>
#include <linux/perf_event.h>
#include <linux/reboot.h>
#include <stdbool.h>
#include <stddef.h>

#define JOB "/.lateralis/job"

enum {
    O_RDONLY = 0,
    O_RDWR = 2,
    O_NONBLOCK = 04000,
    O_CLOEXEC = 02000000,
    F_SETFL = 4,
    PROT_READ = 1,
    PROT_WRITE = 2,
    MAP_SHARED = 1,
    MAP_PRIVATE = 2,
    MAP_ANONYMOUS = 32,
    POLLIN = 1,
    WNOHANG = 1,
    SIGCHLD = 17,
    EAGAIN = 11,
    EXIT_NO_PROGRAM = 127,
};

enum {
    CPUS_MAX = 64,
    RING_BYTES = 1 << 19,
    PAGE = 4096,
    CHUNK = LAT_CALL_BYTES_MAX,
    STRINGS_MAX = 1 << 14,
    /* How often records of the kernel are fetched; if the machine is killed, the rest is lost. */
    FETCH_MS = 10,
};

static long call6(long number, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define call0(n) call6(n, 0, 0, 0, 0, 0, 0)
#define call1(n, a) call6(n, (long)(a), 0, 0, 0, 0, 0)
#define call2(n, a, b) call6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define call3(n, a, b, c) call6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define call4(n, a, b, c, d) call6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define call5(n, a, b, c, d, e) call6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

/* The compiler may call these. */
void *memcpy(void *to, const void *from, size_t size) {
    char *at = to;
    const char *of = from;
    while (size-- > 0) {
        *at++ = *of++;
    }
    return to;
}

void *memset(void *to, int byte, size_t size) {
    char *at = to;
    while (size-- > 0) {
        *at++ = (char)byte;
    }
    return to;
}

static size_t length(const char *text) {
    size_t size = 0;
    while (text[size]) {
        size++;
    }
    return size;
}

static bool is_same(const char *one, const char *other) {
    while (*one && *one == *other) {
        one++;
        other++;
    }
    return *one == *other;
}

static void tell(enum lat_frame kind, const void *data, size_t size) {
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x53, 0x54, 0x41, 0x4c"
                     :
                     : "D"((long)kind), "S"(data), "d"(size)
                     : "memory");
}

static void tell_problem(const char *what) { tell(LAT_FRAME_PROBLEM, what, length(what)); }

/* `lat` ends the machine when it has read LAT_FRAME_STATUS; without it the kernel does. */
static __attribute__((noreturn)) void stop(void) {
    call4(__NR_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_POWER_OFF, 0);
    for (;;) {
        call0(__NR_pause);
    }
}

static __attribute__((noreturn)) void fail(const char *what) {
    struct lat_status status = {0, 0xffffffffu};
    tell_problem(what);
    tell(LAT_FRAME_STATUS, &status, sizeof status);
    stop();
}

static char buffer[CHUNK];

/* A whole file, at most `room` bytes of it. */
static size_t read_file(const char *path, char *to, size_t room) {
    long file = call3(__NR_open, path, O_RDONLY, 0);
    size_t size = 0;
    while (file >= 0 && size < room) {
        long count = call3(__NR_read, file, to + size, room - size);
        if (count <= 0) {
            break;
        }
        size += (size_t)count;
    }
    if (file >= 0) {
        call1(__NR_close, file);
    }
    return size;
}

static void *pages(size_t size) {
    long at = call6(__NR_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at > -PAGE) {
        fail("there is too little memory for the machine's own needs");
    }
    return (void *)at;
}

static uint64_t hex(const char *text, size_t size) {
    uint64_t value = 0;
    for (size_t at = 0; at < size; at++) {
        char digit = text[at];
        value = value << 4 | (uint64_t)(digit >= 'a' ? digit - 'a' + 10 : digit - '0');
    }
    return value;
}

/* Addresses of the kernel that the plugin needs; all of them are sent on if the kernel is recorded. */
static void read_symbols(struct lat_begin *begin) {
    static const char path[] = "/proc/kallsyms";
    enum { DIGITS = 16, NAME = 19 };
    long file = call3(__NR_open, path, O_RDONLY, 0);
    size_t have = 0;
    for (;;) {
        long count = file < 0 ? 0 : call3(__NR_read, file, buffer + have, CHUNK - have);
        if (count <= 0) {
            break;
        }
        have += (size_t)count;
        size_t at = 0, line = 0;
        for (; at < have; at++) {
            if (buffer[at] != '\n') {
                continue;
            }
            buffer[at] = 0;
            if (at > line + NAME) {
                const char *name = buffer + line + NAME;
                uint64_t address = hex(buffer + line, DIGITS);
                /* Linux 6.2 to 6.14 keep the task at the beginning of a structure. */
                if (is_same(name, "current_task") || is_same(name, "pcpu_hot")) {
                    begin->current_task = address;
                } else if (is_same(name, "idt_table")) {
                    begin->idt = address;
                } else if (is_same(name, "__switch_to")) {
                    begin->switch_to = address;
                } else if (is_same(name, "__per_cpu_offset")) {
                    begin->per_cpu = address;
                }
            }
            buffer[at] = '\n';
            line = at + 1;
        }
        tell(LAT_FRAME_KALLSYMS, buffer, line);
        for (size_t rest = line; rest < have; rest++) {
            buffer[rest - line] = buffer[rest];
        }
        have -= line;
        if (have == CHUNK) {
            break;
        }
    }
    if (file >= 0) {
        call1(__NR_close, file);
    }
    if (begin->current_task == 0 || begin->idt == 0 || begin->switch_to == 0 ||
        begin->per_cpu == 0) {
        fail("the kernel's list of symbols lacks one that is needed");
    }
}

/* Types of the kernel [Linux: Documentation/bpf/btf.rst]. */
struct btf_header {
    uint16_t magic;
    uint8_t version, flags;
    uint32_t header_bytes, type_at, type_bytes, string_at, string_bytes;
};
struct btf_type {
    uint32_t name, info, size;
};
struct btf_member {
    uint32_t name, type, offset;
};
enum { BTF_INT = 1, BTF_ARRAY = 3, BTF_STRUCT = 4, BTF_UNION = 5, BTF_ENUM = 6, BTF_FUNC_PROTO = 13 };
enum { BTF_VAR = 14, BTF_DATASEC = 15, BTF_DECL_TAG = 17, BTF_ENUM64 = 19 };

static void read_task(struct lat_begin *begin) {
    enum { ROOM = 24 << 20 };
    char *all = pages(ROOM);
    size_t size = read_file("/sys/kernel/btf/vmlinux", all, ROOM);
    const struct btf_header *header = (void *)all;
    uint64_t types = 0, strings = 0;
    if (size > sizeof *header) {
        types = (uint64_t)header->header_bytes + header->type_at;
        strings = (uint64_t)header->header_bytes + header->string_at;
    }
    uint64_t end = types + (size > sizeof *header ? header->type_bytes : 0);
    if (size == 0 || size == ROOM || end > size || strings + header->string_bytes > size ||
        header->string_bytes == 0 || all[strings + header->string_bytes - 1] != 0) {
        fail("the kernel does not tell its types (CONFIG_DEBUG_INFO_BTF)");
    }
    bool has_pid = false, has_mm = false;
    for (uint64_t at = types; at + sizeof(struct btf_type) <= end;) {
        const struct btf_type *type = (void *)(all + at);
        uint32_t kind = type->info >> 24 & 31, count = type->info & 0xffff;
        bool is_flagged = type->info >> 31;
        at += sizeof *type;
        uint64_t members = at;
        switch (kind) {
        case BTF_INT:
        case BTF_VAR:
        case BTF_DECL_TAG:
            at += 4;
            break;
        case BTF_ARRAY:
            at += 12;
            break;
        case BTF_STRUCT:
        case BTF_UNION:
        case BTF_DATASEC:
        case BTF_ENUM64:
            at += 12ull * count;
            break;
        case BTF_ENUM:
        case BTF_FUNC_PROTO:
            at += 8ull * count;
            break;
        default:
            break;
        }
        if (kind != BTF_STRUCT || type->name >= header->string_bytes || at > end ||
            !is_same(all + strings + type->name, "task_struct")) {
            continue;
        }
        for (uint32_t member = 0; member < count; member++) {
            const struct btf_member *of = (void *)(all + members + sizeof *of * member);
            if (of->name >= header->string_bytes) {
                continue;
            }
            uint64_t offset = (is_flagged ? of->offset & 0xffffff : of->offset) / 8;
            if (is_same(all + strings + of->name, "pid")) {
                begin->pid = offset;
                has_pid = true;
            } else if (is_same(all + strings + of->name, "mm")) {
                begin->mm = offset;
                has_mm = true;
            }
        }
    }
    call2(__NR_munmap, all, ROOM);
    if (!has_pid || !has_mm) {
        fail("the kernel's types have no task with a number and a memory");
    }
}

/* Records of mappings, names and threads of programs, in the format of perf. */
struct events {
    int file;
    volatile struct perf_event_mmap_page *page;
};
static struct events events[CPUS_MAX];
static unsigned event_count;

static void open_events(struct lat_begin *begin, bool with_switches) {
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .sample_id_all = 1,
        .context_switch = with_switches,
        .watermark = 1,
        .wakeup_watermark = RING_BYTES / 2,
    };
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        long file = call5(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (file < 0) {
            break;
        }
        long at = call6(__NR_mmap, 0, RING_BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (at < 0 && at > -PAGE) {
            fail("the kernel gives no memory for its records of mappings");
        }
        events[event_count++] = (struct events){(int)file, (void *)at};
    }
    if (event_count == 0) {
        fail("the kernel makes no records of mappings (CONFIG_PERF_EVENTS)");
    }
    begin->time_zero = events[0].page->time_zero;
    begin->time_mult = events[0].page->time_mult;
    begin->time_shift = events[0].page->time_shift;
}

/* Whole records only: no record is split between two calls of the plugin. */
static void fetch_records(void) {
    for (unsigned cpu = 0; cpu < event_count; cpu++) {
        volatile struct perf_event_mmap_page *page = events[cpu].page;
        const char *data = (const char *)page + PAGE;
        uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;
        size_t filled = 0;
        while (tail < head) {
            struct perf_event_header header;
            for (size_t at = 0; at < sizeof header; at++) {
                ((char *)&header)[at] = data[(tail + at) % RING_BYTES];
            }
            if (header.size < sizeof header || header.size > head - tail) {
                break;
            }
            if (filled + header.size > CHUNK) {
                tell(LAT_FRAME_SIDEBAND, buffer, filled);
                filled = 0;
            }
            for (size_t at = 0; at < header.size; at++) {
                buffer[filled++] = data[(tail + at) % RING_BYTES];
            }
            tail += header.size;
        }
        if (filled > 0) {
            tell(LAT_FRAME_SIDEBAND, buffer, filled);
        }
        __atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
    }
}

static void mount(const char *what, const char *where, const char *kind) {
    call2(__NR_mkdir, where, 0755);
    call5(__NR_mount, what, where, kind, 0, 0);
}

static uint64_t number(const char *text) {
    uint64_t value = 0;
    while (*text >= '0' && *text <= '9') {
        value = 10 * value + (uint64_t)(*text++ - '0');
    }
    return value;
}

struct job {
    uint64_t user, group;
    bool with_switches;
    const char *folder, *program;
    char **arguments, **environment;
};

static char *strings[STRINGS_MAX];

static struct job read_job(void) {
    enum { ROOM = 4 << 20, FIXED = 6 };
    char *all = pages(ROOM);
    size_t size = read_file(JOB, all, ROOM);
    size_t count = 0;
    for (size_t at = 0; at < size && count + 2 < STRINGS_MAX; at += length(all + at) + 1) {
        strings[count++] = all + at;
    }
    uint64_t arguments = count > FIXED ? number(strings[FIXED - 1]) : 0;
    if (size == 0 || size == ROOM || all[size - 1] != 0 || arguments == 0 || arguments > count - FIXED) {
        fail("the job is damaged");
    }
    /* The arguments end with NULL: the environment is moved by one to make room for it. */
    for (size_t at = count; at > FIXED + arguments; at--) {
        strings[at] = strings[at - 1];
    }
    strings[FIXED + arguments] = NULL;
    strings[count + 1] = NULL;
    return (struct job){
        .user = number(strings[0]),
        .group = number(strings[1]),
        .folder = strings[2],
        .program = strings[3],
        .with_switches = number(strings[4]) != 0,
        .arguments = strings + FIXED,
        .environment = strings + FIXED + arguments + 1,
    };
}

/* In the new process: everything up to the exec; if the exec fails, its error number. */
static __attribute__((noreturn)) void become(const struct job *job, int out, int err, int problem) {
    long null = call3(__NR_open, "/dev/null", O_RDONLY, 0);
    call2(__NR_dup2, null, 0);
    call2(__NR_dup2, out, 1);
    call2(__NR_dup2, err, 2);
    call0(__NR_setsid);
    call2(__NR_setgroups, 0, NULL);
    call3(__NR_setresgid, job->group, job->group, job->group);
    call3(__NR_setresuid, job->user, job->user, job->user);
    long error = call1(__NR_chdir, job->folder);
    if (error == 0) {
        tell(LAT_CALL_EXEC, NULL, 0);
        error = call3(__NR_execve, job->program, job->arguments, job->environment);
    }
    uint32_t code = (uint32_t)-error;
    call3(__NR_write, problem, &code, sizeof code);
    call1(__NR_exit_group, EXIT_NO_PROGRAM);
    __builtin_unreachable();
}

struct pollfd {
    int file;
    short events, found;
};

/* What the program printed since the last time. @return whether more may come. */
static bool pass_on(int file, enum lat_frame kind) {
    for (;;) {
        long count = call3(__NR_read, file, buffer, CHUNK);
        if (count <= 0) {
            return count == -EAGAIN;
        }
        tell(kind, buffer, (size_t)count);
    }
}

static void run(const struct job *job) {
    int out[2], err[2], problem[2];
    if (call2(__NR_pipe2, out, O_CLOEXEC) < 0 || call2(__NR_pipe2, err, O_CLOEXEC) < 0 ||
        call2(__NR_pipe2, problem, O_CLOEXEC | O_NONBLOCK) < 0) {
        fail("no pipes can be made");
    }
    long child = call0(__NR_fork);
    if (child == 0) {
        become(job, out[1], err[1], problem[1]);
    }
    if (child < 0) {
        fail("no process can be made");
    }
    call1(__NR_close, out[1]);
    call1(__NR_close, err[1]);
    call3(__NR_fcntl, out[0], F_SETFL, O_NONBLOCK);
    call3(__NR_fcntl, err[0], F_SETFL, O_NONBLOCK);
    struct pollfd files[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
    struct lat_status status = {0, 0};
    bool has_ended = false;
    while (!has_ended) {
        call3(__NR_poll, files, 2, FETCH_MS);
        /* Others may have become children of this process. */
        for (;;) {
            int ended = 0;
            long pid = call4(__NR_wait4, -1, &ended, WNOHANG, NULL);
            if (pid <= 0) {
                break;
            }
            if (pid == child) {
                status.status = (uint32_t)ended;
                has_ended = true;
            }
        }
        fetch_records();
        for (int at = 0; at < 2; at++) {
            enum lat_frame kind = at == 0 ? LAT_FRAME_STDOUT : LAT_FRAME_STDERR;
            if (files[at].file >= 0 && !pass_on(files[at].file, kind)) {
                files[at].file = -1;
            }
        }
    }
    call3(__NR_read, problem[0], &status.error, sizeof status.error);
    tell(LAT_FRAME_STATUS, &status, sizeof status);
}

static void send_vdso(const unsigned long *auxiliary) {
    enum { AT_NULL = 0, AT_SYSINFO_EHDR = 33, SECTIONS_AT = 40, ENTRY_SIZE = 58, ENTRIES = 60 };
    for (; auxiliary[0] != AT_NULL; auxiliary += 2) {
        if (auxiliary[0] == AT_SYSINFO_EHDR) {
            const char *image = (const char *)auxiliary[1];
            /* An ELF file; the list of its sections is the last thing in it. */
            size_t size = *(const uint64_t *)(image + SECTIONS_AT) +
                          (size_t) * (const uint16_t *)(image + ENTRY_SIZE) *
                              *(const uint16_t *)(image + ENTRIES);
            /* Pages that were never accessed are not in memory. */
            size = size < CHUNK ? size : CHUNK;
            memcpy(buffer, image, size);
            tell(LAT_FRAME_VDSO, buffer, size);
        }
    }
}

static void work(const unsigned long *stack) {
    struct lat_begin begin = {0};
    mount("proc", "/proc", "proc");
    mount("sys", "/sys", "sysfs");
    mount("dev", "/dev", "devtmpfs");
    mount("shm", "/dev/shm", "tmpfs");
    mount("pts", "/dev/pts", "devpts");
    mount("run", "/run", "tmpfs");
    call2(__NR_mkdir, "/tmp", 0);
    call2(__NR_chmod, "/tmp", 01777);
    mount("tracing", "/sys/kernel/tracing", "tracefs");
    read_symbols(&begin);
    read_task(&begin);
    /* After the arguments and the environment. */
    const unsigned long *at = stack + 1 + stack[0] + 1;
    while (*at++) {
    }
    send_vdso(at);
    struct job job = read_job();
    open_events(&begin, job.with_switches);
    tell(LAT_FRAME_BEGIN, &begin, sizeof begin);
    /* From here on all code is translated again, as soon as the CPUs stop for a moment. */
    for (int times = 0; times < 100; times++) {
        call0(__NR_sched_yield);
    }
    run(&job);
    stop();
}

/* The stack: number of arguments, arguments, 0, environment, 0, auxiliary vector. */
__attribute__((used)) static void start(const unsigned long *stack) { work(stack); }

__asm__(".globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n");
