// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Started programs: those that cannot load this library are started without it, and are noted.
 *
 * LD_PRELOAD is inherited by every program that is started, and some cannot load this library: for a
 * program of another architecture the dynamic linker prints an error, one built with AddressSanitizer
 * as a shared library refuses to start, and in another root directory the file does not exist. So the
 * program is examined before it starts, and the library is removed from its environment if needed. A
 * static program ignores the environment, and is only counted, so that the recorder can name it. A
 * program that can load the library is noted until it reports that it is recorded, which may fail.
 *
 * Nothing here allocates or writes to memory of the process that outlives the call: a child of vfork
 * runs this with its parent's memory. Notes go into the session's table (starts.h). The system
 * calls are those that the kernel, the dynamic linker and this library's set-up make next in the same
 * process: fstat, openat, pread64, close, getpid. A sandbox that allows such a program to start allows them.
 */
#include "real.h"

#include "area.h"
#include "calls.h"
#include "core.h"
#include "starts.h"
#include "symbols.h"

#include <elf.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

/* Values are the letters of the table of started programs [ring-abi.md §8]. */
enum verdict {
    TAKES = 0,
    UNKNOWN = 1, /* no readable file */
    IS_STATIC = 's',
    OTHER_LIBRARY = 'l',
    OTHER_MACHINE = 'm',
    OTHER_USER = 'u',
    SANITIZER = 'a',
    OUT_OF_REACH = 'r',
    CLEARED = 'e',
    NO_ROOM = 'n',
    OTHER_RECORDER = 'o'
};

#define READ_BYTES 1024
#define PATH_BYTES 1024
#define SCRIPTS_MAX 4
/* An environment with more variables is left unchanged: the list of its pointers is copied to the stack. */
#define VARIABLES_MAX 4096

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

static const char library_name[] = "liblateralis-preload.so";

/* Set once, before main. */
static const char *library_path;

/* Runs after the constructors of the tracer: by now there is an area, or there will be none. */
static __attribute__((constructor(250))) void begins_as_program(void)
{
    const int saved_errno = errno;
    library_path = preload_own_path();
    preload_starts_map();
    preload_has_begun();
    if (lat_i_area.header == NULL && lat_i_variable("LATERALIS_DISABLE") == NULL)
        preload_not_recorded(NO_ROOM, program_invocation_name);
    errno = saved_errno;
}

/* ---- the program ---------------------------------------------------------------------------- */

static int opened(const char *path)
{
    struct stat status;
    /* Only regular files are opened: opening a device may have side effects. */
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0) != 0 || !S_ISREG(status.st_mode))
        return -1;
    return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0);
}

static size_t read_at(int fd, void *to, size_t size, uint64_t at)
{
    const long got = at > LONG_MAX ? -1 : syscall(SYS_pread64, fd, to, size, (off_t)at);
    return got < 0 ? 0 : (size_t)got;
}

static int is_privileged(int fd)
{
    struct stat status;
    if (syscall(SYS_fstat, fd, &status) != 0)
        return 0;
    const int user = (status.st_mode & S_ISUID) != 0 && status.st_uid != getauxval(AT_EUID);
    const int group = (status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
                      status.st_gid != getauxval(AT_EGID);
    return user || group;
}

static int begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int is_of_this_library(const char *interpreter)
{
    const char *slash = strrchr(interpreter, '/');
    const char *name = slash != NULL ? slash + 1 : interpreter;
    return begins(name, "ld-linux") || begins(name, "ld64.so") || begins(name, "ld.so.") ||
           begins(name, "ld-2.");
}

/* The first library that the program needs; writes its name to `name`. 0: it needs none. -1: unknown. */
static int first_needed(int fd, const Elf64_Phdr *dynamic, const Elf64_Phdr *loads, size_t count,
                        char *name, size_t size)
{
    Elf64_Dyn entries[48];
    const uint64_t whole = dynamic->p_filesz;
    const size_t got =
        read_at(fd, entries, whole < sizeof entries ? whole : sizeof entries, dynamic->p_offset);
    uint64_t needed = 0, strings = 0;
    int is_needed = 0, is_whole = 0;
    for (size_t i = 0; i < got / sizeof entries[0] && !is_whole; i++) {
        if (entries[i].d_tag == DT_NEEDED && !is_needed) {
            is_needed = 1;
            needed = entries[i].d_un.d_val;
        } else if (entries[i].d_tag == DT_STRTAB) {
            strings = entries[i].d_un.d_ptr;
        } else if (entries[i].d_tag == DT_NULL) {
            is_whole = 1;
        }
    }
    if (!is_needed)
        return is_whole ? 0 : -1;
    for (size_t i = 0; i < count; i++) {
        if (loads[i].p_type != PT_LOAD || strings < loads[i].p_vaddr ||
            strings - loads[i].p_vaddr >= loads[i].p_filesz)
            continue;
        const uint64_t at = strings - loads[i].p_vaddr + loads[i].p_offset + needed;
        const size_t length = read_at(fd, name, size - 1, at);
        name[length] = 0;
        return length > 0 ? 1 : -1;
    }
    return -1;
}

static enum verdict verdict_of_elf(int fd, const char *bytes, size_t got)
{
    Elf64_Ehdr header;
    Elf64_Phdr loads[24];
    char text[64];
    if (got < sizeof header)
        return TAKES;
    memcpy(&header, bytes, sizeof header);
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return OTHER_MACHINE;
#ifdef MACHINE
    if (header.e_machine != MACHINE)
        return OTHER_MACHINE;
#endif
    if (header.e_phentsize != sizeof loads[0])
        return TAKES;
    const size_t most = sizeof loads / sizeof loads[0];
    size_t count = header.e_phnum < most ? header.e_phnum : most;
    if (header.e_phoff <= got && count * sizeof loads[0] <= got - header.e_phoff)
        memcpy(loads, bytes + header.e_phoff, count * sizeof loads[0]);
    else
        count = read_at(fd, loads, count * sizeof loads[0], header.e_phoff) / sizeof loads[0];
    const Elf64_Phdr *interpreter = NULL, *dynamic = NULL;
    for (size_t i = 0; i < count; i++) {
        if (loads[i].p_type == PT_INTERP)
            interpreter = &loads[i];
        else if (loads[i].p_type == PT_DYNAMIC)
            dynamic = &loads[i];
    }
    if (interpreter == NULL)
        return header.e_phnum > count ? TAKES : IS_STATIC;
    /* Long paths are those of package stores; only the part after the last slash matters. */
    const uint64_t size = interpreter->p_filesz;
    const uint64_t skipped = size > sizeof text - 1 ? size - (sizeof text - 1) : 0;
    text[read_at(fd, text, size - skipped, interpreter->p_offset + skipped)] = 0;
    if (!is_of_this_library(text))
        return OTHER_LIBRARY;
    if (dynamic == NULL)
        return TAKES;
    const int needs = first_needed(fd, dynamic, loads, count, text, sizeof text);
    if (needs == 0)
        return OTHER_LIBRARY;
    if (needs > 0 && (begins(text, "libasan.so") || begins(text, "libclang_rt.asan")))
        return SANITIZER;
    return TAKES;
}

/* Closes the descriptor. */
static enum verdict verdict_of_file(int fd)
{
    char bytes[READ_BYTES + 1];
    if (fd < 0)
        return UNKNOWN;
    for (int depth = 0; fd >= 0; depth++) {
        const size_t got = read_at(fd, bytes, READ_BYTES, 0);
        bytes[got] = 0;
        enum verdict verdict = TAKES;
        const int is_elf = got >= SELFMAG && memcmp(bytes, ELFMAG, SELFMAG) == 0;
        if (is_elf) {
            verdict = verdict_of_elf(fd, bytes, got);
            if (verdict == TAKES && is_privileged(fd))
                verdict = OTHER_USER;
        }
        syscall(SYS_close, fd);
        if (is_elf || depth == SCRIPTS_MAX || bytes[0] != '#' || bytes[1] != '!')
            return verdict;
        /* A script: the verdict is that of its interpreter. */
        char *interpreter = bytes + 2 + strspn(bytes + 2, " \t");
        interpreter[strcspn(interpreter, " \t\n")] = 0;
        fd = opened(interpreter);
    }
    return TAKES;
}

/* A name without a slash is searched as by execvp; writes its path to `path`. */
static enum verdict verdict_of(const char *name, int is_searched, char *path)
{
    const size_t length = strnlen(name, PATH_BYTES);
    if (length >= PATH_BYTES)
        return UNKNOWN;
    memcpy(path, name, length + 1);
    if (!is_searched || strchr(name, '/') != NULL)
        return verdict_of_file(opened(path));
    const char *folder = getenv("PATH");
    if (folder == NULL)
        folder = "/bin:/usr/bin";
    for (;;) {
        const size_t part = strcspn(folder, ":");
        if (part + length + 2 <= PATH_BYTES) {
            memcpy(path, folder, part);
            path[part] = '/';
            memcpy(path + part + (part > 0), name, length + 1);
            const int fd = opened(path);
            if (fd >= 0)
                return verdict_of_file(fd);
        }
        if (folder[part] == 0)
            return UNKNOWN;
        folder += part + 1;
    }
}

/* ---- its environment ------------------------------------------------------------------------ */

/* Length of the entry at `list` of LD_PRELOAD. */
static size_t entry_length(const char *list)
{
    return strcspn(list, " :");
}

static int is_ours(const char *entry, size_t length)
{
    const size_t own = sizeof library_name - 1;
    return length >= own && memcmp(entry + length - own, library_name, own) == 0 &&
           (length == own || entry[length - own - 1] == '/');
}

/* This library's entry of the list; NULL if there is none. */
static const char *our_entry(const char *list)
{
    while (*list != 0) {
        const size_t length = entry_length(list);
        if (is_ours(list, length))
            return list;
        list += length + (list[length] != 0);
    }
    return NULL;
}

static const char preload_key[] = "LD_PRELOAD=";

struct environment {
    char *const *variables;
    size_t count; /* of all variables; VARIABLES_MAX + 1 if there are more */
    size_t place; /* of LD_PRELOAD */
    const char *list; /* its value, if this library is in it */
    const char *request; /* value of LATERALIS_RECORD; NULL: unset */
};

static struct environment look(char *const variables[])
{
    static const char request_key[] = "LATERALIS_RECORD=";
    struct environment found = {variables, 0, 0, NULL, NULL};
    for (; variables != NULL && variables[found.count] != NULL; found.count++) {
        if (found.count > VARIABLES_MAX)
            break;
        const char *variable = variables[found.count];
        if (found.list == NULL && begins(variable, preload_key) &&
            our_entry(variable + sizeof preload_key - 1) != NULL) {
            found.place = found.count;
            found.list = variable + sizeof preload_key - 1;
        } else if (begins(variable, request_key)) {
            found.request = variable + sizeof request_key - 1;
        }
    }
    return found;
}

/* Copies the variables without this library's entry to `copy`, and the rest of LD_PRELOAD to `text`. */
static void copy_without(const struct environment *from, char **copy, char *text)
{
    char *end = text + sizeof preload_key - 1;
    memcpy(text, preload_key, sizeof preload_key);
    for (const char *list = from->list; *list != 0;) {
        const size_t length = entry_length(list);
        if (length > 0 && !is_ours(list, length)) {
            if (end != text + sizeof preload_key - 1)
                *end++ = ':';
            memcpy(end, list, length);
            end += length;
        }
        list += length + (list[length] != 0);
    }
    *end = 0;
    size_t used = 0;
    for (size_t i = 0; i < from->count; i++) {
        if (i != from->place)
            copy[used++] = from->variables[i];
        else if (end != text + sizeof preload_key - 1)
            copy[used++] = text;
    }
    copy[used] = NULL;
}

/* Whether the program that starts now must not get the library. Counts programs that will not be recorded.
 * `path`: room of PATH_BYTES; if `fd` is not -1 it is the program. `takes`: it should be recorded. */
static int must_go(const char *name, int is_searched, int fd, const struct environment *of, char *path,
                   int *takes)
{
    *takes = 0;
    if (!preload_starts_are_counted() && of->list == NULL)
        return 0;
    const int saved_errno = errno;
    enum verdict verdict;
    if (fd >= 0) {
        memcpy(path, "(a descriptor)", 15);
        verdict = verdict_of_file((int)syscall(SYS_dup, fd));
    } else {
        verdict = verdict_of(name, is_searched, path);
    }
    if (verdict == SANITIZER && of->list != NULL) {
        const char *sanitizer = strstr(of->list, "asan");
        /* Its library is already first. */
        if (sanitizer != NULL && sanitizer < our_entry(of->list))
            verdict = TAKES;
    }
    int goes = verdict == OTHER_MACHINE || verdict == SANITIZER;
    /* With another C library $LIB resolves to no file, which that library ignores. */
    if (verdict == OTHER_LIBRARY && of->list != NULL)
        goes = strchr(of->list, '$') == NULL;
    if (verdict == TAKES) {
        const int own = of->list == NULL || library_path == NULL ? -1 : opened(library_path);
        if (of->list == NULL)
            verdict = CLEARED;
        else if (own < 0 && library_path != NULL && errno != EMFILE && errno != ENFILE)
            verdict = OUT_OF_REACH, goes = 1;
        if (own >= 0)
            syscall(SYS_close, own);
        if (verdict == TAKES && preload_starts_are_counted() && !preload_is_of_session(of->request))
            verdict = of->request == NULL ? CLEARED : OTHER_RECORDER;
    }
    *takes = verdict == TAKES;
    if (verdict != TAKES && verdict != UNKNOWN)
        preload_not_recorded((char)verdict, path);
    errno = saved_errno;
    return goes && of->list != NULL && of->count <= VARIABLES_MAX;
}

/* ---- the functions -------------------------------------------------------------------------- */

/* Makes `used` the environment of the program. A macro, because the copy is in the caller's frame. */
#define CHOOSE_ENVIRONMENT(name, is_searched, fd, variables)                                     \
    const struct environment of = look(variables);                                               \
    char path_of_it[PATH_BYTES];                                                                 \
    int takes;                                                                                   \
    const int goes = must_go(name, is_searched, fd, &of, path_of_it, &takes);                    \
    char *copy[goes ? of.count + 1 : 1];                                                         \
    char text[goes ? sizeof preload_key + strlen(of.list) : 1];                                  \
    if (goes)                                                                                    \
        copy_without(&of, copy, text);                                                           \
    char *const *const used = goes ? copy : (char *const *)(variables)

/* Executes the program that was examined. */
#define BECOME(call)                                                                             \
    do {                                                                                         \
        struct preload_start *const start = takes ? preload_starts(path_of_it) : NULL;           \
        const int result = call;                                                                 \
        preload_start_failed(start);                                                             \
        return result;                                                                           \
    } while (0)

PRELOAD_EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    CHOOSE_ENVIRONMENT(path, 0, -1, envp);
    BECOME(REAL(execve)(path, argv, used));
}

PRELOAD_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    CHOOSE_ENVIRONMENT(file, 1, -1, envp);
    BECOME(REAL(execvpe)(file, argv, used));
}

PRELOAD_EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

PRELOAD_EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

PRELOAD_EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    CHOOSE_ENVIRONMENT("", 0, fd, envp);
    BECOME(REAL(fexecve)(fd, argv, used));
}

PRELOAD_EXPORT int execveat(int at, const char *path, char *const argv[], char *const envp[],
                            int flags)
{
    const int is_path = path[0] == '/' || at == AT_FDCWD;
    if (!is_path && path[0] != 0)
        return REAL(execveat)(at, path, argv, envp, flags);
    CHOOSE_ENVIRONMENT(path, 0, is_path ? -1 : at, envp);
    BECOME(REAL(execveat)(at, path, argv, used, flags));
}

PRELOAD_EXPORT int posix_spawn(pid_t *pid, const char *path,
                               const posix_spawn_file_actions_t *actions,
                               const posix_spawnattr_t *attributes, char *const argv[],
                               char *const envp[])
{
    CHOOSE_ENVIRONMENT(path, 0, -1, envp);
    pid_t child = 0;
    const int error = REAL(posix_spawn)(&child, path, actions, attributes, argv, used);
    if (error == 0 && pid != NULL)
        *pid = child;
    if (error == 0 && takes)
        preload_started(child, path_of_it);
    return error;
}

PRELOAD_EXPORT int posix_spawnp(pid_t *pid, const char *file,
                                const posix_spawn_file_actions_t *actions,
                                const posix_spawnattr_t *attributes, char *const argv[],
                                char *const envp[])
{
    CHOOSE_ENVIRONMENT(file, 1, -1, envp);
    pid_t child = 0;
    const int error = REAL(posix_spawnp)(&child, file, actions, attributes, argv, used);
    if (error == 0 && pid != NULL)
        *pid = child;
    if (error == 0 && takes)
        preload_started(child, path_of_it);
    return error;
}

/* The words of a list that ends with NULL, and the argument after it. */
#define COUNT_WORDS(first)                                                                       \
    va_list list;                                                                                \
    size_t count = 1;                                                                            \
    va_start(list, first);                                                                       \
    while (va_arg(list, char *) != NULL)                                                         \
        count++;                                                                                 \
    va_end(list);                                                                                \
    char *words[count + 1];                                                                      \
    words[0] = (char *)(uintptr_t)(first);                                                       \
    va_start(list, first);                                                                       \
    for (size_t i = 1; i <= count; i++)                                                          \
        words[i] = va_arg(list, char *)

PRELOAD_EXPORT int execl(const char *path, const char *word, ...)
{
    COUNT_WORDS(word);
    va_end(list);
    return execve(path, words, environ);
}

PRELOAD_EXPORT int execlp(const char *file, const char *word, ...)
{
    COUNT_WORDS(word);
    va_end(list);
    return execvpe(file, words, environ);
}

PRELOAD_EXPORT int execle(const char *path, const char *word, ...)
{
    COUNT_WORDS(word);
    char *const *variables = va_arg(list, char *const *);
    va_end(list);
    return execve(path, words, variables);
}
