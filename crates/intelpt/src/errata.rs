// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Packets that some processors generate differently from the SDM.
//!
//! The name of an erratum is that of Intel's specification update in which it appears first. The list of
//! affected processors is that of Intel's libipt (`pt_cpu_errata` in `pt_config.c`, version 2.3).
//!
//! | erratum | what happens | what is done |
//! |---|---|---|
//! | BDM64 | a branch before an aborted transaction ends is wrong | it is taken to lead to the abort |
//! | BDM70 | PSB+ has a FUP although tracing is disabled; TIP.PGE follows | the FUP is left out |
//! | SKD007 | a CYC packet replaces the first byte of OVF | it is read as OVF |
//! | SKD010 | the FUP after OVF is missing | the flow continues at a TIP before the first TNT |
//! | SKD022 | a VM entry that disables tracing has a FUP | VMLAUNCH or VMRESUME was executed |
//! | SKL014 | TIP.PGD has no address where a branch leaves the filter | the first such branch is taken |
//! | APL12 | a FUP follows OVF although tracing is disabled | the FUP is left out |
//! | SKZ84 | TMA is wrong where a virtual machine scales time | a TMA with reserved bits set is left out |
//!
//! Two more errata of libipt's list need no workaround here: APL11 (TIP.PGD follows OVF), because TIP.PGD
//! without an address is accepted after every OVF; SKL168 (a CYC before PSB is missing), because cycles
//! move no bound of [`crate::time`].

/// The errata that are worked around; none by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the table above has them")]
pub struct Errata {
    pub bdm64: bool,
    pub bdm70: bool,
    pub skd007: bool,
    pub skd010: bool,
    pub skd022: bool,
    pub skl014: bool,
    pub apl12: bool,
    pub skz84: bool,
}

impl Errata {
    /// None.
    pub const NONE: Self = Self {
        bdm64: false,
        bdm70: false,
        skd007: false,
        skd010: false,
        skd022: false,
        skl014: false,
        apl12: false,
        skz84: false,
    };

    /// Errata of an Intel processor by its display family and display model (CPUID leaf 1), as written by
    /// perf (`GenuineIntel,6,94,3`) and `/proc/cpuinfo`. None for processors that are not in the list.
    #[must_use]
    pub fn of_processor(family: u32, model: u32) -> Self {
        let none = Self::NONE;
        match (family, model) {
            // Broadwell.
            (6, 0x3d | 0x47 | 0x4f | 0x56) => Self { bdm64: true, bdm70: true, ..none },
            // Skylake, Kaby Lake, Coffee Lake, Comet Lake: clients.
            (6, 0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6) => {
                Self { bdm70: true, skd007: true, skd010: true, skd022: true, skl014: true, ..none }
            }
            // Skylake, Cascade Lake, Ice Lake: servers.
            (6, 0x55 | 0x6a | 0x6c) => {
                Self { bdm70: true, skd022: true, skl014: true, skz84: true, ..none }
            }
            // Sapphire, Emerald and Granite Rapids, and later ones.
            (6, 0x8f | 0xcf | 0xad | 0xae) | (0x13, 0x01) => {
                Self { bdm70: true, skd022: true, skz84: true, ..none }
            }
            // Cannon Lake, Ice Lake, Tiger Lake, Rocket Lake: clients.
            (6, 0x66 | 0x7d | 0x7e | 0x8c | 0x8d | 0xa7 | 0xa8) => {
                Self { bdm70: true, skd022: true, skl014: true, ..none }
            }
            // Alder Lake and later ones: clients.
            (
                6,
                0x97 | 0x9a | 0xba | 0xb7 | 0xbf | 0xc5 | 0xc6 | 0xb5 | 0xaa | 0xac | 0xbd | 0xcc
                | 0xd5,
            )
            | (0x12, 0x01 | 0x03) => Self { bdm70: true, skd022: true, ..none },
            // Goldmont.
            (6, 0x5c | 0x5f) => Self { apl12: true, ..none },
            _ => none,
        }
    }

    /// Errata of a processor from the text that perf writes into recordings: `GenuineIntel,6,94,3`
    /// (vendor, family, model, stepping). None for other vendors and other texts.
    #[must_use]
    pub fn of_perf_cpuid(text: &str) -> Self {
        let mut parts = text.trim().split(['-', ',']);
        let is_intel = parts.next() == Some("GenuineIntel");
        let mut number = || parts.next()?.trim().parse::<u32>().ok();
        match (is_intel, number(), number()) {
            (true, Some(family), Some(model)) => Self::of_processor(family, model),
            _ => Self::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_found_by_what_perf_writes() {
        let skylake = Errata::of_perf_cpuid("GenuineIntel,6,94,3");
        assert!(skylake.skd010 && skylake.bdm70 && !skylake.bdm64 && !skylake.skz84);
        assert_eq!(skylake, Errata::of_processor(6, 0x5e));
        assert_eq!(Errata::of_perf_cpuid("GenuineIntel-6-4F-1"), Errata::default());
        assert!(Errata::of_perf_cpuid("GenuineIntel,6,79").bdm64);
        for other in
            ["", "AuthenticAMD,6,94,3", "GenuineIntel", "GenuineIntel,6", "GenuineIntel,x,94"]
        {
            assert_eq!(Errata::of_perf_cpuid(other), Errata::default(), "{other}");
        }
    }
}
