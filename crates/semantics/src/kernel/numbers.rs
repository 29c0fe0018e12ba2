// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Names of error numbers and of system calls by number. The numbers are part of Linux's user-space ABI,
//! which does not change.

/// Calls of x86-64 [arch/x86/entry/syscalls/syscall_64.tbl]; `@N`: the next has this number.
static X86_64: &str = "\
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk rt_sigaction \
    rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev access pipe select sched_yield \
    mremap msync mincore madvise shmget shmat shmctl dup dup2 pause nanosleep getitimer alarm \
    setitimer getpid sendfile socket connect accept sendto recvfrom sendmsg recvmsg shutdown bind \
    listen getsockname getpeername socketpair setsockopt getsockopt clone fork vfork execve exit \
    wait4 kill uname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock fsync \
    fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir creat link unlink \
    symlink readlink chmod fchmod chown fchown lchown umask gettimeofday getrlimit getrusage \
    sysinfo times ptrace getuid syslog getgid setuid setgid geteuid getegid setpgid getppid getpgrp \
    setsid setreuid setregid getgroups setgroups setresuid getresuid setresgid getresgid getpgid \
    setfsuid setfsgid getsid capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
    rt_sigsuspend sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs getpriority \
    setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler \
    sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock mlockall \
    munlockall vhangup modify_ldt pivot_root _sysctl prctl arch_prctl adjtimex setrlimit chroot \
    sync acct settimeofday mount umount2 swapon swapoff reboot sethostname setdomainname iopl \
    ioperm create_module init_module delete_module get_kernel_syms query_module quotactl nfsservctl \
    getpmsg putpmsg afs_syscall tuxcall security gettid readahead setxattr lsetxattr fsetxattr \
    getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr \
    fremovexattr tkill time futex sched_setaffinity sched_getaffinity set_thread_area io_setup \
    io_destroy io_getevents io_submit io_cancel get_thread_area lookup_dcookie epoll_create \
    epoll_ctl_old epoll_wait_old remap_file_pages getdents64 set_tid_address restart_syscall \
    semtimedop fadvise64 timer_create timer_settime timer_gettime timer_getoverrun timer_delete \
    clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl tgkill \
    utimes vserver mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive \
    mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set ioprio_get \
    inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat mkdirat mknodat fchownat \
    futimesat newfstatat unlinkat renameat linkat symlinkat readlinkat fchmodat faccessat pselect6 \
    ppoll unshare set_robust_list get_robust_list splice tee sync_file_range vmsplice move_pages \
    utimensat epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime timerfd_gettime \
    accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 preadv pwritev \
    rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init fanotify_mark prlimit64 \
    name_to_handle_at open_by_handle_at clock_adjtime syncfs sendmmsg setns getcpu process_vm_readv \
    process_vm_writev kcmp finit_module sched_setattr sched_getattr renameat2 seccomp getrandom \
    memfd_create kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 \
    pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq @424 pidfd_send_signal \
    io_uring_setup io_uring_enter io_uring_register open_tree move_mount fsopen fsconfig fsmount \
    fspick pidfd_open clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise \
    epoll_pwait2 mount_setattr quotactl_fd landlock_create_ruleset landlock_add_rule \
    landlock_restrict_self memfd_secret process_mrelease futex_waitv set_mempolicy_home_node";

/// Calls of architectures without a table of their own [include/uapi/asm-generic/unistd.h].
static GENERIC: &str = "\
    io_setup io_destroy io_submit io_cancel io_getevents setxattr lsetxattr fsetxattr getxattr \
    lgetxattr fgetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr \
    getcwd lookup_dcookie eventfd2 epoll_create1 epoll_ctl epoll_pwait dup dup3 fcntl inotify_init1 \
    inotify_add_watch inotify_rm_watch ioctl ioprio_set ioprio_get flock mknodat mkdirat unlinkat \
    symlinkat linkat renameat umount2 mount pivot_root nfsservctl statfs fstatfs truncate ftruncate \
    fallocate faccessat chdir fchdir chroot fchmod fchmodat fchownat fchown openat close vhangup \
    pipe2 quotactl getdents64 lseek read write readv writev pread64 pwrite64 preadv pwritev \
    sendfile pselect6 ppoll signalfd4 vmsplice splice tee readlinkat newfstatat fstat sync fsync \
    fdatasync sync_file_range timerfd_create timerfd_settime timerfd_gettime utimensat acct capget \
    capset personality exit exit_group waitid set_tid_address unshare futex set_robust_list \
    get_robust_list nanosleep getitimer setitimer kexec_load init_module delete_module timer_create \
    timer_gettime timer_getoverrun timer_settime timer_delete clock_settime clock_gettime \
    clock_getres clock_nanosleep syslog ptrace sched_setparam sched_setscheduler sched_getscheduler \
    sched_getparam sched_setaffinity sched_getaffinity sched_yield sched_get_priority_max \
    sched_get_priority_min sched_rr_get_interval restart_syscall kill tkill tgkill sigaltstack \
    rt_sigsuspend rt_sigaction rt_sigprocmask rt_sigpending rt_sigtimedwait rt_sigqueueinfo \
    rt_sigreturn setpriority getpriority reboot setregid setgid setreuid setuid setresuid getresuid \
    setresgid getresgid setfsuid setfsgid times setpgid getpgid getsid setsid getgroups setgroups \
    uname sethostname setdomainname getrlimit setrlimit getrusage umask prctl getcpu gettimeofday \
    settimeofday adjtimex getpid getppid getuid geteuid getgid getegid gettid sysinfo mq_open \
    mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr msgget msgctl msgrcv msgsnd \
    semget semctl semtimedop semop shmget shmctl shmat shmdt socket socketpair bind listen accept \
    connect getsockname getpeername sendto recvfrom setsockopt getsockopt shutdown sendmsg recvmsg \
    readahead brk munmap mremap add_key request_key keyctl clone execve mmap fadvise64 swapon \
    swapoff mprotect msync mlock munlock mlockall munlockall mincore madvise remap_file_pages mbind \
    get_mempolicy set_mempolicy migrate_pages move_pages rt_tgsigqueueinfo perf_event_open accept4 \
    recvmmsg @260 wait4 prlimit64 fanotify_init fanotify_mark name_to_handle_at open_by_handle_at \
    clock_adjtime syncfs setns sendmmsg process_vm_readv process_vm_writev kcmp finit_module \
    sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create bpf execveat userfaultfd \
    membarrier mlock2 copy_file_range preadv2 pwritev2 pkey_mprotect pkey_alloc pkey_free statx \
    io_pgetevents rseq kexec_file_load @424 pidfd_send_signal io_uring_setup io_uring_enter \
    io_uring_register open_tree move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 \
    close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr \
    quotactl_fd landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret \
    process_mrelease futex_waitv set_mempolicy_home_node";

/// Error numbers [include/uapi/asm-generic/errno.h, include/linux/errno.h].
static ERRORS: &str = "\
    @1 EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT \
    ENOTBLK EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG \
    ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP \
    @42 ENOMSG EIDRM ECHRNG EL2NSYNC EL3HLT EL3RST ELNRNG EUNATCH ENOCSI EL2HLT EBADE EBADR EXFULL \
    ENOANO EBADRQC EBADSLT @59 EBFONT ENOSTR ENODATA ETIME ENOSR ENONET ENOPKG EREMOTE ENOLINK EADV \
    ESRMNT ECOMM EPROTO EMULTIHOP EDOTDOT EBADMSG EOVERFLOW ENOTUNIQ EBADFD EREMCHG ELIBACC ELIBBAD \
    ELIBSCN ELIBMAX ELIBEXEC EILSEQ ERESTART ESTRPIPE EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE \
    EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP EPFNOSUPPORT EAFNOSUPPORT \
    EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET ENOBUFS EISCONN \
    ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY \
    EINPROGRESS ESTALE EUCLEAN ENOTNAM ENAVAIL EISNAM EREMOTEIO EDQUOT ENOMEDIUM EMEDIUMTYPE \
    ECANCELED ENOKEY EKEYEXPIRED EKEYREVOKED EKEYREJECTED EOWNERDEAD ENOTRECOVERABLE ERFKILL \
    EHWPOISON @512 ERESTARTSYS ERESTARTNOINTR ERESTARTNOHAND ENOIOCTLCMD ERESTART_RESTARTBLOCK \
    EPROBE_DEFER EOPENSTALE ENOPARAM @521 EBADHANDLE ENOTSYNC EBADCOOKIE ENOTSUPP ETOOSMALL \
    ESERVERFAULT EBADTYPE EJUKEBOX EIOCBQUEUED ERECALLCONFLICT";

/// Architectures with different error numbers, for which there is no table here.
const OTHER_ERRORS: [&str; 7] =
    ["alpha", "mips", "mips64", "parisc", "parisc64", "sparc", "sparc64"];

/// Name of an error; `None` if unknown.
#[must_use]
pub fn error_name(number: u32) -> Option<&'static str> {
    entry(ERRORS, number)
}

/// Whether error numbers of the architecture are those that [`error_name`] knows.
pub fn has_generic_errors(architecture: Option<&str>) -> bool {
    architecture.is_none_or(|of| !OTHER_ERRORS.contains(&of))
}

/// Name of a system call of an architecture; `None` if the architecture or the number is unknown.
pub fn call_name(architecture: Option<&str>, number: u32) -> Option<&'static str> {
    match architecture? {
        "x86_64" => entry(X86_64, number),
        "aarch64" | "riscv64" | "loongarch64" => entry(GENERIC, number),
        _ => None,
    }
}

fn entry(table: &'static str, wanted: u32) -> Option<&'static str> {
    let mut number = 0;
    for word in table.split_ascii_whitespace() {
        if let Some(next) = word.strip_prefix('@') {
            number = next.parse().ok()?;
        } else if number == wanted {
            return Some(word);
        } else {
            number += 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernel() {
        // From include/uapi/asm-generic/errno.h, syscall_64.tbl, include/uapi/asm-generic/unistd.h.
        let errors =
            [(1, "EPERM"), (2, "ENOENT"), (11, "EAGAIN"), (110, "ETIMEDOUT"), (512, "ERESTARTSYS")];
        for (number, name) in errors {
            assert_eq!(error_name(number), Some(name));
        }
        assert_eq!((error_name(0), error_name(41), error_name(4096)), (None, None, None));
        let x86 = |number| call_name(Some("x86_64"), number);
        assert_eq!((x86(0), x86(257), x86(334)), (Some("read"), Some("openat"), Some("rseq")));
        assert_eq!((x86(335), x86(424)), (None, Some("pidfd_send_signal")));
        let arm = |number| call_name(Some("aarch64"), number);
        assert_eq!(
            (arm(63), arm(64), arm(93), arm(222)),
            (Some("read"), Some("write"), Some("exit"), Some("mmap"))
        );
        assert_eq!((call_name(None, 0), call_name(Some("s390x"), 1)), (None, None));
        assert!(has_generic_errors(None) && !has_generic_errors(Some("mips")));
    }
}
