// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Creates or joins the area (spec/ring-abi.md §2). Runs once, in the first constructor of
 * the program that registers a schema. Any failure leaves `lat_i_area.header` NULL and no file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "area.h"
#include "calls.h"
#include "core.h"
#include "directory.h"
#include "line.h"
#include "maps.h"
#include "register.h"
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Address space requested while the size of the rings is still unknown:
 * reserved, not used. Less if the program's limits do not allow it. */
#define RESERVE_BYTES (UINT64_C(1) << 30)
#define RESERVE_BYTES_MIN (UINT64_C(1) << 26)
/* Number of threads that can write at the same time with per-thread rings. */
#define THREAD_RING_COUNT 64u
/* Step in which the heap grows when schemas after the first register. */
#define HEAP_STEP_BYTES 0x4000u
/* This much of each table has memory from the start. The process table has all of it: a forked child, which
 * must not make system calls, takes a slot in it. A page costs a short-lived program 2 us. */
#define TABLE_FIRST_BYTES 0x1000u
#define DEFAULT_BUFFER_BYTES (UINT64_C(4) << 20)
#define DEFAULT_PACKET_BYTES (UINT64_C(64) << 10)
#define DEFAULT_CAP_BYTES (UINT64_C(256) << 20)

/* After the path there is room for two temporary ones. Not on the stack: 4 KiB
 * more would be a page that nothing else touches. */
char lat_i_area_path[3 * PATH_MAX];
#define NAME_BYTES_MAX 64u /* of an area name, with the slash */
char *const *lat_i_arguments;
int lat_i_area_shared;
int lat_i_area_alone;
static uint64_t heap_allocated;
static uint64_t file_bytes;   /* length of the area's file while it is made */
static uint64_t opened_bytes; /* of rings that are accessible already */

/* Visits a line of /proc/PID/maps. */
static int line_shows_area(const char *line, void *unused)
{
    const char *name = strrchr(lat_i_area_path, '/');
    (void)unused;
    return name != NULL && strstr(line, name) != NULL;
}

static uint32_t possible_cpus(const struct lat_i_request *request)
{
    char text[256];
    uint32_t count = 0;
    if (request->cpus != 0 && request->cpus <= 4096)
        return request->cpus;
    const int file = lat_i_open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC, 0);
    if (file >= 0) {
        const ssize_t length = lat_i_read(file, text, sizeof text - 1);
        lat_i_close(file);
        if (length > 0) {
            /* "0-3,8-11": the last number is the highest CPU. */
            text[length] = 0;
            const char *last = text;
            for (const char *at = text; *at != 0; at++)
                if (*at == '-' || *at == ',')
                    last = at + 1;
            count = (uint32_t)lat_i_number_at(last, 10) + 1;
        }
    }
    if (count == 0) {
        const long configured = sysconf(_SC_NPROCESSORS_CONF);
        count = configured > 0 ? (uint32_t)configured : 1;
    }
    return count < 4096 ? count : 4096;
}

static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A process id identifies the same process only in the same namespace. */
static uint64_t pid_namespace(const struct lat_i_request *request, int lock)
{
    const uint64_t of_recorder = lat_i_session_namespace(request, lock);
    if (of_recorder != 0)
        return of_recorder;
    /* "pid:[INODE]". Reads the link without following it, which would make the kernel create the inode. */
    char text[32] = "";
    const ssize_t length = lat_i_read_link("/proc/self/ns/pid", text, sizeof text - 1);
    text[length > 0 ? length : 0] = 0;
    return memcmp(text, "pid:[", 5) == 0 ? lat_i_number_at(text + 5, 10) : 0;
}

static int is_same(const char *one, const char *other)
{
    while (*one != 0 && *one == *other)
        one++, other++;
    return *one == *other;
}

/* Paths to the files of a process are links to other files. */
static int leads_elsewhere(const char *path)
{
    static const char *const places[] = {"/proc/", "/dev/"};
    for (unsigned place = 0; place < sizeof places / sizeof places[0]; place++) {
        size_t same = 0;
        while (places[place][same] != 0 && path[same] == places[place][same])
            same++;
        if (places[place][same] == 0)
            return 1;
    }
    return 0;
}

/* Maximum number of words that interpreters can insert before a script [execve(2): five deep]. */
#define SCRIPT_WORDS_MAX 10
/* The path given to the kernel for this program, if it is the program's own: for a script the kernel
 * was given the script, and made it an argument of its interpreter. NULL: read it from /proc, which takes
 * 20 us. The path may contain links, which the recorder follows. */
static const char *path_of_program(void)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    if (path == NULL || path[0] != '/' || leads_elsewhere(path) || lat_i_arguments == NULL)
        return NULL;
    for (int word = 0; word <= SCRIPT_WORDS_MAX && lat_i_arguments[word] != NULL; word++)
        if (word != 0 && is_same(lat_i_arguments[word], path))
            return NULL;
    return path;
}

/* `asked`: a recorder requested the area, and follows links. */
static void read_command(struct lat_area_header *header, int asked)
{
    const char *path = asked ? path_of_program() : NULL;
    struct lat_i_line line = lat_i_line_in(header->exe, sizeof header->exe);
    ssize_t length = 0;
    if (path != NULL)
        lat_i_line_add(&line, path);
    if (path == NULL || !lat_i_line_ends(&line)) {
        length = lat_i_read_link("/proc/self/exe", header->exe, sizeof header->exe - 1);
        header->exe[length < 0 ? 0 : length] = 0;
    }
    /* If the dynamic linker was started directly, the arguments are incomplete. AT_BASE is then 0, because
     * the linker has no interpreter itself. */
    if (lat_i_arguments != NULL && getauxval(AT_BASE) != 0) {
        char *at = header->command, *end = at + sizeof header->command - 1;
        for (char *const *argument = lat_i_arguments; *argument != NULL && at < end; argument++) {
            const char *from = *argument;
            while (at < end && (*at++ = *from++) != 0)
                continue;
        }
        *at = 0;
        return;
    }
    const int file = lat_i_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
    if (file >= 0) {
        length = lat_i_read(file, header->command, sizeof header->command - 1);
        lat_i_close(file);
        if (length < 0)
            header->command[0] = 0;
    }
}

static uint64_t power_of_two_below(uint64_t value)
{
    uint64_t power = 1;
    while (power <= value / 2)
        power *= 2;
    return power;
}

/* Growing a file beyond this limit would not only fail but kill the program by SIGXFSZ. */
static int file_may_have(uint64_t bytes)
{
    struct rlimit limit;
    return lat_i_limit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

/* Address space to reserve: enough for the request, but only a small part if the program's own
 * address space is limited. */
static uint64_t address_space_wanted(uint64_t asked)
{
    struct rlimit limit;
    uint64_t wanted = asked > RESERVE_BYTES ? asked : RESERVE_BYTES;
    if (lat_i_limit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        wanted > limit.rlim_cur / 16)
        wanted = limit.rlim_cur / 16 & ~(uint64_t)0xffff;
    return wanted > LAT_AREA_RINGS_OFFSET ? wanted : LAT_AREA_RINGS_OFFSET;
}

/* Bytes of each ring and of its packets for a launcher's request. */
static void ring_geometry(const struct lat_i_request *request, uint64_t count, uint64_t *buffer_bytes,
                          uint64_t *packet_bytes)
{
    uint64_t buffer = request->buffer_bytes;
    uint64_t packet = request->packet_bytes;

    if (buffer > request->cap_bytes / count)
        buffer = request->cap_bytes / count;
    if (buffer < 8192)
        buffer = 8192;
    buffer = power_of_two_below(buffer);
    if (packet > buffer / 2)
        packet = buffer / 2;
    packet = power_of_two_below(packet < 4096 ? 4096 : packet);
    if (packet > (UINT64_C(1) << 24))
        packet = UINT64_C(1) << 24;
    if (buffer / packet > 65536)
        buffer = packet * 65536;
    *buffer_bytes = buffer;
    *packet_bytes = packet;
}

/* Rings are not made smaller than this for lack of space. */
#define SMALLEST_BUFFER_BYTES UINT64_C(65536)
/* Bytes of each ring, and number of rings, whose pages are mapped before the first event. */
#define READY_DATA_BYTES UINT64_C(32768)
#define READY_RINGS UINT64_C(16)
/* Initial memory, before the recorder first polls the rings: of all rings together, and at least of one. A
 * program with events of its own may write faster than the recorder polls, and lives longer. A program
 * with the preload library is in between if frequent events are enabled. */
#define FIRST_BYTES (UINT64_C(16) << 20)
#define FIRST_BYTES_FREQUENT (UINT64_C(2) << 20)
#define FIRST_RING_BYTES UINT64_C(262144)
#define FIRST_BYTES_SMALL (UINT64_C(256) << 10)
#define FIRST_RING_BYTES_SMALL UINT64_C(16384)
/* Maximum for a ring in a small start: the first events are in the ring of the CPU where the program
 * starts. */
#define FIRST_RING_BYTES_SMALL_MOST UINT64_C(131072)
/* Maximum for the rings of other CPUs. Zeroing and releasing this memory is the largest part of the cost
 * of an area, and a short-lived program uses one CPU. */
#define FIRST_RING_BYTES_SMALL_OTHER UINT64_C(32768)

const char *const *lat_i_frequent_subsystems;

static int rings_start_small(const char *enable)
{
    if (lat_i_frequent_subsystems == NULL)
        return 0;
    for (const char *const *name = lat_i_frequent_subsystems; *name != NULL; name++)
        if (lat_i_patterns_enable_any(enable, *name))
            return 0;
    return 1;
}

/* Initial memory of the rings. */
struct beginning {
    uint64_t count;  /* of rings */
    uint64_t buffer; /* bytes of a whole ring */
    uint32_t kind;   /* enum lat_ring_kind */
    int grows;       /* the recorder gives them more memory */
    int small;
    uint64_t all;    /* bytes of all rings together */
    uint64_t most;   /* maximum of a ring */
    uint64_t cpu;    /* current CPU: its ring is used first */
};

static struct beginning how_rings_begin(const struct lat_i_request *request, uint32_t kind, uint32_t count,
                                        uint64_t buffer)
{
    const int small = rings_start_small(request->enable);
    return (struct beginning){
        .count = count,
        .buffer = buffer,
        .kind = kind,
        .grows = request->grows && request->mode != LAT_MODE_OVERWRITE,
        .small = small,
        .all = lat_i_frequent_subsystems == NULL ? FIRST_BYTES
               : small                           ? FIRST_BYTES_SMALL
                                                 : FIRST_BYTES_FREQUENT,
        .most = buffer,
        .cpu = (uint64_t)(int64_t)lat_i_port_cpu(),
    };
}

/* Bytes of the data of a ring that have memory from the start; the reader adds more as the ring is used. */
static uint64_t first_bytes(const struct beginning *begin, uint64_t ring)
{
    const int small = begin->small;
    const uint64_t limit = begin->buffer < begin->most ? begin->buffer : begin->most;
    uint64_t share = begin->all / begin->count;
    uint64_t least = small ? FIRST_RING_BYTES_SMALL : FIRST_RING_BYTES;

    /* Not growing: no reader adds memory, or polls before the flight recorder is stopped. */
    if (!begin->grows)
        return limit;
    if (begin->kind == LAT_RING_PER_THREAD) {
        /* The first rings are claimed first; most of the others never are. */
        if (ring < 2)
            share = small ? FIRST_RING_BYTES_SMALL_MOST : begin->all / 2;
        else
            least = FIRST_RING_BYTES_SMALL;
    }
    if (small && begin->kind == LAT_RING_PER_CPU) {
        if (ring == begin->cpu)
            share = FIRST_RING_BYTES_SMALL_MOST;
        else if (share > FIRST_RING_BYTES_SMALL_OTHER)
            share = FIRST_RING_BYTES_SMALL_OTHER;
    }
    if (share < least)
        share = least;
    share &= ~UINT64_C(4095);
    return share < limit ? share : limit;
}

/* The value of `backed_bytes` of such a ring. */
static uint64_t first_backed(const struct beginning *begin, uint64_t ring)
{
    const uint64_t first = first_bytes(begin, ring);
    return first < begin->buffer ? first : 0;
}

/* Makes this many bytes from the first ring on accessible, and nothing after them. @return 0 or an
 * errno. */
static int give_access(char *rings, uint64_t bytes)
{
    int failed = 0;
    if (bytes > opened_bytes)
        failed = lat_i_protect(rings, bytes, PROT_READ | PROT_WRITE);
    else if (bytes + LAT_RING_CONTROL_BYTES == opened_bytes && bytes != 0)
        failed = 0; /* the page after them is replaced next: lat_i_port_open_rings */
    else if (bytes < opened_bytes)
        failed = lat_i_protect(rings + bytes, opened_bytes - bytes, PROT_NONE);
    if (failed == 0)
        opened_bytes = bytes;
    return -failed;
}

/* Gives the file its length, and each ring its initial memory. @return 0 or an errno. */
static int allocate_rings(int file, const struct beginning *begin)
{
    const uint64_t stride = LAT_RING_CONTROL_BYTES + begin->buffer;
    const uint64_t end = LAT_AREA_RINGS_OFFSET + stride * begin->count;
    uint64_t from = LAT_AREA_RINGS_OFFSET, bytes = 0;

    if (file_bytes != end) {
        if (!file_may_have(end))
            return EFBIG;
        const int failed = lat_i_truncate(file, end);
        if (failed != 0)
            return -failed;
        file_bytes = end;
    }
    /* Rings that are complete from the start are adjacent: one call for all. */
    for (uint64_t r = 0; r < begin->count; r++) {
        const uint64_t first = first_bytes(begin, r);
        bytes += LAT_RING_CONTROL_BYTES + first;
        if (first == begin->buffer && r + 1 < begin->count)
            continue;
        const int failed = lat_i_allocate(file, from, bytes);
        if (failed != 0) {
            const int cut = lat_i_truncate(file, LAT_AREA_RINGS_OFFSET);
            file_bytes = cut == 0 ? LAT_AREA_RINGS_OFFSET : 0;
            return -(cut == 0 ? failed : cut);
        }
        from = LAT_AREA_RINGS_OFFSET + (r + 1) * stride;
        bytes = 0;
    }
    return 0;
}

static struct lat_ring *ring_at(struct lat_area_header *header, const struct beginning *begin, uint64_t ring)
{
    return (struct lat_ring *)(void *)((char *)header + LAT_AREA_RINGS_OFFSET +
                                       ring * (LAT_RING_CONTROL_BYTES + begin->buffer));
}

/* Gives the tables their initial memory. Without it a store would kill the program when the
 * file system is full. */
static int allocate_tables(int file, uint64_t heap_bytes)
{
    const struct {
        uint64_t offset, bytes;
    } parts[] = {
        {0, LAT_AREA_SCHEMAS_OFFSET + TABLE_FIRST_BYTES},
        {LAT_AREA_ENABLE_OFFSET, TABLE_FIRST_BYTES},
        {LAT_AREA_WANTED_OFFSET, TABLE_FIRST_BYTES},
        {LAT_AREA_HEAP_OFFSET, heap_bytes},
    };
    for (unsigned part = 0; part < sizeof parts / sizeof parts[0]; part++)
        if (parts[part].bytes != 0 &&
            lat_i_allocate(file, parts[part].offset, parts[part].bytes) != 0)
            return 0;
    return 1;
}

/* Without this the first lap costs a page fault per 4 KiB: 13 cycles an event. Mapping all of it would cost
 * short-lived programs too much, so only the beginnings are mapped, and nothing of rings that start small. */
static void map_beginnings(struct lat_area_header *header, const struct beginning *begin)
{
#ifdef MADV_POPULATE_WRITE
    for (uint64_t r = 0; r < begin->count && r < READY_RINGS; r++) {
        const uint64_t first = first_bytes(begin, r);
        if (first > FIRST_RING_BYTES_SMALL_MOST)
            lat_i_advise(ring_at(header, begin, r),
                         LAT_RING_CONTROL_BYTES + (first < READY_DATA_BYTES ? first : READY_DATA_BYTES),
                         MADV_POPULATE_WRITE);
    }
#else
    (void)header, (void)begin;
#endif
}

/* Makes the rings that the launcher requested, spec/ring-abi.md §2. @return 0 or an errno. */
static int make_rings(int file, struct lat_area_header *header, struct beginning begin, uint64_t packet)
{
    const uint64_t count = begin.count;
    uint32_t none = 0;

    if (LAT_AREA_RINGS_OFFSET + (LAT_RING_CONTROL_BYTES + begin.buffer) * count > header->area_bytes)
        return ENOMEM;
    char *rings = (char *)header + LAT_AREA_RINGS_OFFSET;
    if (!__atomic_compare_exchange_n(&header->rings_ready, &none, 1, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return 0;
    int failed = allocate_rings(file, &begin);
    /* A container's /dev/shm has 64 MB: small rings are better than none. Events that do not fit are
     * counted. */
    while (failed == ENOSPC && begin.grows && begin.most > FIRST_RING_BYTES_SMALL) {
        begin.most /= 2;
        failed = allocate_rings(file, &begin);
    }
    while ((failed == ENOSPC || failed == EFBIG) && begin.buffer > SMALLEST_BUFFER_BYTES) {
        begin.buffer /= 2;
        packet = packet > begin.buffer / 2 ? begin.buffer / 2 : packet;
        failed = allocate_rings(file, &begin);
    }
    const uint64_t stride = LAT_RING_CONTROL_BYTES + begin.buffer;
    if (failed == 0)
        failed = give_access(rings, stride * count);
    if (failed != 0) {
        (void)give_access(rings, 0);
        __atomic_store_n(&header->rings_ready, 0, __ATOMIC_RELEASE);
        return failed;
    }
    header->ring_stride = stride;
    header->packet_bytes = packet;
    header->packets_per_ring = begin.buffer / packet;
    map_beginnings(header, &begin);
    for (uint64_t r = 0; r < count; r++) {
        struct lat_ring *ring = ring_at(header, &begin, r);
        ring->mask = (begin.buffer - 1) & ~LAT_CURSOR_SLACK_MASK;
        ring->backed_bytes = first_backed(&begin, r);
    }
    __atomic_store_n(&header->rings_ready, 2, __ATOMIC_RELEASE); /* pair R1 */
    return 0;
}

/* The range past the end of the file is inaccessible until the file grows: code that walks the memory of
 * a process (valgrind's leak check, a core dump) would take a fault per page. If the file already has its
 * final length, all of it is accessible at once, because changing that later takes the kernel longer than the
 * mapping. */
static struct lat_area_header *map_area(int file, uint64_t wanted, uint64_t *mapped)
{
    opened_bytes = 0;
    if (file_bytes > LAT_AREA_RINGS_OFFSET && wanted == file_bytes + LAT_RING_CONTROL_BYTES) {
        void *area = lat_i_map(NULL, wanted, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file);
        if (area != NULL) {
            /* A private page follows the end of the file [lat_i_port_open_rings]. */
            *mapped = wanted;
            opened_bytes = wanted - LAT_AREA_RINGS_OFFSET;
            return (struct lat_area_header *)area;
        }
    }
    for (uint64_t bytes = wanted; bytes >= LAT_AREA_RINGS_OFFSET; bytes /= 4) {
        void *area = lat_i_map(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file);
        if (area != NULL) {
            *mapped = bytes;
            if (lat_i_protect(area, LAT_AREA_RINGS_OFFSET, PROT_READ | PROT_WRITE) == 0)
                return (struct lat_area_header *)area;
            lat_i_unmap(area, bytes);
            return NULL;
        }
        if (bytes <= RESERVE_BYTES_MIN && bytes > LAT_AREA_RINGS_OFFSET)
            bytes = LAT_AREA_RINGS_OFFSET * 4; /* at least the tables: `lat list` shows the program */
    }
    return NULL;
}

/* A private page of this process follows the last ring: if another process changed the cursor, a record that
 * starts at the last word of the ring ends there. Longer records are checked first. */
int lat_i_port_open_rings(uint64_t bytes)
{
    const int saved_errno = errno;
    char *rings = (char *)lat_i_area.header + LAT_AREA_RINGS_OFFSET;
    const uint64_t room = lat_i_area.mapped_bytes - LAT_AREA_RINGS_OFFSET;
    const int opened = bytes <= opened_bytes ||
                       syscall(SYS_mprotect, rings, bytes, PROT_READ | PROT_WRITE) == 0;
    if (opened && room - bytes >= LAT_RING_CONTROL_BYTES)
        syscall(SYS_mmap, rings + bytes, LAT_RING_CONTROL_BYTES, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    errno = saved_errno;
    return opened;
}

/* Joins an area that exists already: LATERALIS_AREA. */
void lat_i_area_join(const char *path)
{
    struct stat status;
    uint64_t mapped;
    const int file = lat_i_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (file < 0)
        return;
    if (lat_i_status_of(file, &status) == 0 && status.st_uid == lat_i_user() &&
        status.st_size >= (off_t)LAT_AREA_RINGS_OFFSET) {
        struct lat_area_header first;
        if (lat_i_read(file, &first, sizeof first) == (ssize_t)sizeof first &&
            first.magic == LAT_AREA_MAGIC && first.magic_complement == ~LAT_AREA_MAGIC &&
            first.abi_version == LAT_ABI_VERSION && first.state == LAT_AREA_READY &&
            first.area_bytes >= LAT_AREA_RINGS_OFFSET && first.area_bytes <= RESERVE_BYTES * 1024 &&
            first.ring_count != 0 &&
            (first.ring_kind == LAT_RING_PER_THREAD ||
             (first.ring_kind == LAT_RING_PER_CPU && lat_i_rseq_works()))) {
            struct lat_i_line line = lat_i_line_in(lat_i_area_path, PATH_MAX);
            lat_i_line_add(&line, path);
            lat_i_line_ends(&line); /* it fits, because it was opened */
            /* Another copy of the tracer in this process is in it already. Two copies must not
             * use each other's rings as their own: the ids of their threads are the same. */
            const int twice = lat_i_maps_each((uint32_t)syscall(SYS_getpid), line_shows_area, NULL) != 0;
            file_bytes = 0; /* unknown, as are its rings: they are opened on use */
            struct lat_area_header *header =
                twice ? NULL : map_area(file, first.area_bytes, &mapped);
            if (header != NULL && mapped == first.area_bytes) {
                lat_i_area_shared = 1;
                heap_allocated = 0; /* unknown: allocated again, which has no effect */
                lat_i_area.kind = first.ring_kind;
                lat_i_area.ring_count = first.ring_count;
                lat_i_area.mapped_bytes = mapped;
                __atomic_store_n(&lat_i_area.header, header, __ATOMIC_RELEASE);
                lat_i_register_process();
            } else if (header != NULL) {
                lat_i_unmap(header, mapped);
            }
        }
    }
    lat_i_close(file);
}

/* Whether the last process of an area has ended and no recorder needs its content. */
static int is_left_over(int directory, const char *name)
{
    struct lat_area_header header;
    const int file = (int)syscall(SYS_openat, directory, name,
                                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (file < 0)
        return 0;
    const ssize_t length = lat_i_read(file, &header, offsetof(struct lat_area_header, exe));
    lat_i_close(file);
    return length == (ssize_t)offsetof(struct lat_area_header, exe) &&
           header.magic == LAT_AREA_MAGIC && header.magic_complement == ~LAT_AREA_MAGIC &&
           header.state == LAT_AREA_EXITED && header.session == 0 && header.recorder_pid == 0 &&
           !(header.rings_ready != 0 && header.ring_mode == LAT_MODE_OVERWRITE);
}

/* Removes the area of a directory entry if it is left over. */
static int take_away_left_over(int directory, const char *name, void *unused)
{
    const size_t bytes = strlen(name);
    (void)unused;
    if (bytes > 5 && name[0] != '.' && strcmp(name + bytes - 5, ".area") == 0 &&
        is_left_over(directory, name))
        syscall(SYS_unlinkat, directory, name, 0);
    return 1;
}

/* Publishes a finished area under its name. @return whether it did. */
static int show_area(const char *hidden, const char *shared)
{
    if (shared == NULL)
        return lat_i_rename(hidden, lat_i_area_path) == 0;
    /* Not by renaming: another program may have published its area first and others may have joined it. */
    return link(hidden, lat_i_area_path) == 0 && lat_i_unlink(hidden) == 0;
}

static const struct lat_i_request default_request = {.buffer_bytes = DEFAULT_BUFFER_BYTES,
                                                     .packet_bytes = DEFAULT_PACKET_BYTES,
                                                     .cap_bytes = DEFAULT_CAP_BYTES,
                                                     .mode = LAT_MODE_DISCARD,
                                                     .enable = "*"};

enum asked { NOT_ASKED, ASKED, SESSION_OVER };

/* Finds the request for records to this program: from its launcher, else from a recorder of all programs.
 * `lock` is then for lat_i_session_lives. `room`: for a path. */
static enum asked look_for_request(const char *directory, char *room, struct lat_i_request *request,
                                   int *lock)
{
    int over = 0;
    *request = default_request;
    if (lat_i_variable("LATERALIS_RECORD") != NULL) {
        if (!lat_i_request_of_launcher(request))
            return NOT_ASKED;
        *lock = lat_i_session_lock_open(request, directory, room);
        if (lat_i_session_lives(request, *lock))
            return ASKED;
        /* Inherited from a program that outlived its recording. */
        lat_i_session_lock_close(*lock);
        *lock = -1;
        over = 1;
        *request = default_request;
    }
    if (!lat_i_request_standing(directory, request))
        return over ? SESSION_OVER : NOT_ASKED;
    *lock = lat_i_session_lock_open(request, directory, room);
    return ASKED;
}

int lat_i_launcher_asks(void)
{
    struct lat_i_request request = default_request;
    if (!lat_i_request_of_launcher(&request))
        return 0;
    const int lock =
        lat_i_session_lock_open(&request, lat_i_variable("LATERALIS_DIR"), lat_i_area_path);
    const int lives = lat_i_session_lives(&request, lock);
    lat_i_session_lock_close(lock);
    return lives;
}

/* Makes the area in the directory whose path is the first `directory_bytes` of lat_i_area_path, for a request
 * that was found; `lock` is its session's. */
static void make_in(size_t directory_bytes, const char *path, const struct lat_i_request *request,
                    int launched, int lock, uint64_t text_bytes);

void lat_i_area_make(const char *path, uint64_t text_bytes)
{
    struct lat_i_request request;
    int lock = -1;

    if (!lat_i_area_directory(lat_i_area_path, PATH_MAX - NAME_BYTES_MAX))
        return;
    const size_t directory_bytes = strlen(lat_i_area_path);
    const enum asked asked = look_for_request(
        lat_i_area_path, lat_i_area_path + directory_bytes + 1, &request, &lock);
    /* An area of a session that is over would never be removed. */
    if (asked != SESSION_OVER)
        make_in(directory_bytes, path, &request, asked == ASKED, lock, text_bytes);
    lat_i_session_lock_close(lock);
}

/* Appends the name of an area in a directory. @return the end of the text. */
static char *add_area_name(char *text, const char *begin, uint32_t pid, uint64_t area_id)
{
    struct lat_i_line line = lat_i_line_in(text, NAME_BYTES_MAX);
    lat_i_line_add(&line, begin);
    lat_i_line_decimal(&line, pid);
    lat_i_line_add(&line, "-");
    lat_i_line_hex(&line, area_id);
    lat_i_line_add(&line, ".area");
    lat_i_line_ends(&line); /* 34 bytes at most */
    return line.at + 1;
}

/* Whether an area prepared by the recorder equals the one this program would make. It is new memory. */
static int is_as_wanted(const struct lat_area_header *header, const struct lat_i_request *request,
                        const struct beginning *begin, uint64_t packet)
{
    return header->abi_version == LAT_ABI_VERSION && header->byte_order == LAT_BYTE_ORDER_MARK &&
           header->magic == 0 && header->state == LAT_AREA_INITIALISING && header->creator_pid == 0 &&
           header->session == request->session && header->ring_mode == request->mode &&
           header->ring_kind == begin->kind && header->ring_count == begin->count &&
           header->rings_ready == 2 && header->ring_stride == LAT_RING_CONTROL_BYTES + begin->buffer &&
           header->packet_bytes == packet && header->packets_per_ring == begin->buffer / packet &&
           header->heap_used <= LAT_AREA_HEAP_BYTES;
}

/* Number of names to try: two for this CPU, whose ring has more memory, one for the next CPU. Where
 * many programs start, the first exists; where few do, there are none. */
#define PREPARED_TRIES 3u

static uint32_t prepared_number(uint32_t prepared, const struct beginning *begin, uint32_t pid,
                                uint32_t tries)
{
    const uint32_t of_a_cpu = (uint32_t)(prepared / begin->count);
    if (of_a_cpu == 0 || begin->cpu >= begin->count)
        return (pid + tries) % prepared;
    const uint64_t cpu = tries < 2 ? begin->cpu : (begin->cpu + 1) % begin->count;
    return (uint32_t)((pid + tries) % of_a_cpu * begin->count + cpu);
}

static struct lat_i_line prepared_name(char *to, size_t directory_bytes, uint64_t session)
{
    struct lat_i_line line = lat_i_line_in(to, PATH_MAX);
    lat_i_line_part(&line, lat_i_area_path, directory_bytes);
    lat_i_line_add(&line, "/prepared-");
    lat_i_line_hex(&line, session);
    lat_i_line_add(&line, "/");
    return line;
}

/* Takes over an area prepared by the recorder (spec/ring-abi.md §2), by renaming it to `hidden`: only
 * one program can. Making an area takes 100 us. @return NULL if there is none. */
static struct lat_area_header *take_prepared(size_t directory_bytes, char *hidden, uint64_t area_id,
                                             const struct lat_i_request *request,
                                             const struct beginning *begin, uint64_t packet, int *file)
{
    struct stat status;
    uint64_t mapped = 0;
    const uint32_t pid = (uint32_t)syscall(SYS_getpid);
    int taken = 0;
    struct lat_i_line line = prepared_name(hidden, directory_bytes, request->session);
    lat_i_line_hex(&line, area_id);
    if (!lat_i_line_ends(&line))
        return NULL;
    char *const name = line.at + 1;
    for (uint32_t tries = 0; tries < PREPARED_TRIES && !taken; tries++) {
        line = prepared_name(name, directory_bytes, request->session);
        lat_i_line_decimal(&line, prepared_number(request->prepared, begin, pid, tries));
        taken = lat_i_line_ends(&line) && lat_i_rename(name, hidden) == 0;
    }
    if (!taken)
        return NULL;
    *file = lat_i_open(hidden, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (*file >= 0 && lat_i_status_of(*file, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_uid == lat_i_user() && (uint64_t)status.st_size == file_bytes) {
        const uint64_t wanted = file_bytes + LAT_RING_CONTROL_BYTES;
        struct lat_area_header *header = map_area(*file, wanted, &mapped);
        /* Read access first: the kernel then also maps the surrounding pages. */
        if (header != NULL && mapped == wanted && is_as_wanted(header, request, begin, packet)) {
            heap_allocated = (header->heap_used + 4095) & ~UINT64_C(4095);
            return header;
        }
        if (header != NULL)
            lat_i_unmap(header, mapped);
    }
    lat_i_unlink(hidden);
    if (*file >= 0)
        lat_i_close(*file);
    *file = -1;
    return NULL;
}

/* Steps on a prepared area that only the program can do. */
static void begin_prepared(int file, struct lat_area_header *header, const struct beginning *begin)
{
    /* The recorder does not know which ring is used first, and on a machine with many CPUs it gives all of
     * them little memory. */
    struct lat_ring *ring = ring_at(header, begin, begin->cpu < begin->count ? begin->cpu : 0);
    const uint64_t first = first_bytes(begin, begin->cpu), backed = ring->backed_bytes;
    if (backed != 0 && backed < first && begin->cpu < begin->count) {
        const uint64_t data = (uint64_t)((char *)ring - (char *)header) + LAT_RING_CONTROL_BYTES;
        if (lat_i_allocate(file, data + backed, first - backed) == 0)
            ring->backed_bytes = first_backed(begin, begin->cpu);
    }
    map_beginnings(header, begin);
    (void)give_access((char *)header + LAT_AREA_RINGS_OFFSET,
                      (LAT_RING_CONTROL_BYTES + begin->buffer) * begin->count);
}

static void make_in(size_t directory_bytes, const char *path, const struct lat_i_request *request,
                    int launched, int lock, uint64_t text_bytes)
{
    char *const directory = lat_i_area_path, *const end = directory + directory_bytes;
    uint64_t mapped;

    /* A program that ends makes no system calls, not even to remove its area: starting programs remove
     * a few each. */
    if (!launched)
        lat_i_entries_each(directory, 1, take_away_left_over, NULL);
    const char *ring = lat_i_variable("LATERALIS_RING");
    const int per_cpu = !(ring != NULL && strcmp(ring, "thread") == 0) && lat_i_rseq_works();
    const uint32_t pid = (uint32_t)syscall(SYS_getpid);
    /* Unique since boot: a monotonic counter combined with the process id. The address
     * distinguishes two copies of the tracer in one process. */
    const uint64_t area_id =
        (lat_i_clock() << 8 ^ (uint64_t)pid << 40 ^ (uint64_t)(uintptr_t)&lat_i_area_path >> 4) | 1;

    char *hidden;
    if (path == NULL) {
        hidden = add_area_name(end, "/", pid, area_id);
    } else {
        /* Only in the directory that was checked. */
        const char *name = strrchr(path, '/');
        if (name == NULL || (size_t)(name - path) != directory_bytes ||
            memcmp(path, directory, directory_bytes) != 0 || strlen(path) >= PATH_MAX)
            return;
        hidden = directory + strlen(path) + 1;
        memcpy(directory, path, strlen(path) + 1);
    }
    uint64_t heap_bytes = (text_bytes + 4095) & ~UINT64_C(4095);
    if (heap_bytes > LAT_AREA_HEAP_BYTES)
        heap_bytes = LAT_AREA_HEAP_BYTES;
    const uint32_t ring_count = per_cpu ? possible_cpus(request) : THREAD_RING_COUNT;
    uint64_t buffer = 0, packet = 0;
    if (launched && !request->waits)
        ring_geometry(request, ring_count, &buffer, &packet);
    const struct beginning begin = how_rings_begin(
        request, per_cpu ? LAT_RING_PER_CPU : LAT_RING_PER_THREAD, ring_count, buffer);
    file_bytes = LAT_AREA_RINGS_OFFSET;
    if (buffer != 0)
        file_bytes += ring_count * (LAT_RING_CONTROL_BYTES + buffer);
    /* The rings, and the page after them (lat_i_port_open_rings). */
    const uint64_t asked =
        LAT_AREA_RINGS_OFFSET + ring_count * (LAT_RING_CONTROL_BYTES + buffer) + LAT_RING_CONTROL_BYTES;
    uint64_t wanted = address_space_wanted(asked);
    /* Unneeded address space is not reserved: unmapping a GiB at the end costs 20 us. */
    if (buffer != 0 && wanted > asked)
        wanted = asked;
    int file = -1;
    struct lat_area_header *header = NULL;
    /* Areas are prepared for programs with the preload library, with its schema. */
    if (launched && request->prepared != 0 && lat_i_frequent_subsystems != NULL && path == NULL && per_cpu &&
        buffer != 0 && wanted == asked)
        header = take_prepared(directory_bytes, hidden, area_id, request, &begin, packet, &file);
    const int is_prepared = header != NULL;
    if (is_prepared) {
        mapped = wanted;
    } else {
        memcpy(hidden, directory, directory_bytes);
        add_area_name(hidden + directory_bytes, "/.", pid, area_id);
        if (!file_may_have(file_bytes))
            file_bytes = LAT_AREA_RINGS_OFFSET;
        file = lat_i_open(hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file < 0)
            return;
        if (!file_may_have(file_bytes) || lat_i_truncate(file, file_bytes) != 0 ||
            !allocate_tables(file, heap_bytes))
            goto give_up;
        heap_allocated = heap_bytes;
        header = map_area(file, wanted, &mapped);
        if (header == NULL)
            goto give_up;
        header->next_event_id = LAT_INTERNAL_EVENT_COUNT;
    }

    header->abi_version = LAT_ABI_VERSION;
    header->header_bytes = sizeof *header;
    header->byte_order = LAT_BYTE_ORDER_MARK;
    header->page_bytes = (uint32_t)getauxval(AT_PAGESZ);
    header->area_bytes = mapped;
    header->area_id = area_id;
    header->creator_pid = pid;
    header->creator_uid = lat_i_user();
    header->pid_namespace = pid_namespace(request, lock);
    header->ring_kind = per_cpu ? LAT_RING_PER_CPU : LAT_RING_PER_THREAD;
    header->ring_count = ring_count;
    header->rings_offset = LAT_AREA_RINGS_OFFSET;
    header->pointer_bytes = sizeof(void *);
    header->features = LAT_FEATURE_FILTERS;
#if defined(__x86_64__)
    header->clock_kind = LAT_CLOCK_X86_TSC;
#elif defined(__aarch64__)
    header->clock_kind = LAT_CLOCK_AARCH64_CNTVCT;
    __asm__("mrs %0, cntfrq_el0" : "=r"(header->clock_hz));
#else
    header->clock_kind = LAT_CLOCK_MONOTONIC_NS;
    header->clock_hz = 1000000000u;
#endif
    header->monotonic_ns_at_start = nanoseconds(CLOCK_MONOTONIC);
    header->clock_at_start = lat_i_clock();
    header->realtime_ns_at_start = nanoseconds(CLOCK_REALTIME);
    read_command(header, launched);
    lat_i_area.kind = header->ring_kind;
    lat_i_area.ring_count = ring_count;
    lat_i_area.mapped_bytes = mapped;
    if (launched) {
        header->session = request->session;
        header->ring_mode = request->mode;
        header->recorder_pid = request->recorder != 0 ? request->recorder : (uint32_t)syscall(SYS_getppid);
    }
    if (is_prepared) {
        begin_prepared(file, header, &begin);
    } else if (launched && !request->waits) {
        struct lat_i_line line = lat_i_line_in(header->enable, sizeof header->enable);
        lat_i_line_add(&line, request->enable);
        lat_i_line_ends(&line); /* patterns that do not fit are truncated */
        header->setup_errno = (uint32_t)make_rings(file, header, begin, packet);
    }
    header->magic_complement = ~LAT_AREA_MAGIC;
    header->magic = LAT_AREA_MAGIC;
    __atomic_store_n(&header->state, LAT_AREA_READY, __ATOMIC_RELEASE); /* pair R2 */
    __atomic_store_n(&lat_i_area.header, header, __ATOMIC_RELEASE);
    lat_i_register_process();
    lat_i_area_shared = path != NULL;
    lat_i_area_alone = path == NULL;
    const int shown = show_area(hidden, path);
    /* The recorder may have scanned for areas for the last time since its request. It scans
     * after its session has ended: areas found then are removed by it, all others here. */
    if (!shown || (launched && !lat_i_session_lives(request, lock))) {
        if (shown)
            lat_i_unlink(lat_i_area_path);
        lat_i_area_shared = 0;
        opened_bytes = 0;
        __atomic_store_n(&lat_i_area.header, NULL, __ATOMIC_RELEASE);
        lat_i_unmap(header, mapped);
        goto give_up;
    }
    lat_i_close(file);
    return;
give_up:
    lat_i_unlink(hidden);
    lat_i_close(file);
}

int lat_i_port_area_lock(void)
{
    const struct timespec moment = {0, 100000};
    const int file = lat_i_open(lat_i_area_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
    for (int tries = 0; file >= 0 && tries < 1000; tries++) {
        if (lat_i_flock(file, LOCK_EX | LOCK_NB) != -EWOULDBLOCK)
            break;
        nanosleep(&moment, NULL);
    }
    return file;
}

void lat_i_port_area_unlock(int token)
{
    if (token >= 0)
        lat_i_close(token);
}

static int allocate_part(uint64_t offset, uint64_t bytes)
{
    const int file = lat_i_open(lat_i_area_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (file < 0)
        return 0;
    const int allocated = lat_i_allocate(file, offset, bytes) == 0;
    lat_i_close(file);
    return allocated;
}

int lat_i_port_heap_grow(uint64_t bytes)
{
    if (bytes <= heap_allocated)
        return 1;
    const uint64_t wanted = (bytes + HEAP_STEP_BYTES - 1) / HEAP_STEP_BYTES * HEAP_STEP_BYTES;
    if (wanted > LAT_AREA_HEAP_BYTES || !allocate_part(LAT_AREA_HEAP_OFFSET, wanted))
        return 0;
    heap_allocated = wanted;
    return 1;
}

int lat_i_port_table_grow(uint64_t offset, uint64_t bytes)
{
    return bytes <= TABLE_FIRST_BYTES || allocate_part(offset, bytes);
}
