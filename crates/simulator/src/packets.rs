// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Kinds of packets to generate, in the syntax of perf's event `intel_pt/…/`.

use std::fmt;
use std::str::FromStr;

use lateralis_intelpt::encoder::{Clock, Settings};
use lateralis_perfdata::perf::write::IntelPt;

/// Model of the processor: one cycle per instruction, at 1 GHz, with a crystal of 25 MHz.
const TSC_PER_CRYSTAL: (u32, u32) = (40, 1);
const TSC_PER_BUS: u8 = 10;
/// Largest `mtc_period` and `psb_period`: four bits each [SDM volume 3, IA32_RTIT_CTL].
const PERIOD_MAX: u8 = 15;
/// Bytes between two PSBs with `psb_period=0` [SDM volume 3, IA32_RTIT_CTL.PSBFreq].
const PSB_BYTES: usize = 2048;

/// Time packets, and encoding of branches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packets {
    /// An MTC packet is generated whenever this number of low bits of the crystal clock are 0; `None`:
    /// never.
    pub mtc_period: Option<u8>,
    /// CYC packets are generated once this number of cycles has passed since the last one; `None`: never.
    pub cycle_threshold: Option<u64>,
    /// Exponent of the PSB interval: 2048 bytes for 0, doubled for each step.
    pub psb_period: u8,
    /// Whether a return to the address after the matching call is one bit.
    pub return_compression: bool,
}

impl Default for Packets {
    fn default() -> Self {
        // The defaults of perf.
        Self { mtc_period: Some(3), cycle_threshold: None, psb_period: 0, return_compression: true }
    }
}

impl Packets {
    /// Settings of the encoder.
    #[must_use]
    pub fn settings(self) -> Settings {
        let clock = Clock {
            mtc_frequency: self.mtc_period,
            tsc_per_crystal: TSC_PER_CRYSTAL,
            tsc_per_bus: TSC_PER_BUS,
            cycle_threshold: self.cycle_threshold,
        };
        Settings {
            return_compression: self.return_compression,
            psb_bytes: PSB_BYTES << self.psb_period.min(PERIOD_MAX),
            clock: Some(clock),
            ..Settings::default()
        }
    }

    /// Description in a `perf.data`; `nanos`, `kernel` and `per_cpu` as in [`IntelPt`].
    #[must_use]
    pub fn description(self, nanos: (u64, u16, u32), kernel: bool, per_cpu: bool) -> IntelPt {
        IntelPt {
            mtc_frequency: self.mtc_period,
            cycles: self.cycle_threshold.is_some(),
            psb_frequency: self.psb_period,
            return_compression: self.return_compression,
            tsc_per_crystal: TSC_PER_CRYSTAL,
            tsc_per_bus: TSC_PER_BUS,
            nanos,
            kernel,
            per_cpu,
        }
    }
}

/// An unknown term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownTerm(String);

impl fmt::Display for UnknownTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is none of cyc, cyc_thresh=0 to 15, mtc=0, mtc_period=0 to 15, psb_period=0 to 15, \
             noretcomp",
            self.0
        )
    }
}

impl std::error::Error for UnknownTerm {}

impl FromStr for Packets {
    type Err = UnknownTerm;

    /// Parses terms separated by commas, as in `intel_pt/cyc,mtc_period=9,noretcomp/`.
    fn from_str(text: &str) -> Result<Self, UnknownTerm> {
        let mut packets = Self::default();
        for term in text.split(',').filter(|term| !term.is_empty()) {
            let unknown = || UnknownTerm(term.to_owned());
            let (name, value) = term.split_once('=').unwrap_or((term, "1"));
            let value: u8 = value.parse().map_err(|_| unknown())?;
            match (name, value) {
                ("cyc", 0) => packets.cycle_threshold = None,
                ("cyc", 1) => packets.cycle_threshold = packets.cycle_threshold.or(Some(0)),
                // 0 is every packet, n means 2^(n-1) cycles [SDM volume 3, IA32_RTIT_CTL.CycThresh].
                ("cyc_thresh", 0..=PERIOD_MAX) => {
                    packets.cycle_threshold = Some((1 << value) >> 1);
                }
                ("mtc", 0) => packets.mtc_period = None,
                ("mtc", 1) => {
                    packets.mtc_period = packets.mtc_period.or(Self::default().mtc_period);
                }
                ("mtc_period", 0..=PERIOD_MAX) => packets.mtc_period = Some(value),
                ("psb_period", 0..=PERIOD_MAX) => packets.psb_period = value,
                ("noretcomp", 0 | 1) => packets.return_compression = value == 0,
                _ => return Err(unknown()),
            }
        }
        Ok(packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_those_of_perf() {
        let of = |text: &str| text.parse::<Packets>();
        assert_eq!(of(""), Ok(Packets::default()));
        let fine = Packets {
            mtc_period: Some(0),
            cycle_threshold: Some(0),
            psb_period: 3,
            return_compression: false,
        };
        assert_eq!(of("cyc,mtc_period=0,psb_period=3,noretcomp"), Ok(fine));
        assert_eq!(fine.settings().psb_bytes, 16 << 10);
        assert_eq!(of("cyc_thresh=4").map(|of| of.cycle_threshold), Ok(Some(8)));
        assert_eq!(of("mtc=0").map(|of| of.mtc_period), Ok(None));
        for bad in ["mtc_period=16", "cyc=2", "mtc_period=", "ptw", "psb_period=-1", "=", "mtc=0=1"]
        {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
