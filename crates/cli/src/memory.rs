// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Default limit of the memory for a trace.

use std::fs;

/// Lower limit, in bytes: small traces must open even if memory is scarce.
const LEAST: u64 = 64 << 20;
/// Upper limit, in bytes.
const MOST: u64 = 8 << 30;

/// Returns a quarter of the memory that is available to this process, in bytes.
pub fn share() -> u64 {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let group = read("/proc/self/cgroup");
    let group = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or("/").trim();
    let of_group = |name: &str| read(&format!("/sys/fs/cgroup{group}/{name}"));
    quarter(&read("/proc/meminfo"), &of_group("memory.max"), &of_group("memory.current"))
}

/// `limit` is `max` or empty where the control group has none.
fn quarter(meminfo: &str, limit: &str, used: &str) -> u64 {
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = available.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    let machine = kib.map_or(MOST, |kib| kib.saturating_mul(1024));
    let used = used.trim().parse::<u64>().unwrap_or(0);
    let group = limit.trim().parse::<u64>().map_or(u64::MAX, |limit| limit.saturating_sub(used));
    (machine.min(group) / 4).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_machine_and_group_counts() {
        let meminfo = "MemTotal:       24 kB\nMemAvailable:   4194304 kB\n";
        assert_eq!(quarter(meminfo, "max", "77"), 1 << 30);
        assert_eq!(quarter(meminfo, "1073741824", "536870912"), 128 << 20);
        assert_eq!(quarter(meminfo, "1000", "5000"), LEAST);
        assert_eq!(quarter("", "", ""), MOST / 4);
        assert_eq!(quarter("MemAvailable: 99999999999999999999 kB", "", ""), MOST / 4);
    }
}
