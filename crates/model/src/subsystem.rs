// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subsystem of an event class, which is part of its name.

/// Prefixes of kernel events in LTTng traces, whose names have no subsystem, and the subsystem of the same
/// events in ftrace and perf: `sched_switch` is their `sched:sched_switch`. [lttng-modules, instrumentation/]
const KERNEL_PREFIXES: [(&str, &str); 51] = [
    ("asoc", "asoc"),
    ("block", "block"),
    ("btrfs", "btrfs"),
    ("compat_syscall", "syscalls"),
    ("console", "printk"),
    ("ext3", "ext3"),
    ("ext4", "ext4"),
    ("gpio", "gpio"),
    ("hrtimer", "timer"),
    ("i2c", "i2c"),
    ("irq", "irq"),
    ("itimer", "timer"),
    ("jbd2", "jbd2"),
    ("jbd", "jbd"),
    ("kmem", "kmem"),
    ("kvm", "kvm"),
    ("lock", "lock"),
    ("lttng", "lttng"),
    ("mm_compaction", "compaction"),
    ("mm_page", "kmem"),
    ("mm_vmscan", "vmscan"),
    ("module", "module"),
    ("napi", "napi"),
    ("net", "net"),
    ("netif", "net"),
    ("power", "power"),
    ("printk", "printk"),
    ("random", "random"),
    ("rcu", "rcu"),
    ("regmap", "regmap"),
    ("regulator", "regulator"),
    ("rpc", "sunrpc"),
    ("rpm", "rpm"),
    ("sched", "sched"),
    ("scsi", "scsi"),
    ("signal", "signal"),
    ("skb", "skb"),
    ("snd", "asoc"),
    ("sock", "sock"),
    ("softirq", "irq"),
    ("sunrpc", "sunrpc"),
    ("syscall_entry", "syscalls"),
    ("syscall_exit", "syscalls"),
    ("timer", "timer"),
    ("udp", "udp"),
    ("v4l2", "v4l2"),
    ("vb2", "vb2"),
    ("workqueue", "workqueue"),
    ("writeback", "writeback"),
    ("x86_exceptions", "exceptions"),
    ("x86_irq_vectors", "irq_vectors"),
];

/// Splits the name of an event class, `SUBSYSTEM:EVENT`, into its parts. A name without a colon is the event;
/// its subsystem follows from the prefix if kernel events have it, and is empty otherwise.
#[must_use]
pub fn subsystem_and_event(class_name: &str) -> (&str, &str) {
    if let Some(parts) = class_name.split_once(':') {
        return parts;
    }
    let has = |prefix: &str| {
        class_name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    };
    let known = KERNEL_PREFIXES.iter().find(|(prefix, _)| has(prefix));
    (known.map_or("", |(_, subsystem)| subsystem), class_name)
}

#[cfg(test)]
mod tests {
    use super::subsystem_and_event;

    #[test]
    fn the_subsystem_is_in_front_of_the_colon_or_that_of_the_kernel() {
        for (name, expected) in [
            ("sched:sched_switch", ("sched", "sched_switch")),
            ("sched_switch", ("sched", "sched_switch")),
            ("softirq_raise", ("irq", "softirq_raise")),
            ("syscall_entry_openat", ("syscalls", "syscall_entry_openat")),
            ("mm_page_alloc", ("kmem", "mm_page_alloc")),
            ("schedule", ("", "schedule")),
            ("syscall", ("", "syscall")),
            ("my_event", ("", "my_event")),
            ("", ("", "")),
            (":x", ("", "x")),
        ] {
            assert_eq!(subsystem_and_event(name), expected, "{name}");
        }
    }
}
