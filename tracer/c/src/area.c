// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Making the area, or joining one (spec/ring-abi.md §2). Runs once, in the first constructor of
 * the program that registers a schema. Whatever fails leaves `lat_i_area.header` NULL and no file.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "area.h"
#include "core.h"
#include "maps.h"
#include "register.h"
#include "request.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Address space asked for when nobody has said yet how large the rings will be:
 * reserved, not used. Less where the program's limits do not allow it. */
#define RESERVE_BYTES (UINT64_C(1) << 30)
#define RESERVE_BYTES_MIN (UINT64_C(1) << 26)
/* Threads that can write at the same moment where rings belong to threads. */
#define THREAD_RING_COUNT 64u
/* Heap allocated at once; more is allocated as schemas come. */
#define HEAP_STEP_BYTES 0x10000u
#define DEFAULT_BUFFER_BYTES (UINT64_C(4) << 20)
#define DEFAULT_PACKET_BYTES (UINT64_C(64) << 10)
#define DEFAULT_CAP_BYTES (UINT64_C(256) << 20)

char lat_i_area_path[PATH_MAX];
int lat_i_area_shared;
static uint64_t heap_allocated;

int lat_i_area_in_line(const char *line, void *unused)
{
    const char *name = strrchr(lat_i_area_path, '/');
    (void)unused;
    return name != NULL && strstr(line, name) != NULL;
}

static uint32_t possible_cpus(void)
{
    char text[256];
    uint32_t count = 0;
    const int file = open("/sys/devices/system/cpu/possible", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        const ssize_t length = read(file, text, sizeof text - 1);
        close(file);
        if (length > 0) {
            /* "0-3,8-11": the last number is the highest CPU. */
            text[length] = 0;
            const char *last = text;
            for (const char *at = text; *at != 0; at++)
                if (*at == '-' || *at == ',')
                    last = at + 1;
            count = (uint32_t)strtoul(last, NULL, 10) + 1;
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

static int area_directory(char *path, size_t bytes)
{
    struct stat status;
    const char *given = getenv("LATERALIS_DIR");
    int length;
    if (given != NULL && given[0] != 0)
        length = snprintf(path, bytes, "%s", given);
    else
        length = snprintf(path, bytes, "%s/lateralis-%u",
                          access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (unsigned)geteuid());
    if (length < 0 || (size_t)length >= bytes)
        return 0;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return 0;
    /* Somebody else's directory of that name, or one that others can write, is not ours. */
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           (status.st_mode & 022) == 0;
}

static void read_command(struct lat_area_header *header)
{
    ssize_t length = readlink("/proc/self/exe", header->exe, sizeof header->exe - 1);
    if (length < 0)
        header->exe[0] = 0;
    const int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, header->command, sizeof header->command - 1);
        close(file);
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

/* Growing a file beyond this limit would not only fail, but end the program by SIGXFSZ. */
static int file_may_have(uint64_t bytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

/* Address space to reserve: enough for what was asked, but of a program whose own space is
 * limited never more than a small part. */
static uint64_t address_space_wanted(uint64_t asked)
{
    struct rlimit limit;
    uint64_t wanted = asked > RESERVE_BYTES ? asked : RESERVE_BYTES;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        wanted > limit.rlim_cur / 16)
        wanted = limit.rlim_cur / 16 & ~(uint64_t)0xffff;
    return wanted > LAT_AREA_RINGS_OFFSET ? wanted : LAT_AREA_RINGS_OFFSET;
}

/* Bytes of each ring and of its packets that a launcher's wish comes to. */
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

/* Rings of the launcher's wish, spec/ring-abi.md §2. @return 0 or an errno. */
static int make_rings(int file, struct lat_area_header *header, const struct lat_i_request *request)
{
    const uint64_t count = header->ring_count;
    uint64_t buffer, packet;
    uint32_t none = 0;

    ring_geometry(request, count, &buffer, &packet);
    const uint64_t stride = LAT_RING_CONTROL_BYTES + buffer;
    const uint64_t bytes = stride * count;
    if (LAT_AREA_RINGS_OFFSET + bytes > header->area_bytes)
        return ENOMEM;
    char *rings = (char *)header + LAT_AREA_RINGS_OFFSET;
    if (!__atomic_compare_exchange_n(&header->rings_ready, &none, 1, 0, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return 0;
    const int too_large = !file_may_have(LAT_AREA_RINGS_OFFSET + bytes);
    if (too_large || fallocate(file, 0, LAT_AREA_RINGS_OFFSET, (off_t)bytes) != 0 ||
        mprotect(rings, bytes, PROT_READ | PROT_WRITE) != 0) {
        const int failed = too_large ? EFBIG : errno;
        __atomic_store_n(&header->rings_ready, 0, __ATOMIC_RELEASE);
        return failed;
    }
    header->ring_stride = stride;
    header->packet_bytes = packet;
    header->packets_per_ring = buffer / packet;
#ifdef MADV_POPULATE_WRITE
    /* Otherwise the first lap pays a page fault per 4 KiB: 13 cycles an event. */
    madvise(rings, bytes, MADV_POPULATE_WRITE);
#endif
    for (uint64_t r = 0; r < count; r++) {
        struct lat_ring *ring = (struct lat_ring *)(void *)(rings + r * stride);
        ring->mask = (buffer - 1) & ~LAT_CURSOR_SLACK_MASK;
        for (uint64_t p = 0; p < header->packets_per_ring; p++) {
            struct lat_packet *head = (struct lat_packet *)(void *)((char *)ring +
                                                                    LAT_RING_CONTROL_BYTES + p * packet);
            head->magic = LAT_PACKET_MAGIC;
            head->area_id = header->area_id;
            head->cpu_id = (uint32_t)r;
        }
    }
    __atomic_store_n(&header->rings_ready, 2, __ATOMIC_RELEASE); /* pair R1 */
    return 0;
}

/* What lies behind the end of the file is not accessible before it is there: whoever walks through
 * the memory of a process (valgrind's search for leaks, a core dump) would meet a fault per page. */
static struct lat_area_header *map_area(int file, uint64_t wanted, uint64_t *mapped)
{
    for (uint64_t bytes = wanted; bytes >= LAT_AREA_RINGS_OFFSET; bytes /= 4) {
        void *area = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (area != MAP_FAILED) {
            *mapped = bytes;
            if (mprotect(area, LAT_AREA_RINGS_OFFSET, PROT_READ | PROT_WRITE) == 0)
                return (struct lat_area_header *)area;
            munmap(area, bytes);
            return NULL;
        }
        if (bytes <= RESERVE_BYTES_MIN && bytes > LAT_AREA_RINGS_OFFSET)
            bytes = LAT_AREA_RINGS_OFFSET * 4; /* at least the tables: `lat list` shows the program */
    }
    return NULL;
}

int lat_i_port_open_rings(uint64_t bytes)
{
    const int saved_errno = errno;
    const int opened = syscall(SYS_mprotect, (char *)lat_i_area.header + LAT_AREA_RINGS_OFFSET,
                               bytes, PROT_READ | PROT_WRITE) == 0;
    errno = saved_errno;
    return opened;
}

/* Joins an area that exists already: LATERALIS_AREA. */
void lat_i_area_join(const char *path)
{
    struct stat status;
    uint64_t mapped;
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return;
    if (fstat(file, &status) == 0 && status.st_uid == geteuid() &&
        status.st_size >= (off_t)LAT_AREA_RINGS_OFFSET) {
        struct lat_area_header first;
        if (pread(file, &first, sizeof first, 0) == (ssize_t)sizeof first &&
            first.magic == LAT_AREA_MAGIC && first.magic_complement == ~LAT_AREA_MAGIC &&
            first.abi_version == LAT_ABI_VERSION && first.state == LAT_AREA_READY &&
            first.area_bytes >= LAT_AREA_RINGS_OFFSET && first.area_bytes <= RESERVE_BYTES * 1024 &&
            (first.ring_kind == LAT_RING_PER_THREAD ||
             (first.ring_kind == LAT_RING_PER_CPU && lat_i_rseq_works()))) {
            snprintf(lat_i_area_path, sizeof lat_i_area_path, "%s", path);
            /* Another copy of the tracer in this process is in it already. Two copies must not
             * take each other's rings for their own: the ids of their threads are the same. */
            const int twice = lat_i_maps_each((uint32_t)getpid(), lat_i_area_in_line, NULL) != 0;
            struct lat_area_header *header =
                twice ? NULL : map_area(file, first.area_bytes, &mapped);
            if (header != NULL && mapped == first.area_bytes) {
                lat_i_area_shared = 1;
                heap_allocated = HEAP_STEP_BYTES;
                lat_i_area.kind = first.ring_kind;
                lat_i_area.ring_count = first.ring_count;
                __atomic_store_n(&lat_i_area.header, header, __ATOMIC_RELEASE);
                lat_i_register_process((uint32_t)getpid());
            } else if (header != NULL) {
                munmap(header, mapped);
            }
        }
    }
    close(file);
}

/* Shows a finished area under its name. @return whether it did. */
static int show_area(const char *hidden, const char *shared)
{
    if (shared == NULL)
        return rename(hidden, lat_i_area_path) == 0;
    /* Not by renaming: another program may have been quicker, and somebody be in its area. */
    return link(hidden, lat_i_area_path) == 0 && unlink(hidden) == 0;
}

void lat_i_area_make(const char *path)
{
    char directory[PATH_MAX - 96], hidden[PATH_MAX];
    struct lat_i_request request = {.buffer_bytes = DEFAULT_BUFFER_BYTES,
                                    .packet_bytes = DEFAULT_PACKET_BYTES,
                                    .cap_bytes = DEFAULT_CAP_BYTES,
                                    .mode = LAT_MODE_DISCARD,
                                    .enable = "*"};
    uint64_t mapped;

    if (!area_directory(directory, sizeof directory))
        return;
    const int launched = lat_i_request_of_launcher(&request) ||
                         (getenv("LATERALIS_RECORD") == NULL &&
                          lat_i_request_standing(directory, &request));
    const char *ring = getenv("LATERALIS_RING");
    const int per_cpu = !(ring != NULL && strcmp(ring, "thread") == 0) && lat_i_rseq_works();
    const uint32_t pid = (uint32_t)getpid();
    /* Unique since boot: a counter that does not stop, and who asks. The address
     * tells apart two copies of the tracer in one process. */
    const uint64_t area_id =
        (lat_i_clock() << 8 ^ (uint64_t)pid << 40 ^ (uint64_t)(uintptr_t)&lat_i_area_path >> 4) | 1;

    snprintf(hidden, sizeof hidden, "%s/.%u-%016llx.area", directory, pid,
             (unsigned long long)area_id);
    const char *end = path != NULL ? strrchr(path, '/') : NULL;
    if (path == NULL)
        snprintf(lat_i_area_path, sizeof lat_i_area_path, "%s/%u-%016llx.area", directory, pid,
                 (unsigned long long)area_id);
    else if (end != NULL && (size_t)(end - path) == strlen(directory) &&
             memcmp(path, directory, (size_t)(end - path)) == 0)
        snprintf(lat_i_area_path, sizeof lat_i_area_path, "%s", path);
    else
        return; /* nowhere but in the directory that has been looked at */
    const int file = open(hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return;
    if (!file_may_have(LAT_AREA_RINGS_OFFSET) || ftruncate(file, LAT_AREA_RINGS_OFFSET) != 0 ||
        fallocate(file, 0, 0, LAT_AREA_HEAP_OFFSET + HEAP_STEP_BYTES) != 0)
        goto give_up;
    heap_allocated = HEAP_STEP_BYTES;
    const uint32_t ring_count = per_cpu ? possible_cpus() : THREAD_RING_COUNT;
    uint64_t buffer = 0, packet = 0;
    if (launched && !request.waits)
        ring_geometry(&request, ring_count, &buffer, &packet);
    const uint64_t asked =
        LAT_AREA_RINGS_OFFSET + ring_count * (LAT_RING_CONTROL_BYTES + buffer);
    struct lat_area_header *header = map_area(file, address_space_wanted(asked), &mapped);
    if (header == NULL)
        goto give_up;

    header->abi_version = LAT_ABI_VERSION;
    header->header_bytes = sizeof *header;
    header->byte_order = LAT_BYTE_ORDER_MARK;
    header->page_bytes = (uint32_t)sysconf(_SC_PAGESIZE);
    header->area_bytes = mapped;
    header->area_id = area_id;
    header->creator_pid = pid;
    header->creator_uid = (uint32_t)geteuid();
    header->ring_kind = per_cpu ? LAT_RING_PER_CPU : LAT_RING_PER_THREAD;
    header->ring_count = ring_count;
    header->rings_offset = LAT_AREA_RINGS_OFFSET;
    header->next_event_id = LAT_INTERNAL_EVENT_COUNT;
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
    read_command(header);
    lat_i_area.kind = header->ring_kind;
    lat_i_area.ring_count = header->ring_count;
    if (launched) {
        header->session = request.session;
        header->ring_mode = request.mode;
        header->recorder_pid = request.recorder != 0 ? request.recorder : (uint32_t)getppid();
    }
    if (launched && !request.waits) {
        snprintf(header->enable, sizeof header->enable, "%s", request.enable);
        header->setup_errno = (uint32_t)make_rings(file, header, &request);
    }
    header->magic_complement = ~LAT_AREA_MAGIC;
    header->magic = LAT_AREA_MAGIC;
    __atomic_store_n(&header->state, LAT_AREA_READY, __ATOMIC_RELEASE); /* pair R2 */
    __atomic_store_n(&lat_i_area.header, header, __ATOMIC_RELEASE);
    lat_i_register_process(pid);
    lat_i_area_shared = path != NULL;
    if (!show_area(hidden, path)) {
        lat_i_area_shared = 0;
        __atomic_store_n(&lat_i_area.header, NULL, __ATOMIC_RELEASE);
        munmap(header, mapped);
        goto give_up;
    }
    close(file);
    return;
give_up:
    unlink(hidden);
    close(file);
}

int lat_i_port_area_lock(void)
{
    const struct timespec moment = {0, 100000};
    const int file = open(lat_i_area_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    for (int tries = 0; file >= 0 && tries < 1000; tries++) {
        if (flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            break;
        nanosleep(&moment, NULL);
    }
    return file;
}

void lat_i_port_area_unlock(int token)
{
    if (token >= 0)
        close(token);
}

int lat_i_port_heap_grow(uint64_t bytes)
{
    if (bytes <= heap_allocated)
        return 1;
    const uint64_t wanted = (bytes + HEAP_STEP_BYTES - 1) / HEAP_STEP_BYTES * HEAP_STEP_BYTES;
    if (wanted > LAT_AREA_HEAP_BYTES)
        return 0;
    const int file = open(lat_i_area_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return 0;
    const int grown = fallocate(file, 0, LAT_AREA_HEAP_OFFSET, (off_t)wanted) == 0;
    close(file);
    if (grown)
        heap_allocated = wanted;
    return grown;
}
