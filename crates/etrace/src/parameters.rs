// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Discovered parameters of a trace encoder, and its run-time options.

use core::fmt;

/// Parameters of an encoder (specification, "Discovery of encoder parameters"). They determine the
/// widths of all fields. The defaults are those of the table "Required instruction trace attributes",
/// with compressed instructions and two bits of privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// `iaddress_width_p`: bits of an address, at most 64.
    pub address_width: u8,
    /// `iaddress_lsb_p`: low bits of an address that are not sent; 1 with compressed instructions.
    pub address_lsb: u8,
    /// `privilege_width_p`, at most 8.
    pub privilege_width: u8,
    /// `time_width_p`, at most 64; 0 if `notime_p` is set.
    pub time_width: u8,
    /// `context_width_p`, at most 64; 0 if `nocontext_p` is set.
    pub context_width: u8,
    /// `ecause_width_p`, at most 64.
    pub cause_width: u8,
    /// `return_stack_size_p`: base-two logarithm of the return stack's size, 0 if there is none.
    pub return_stack_size: u8,
    /// `call_counter_size_p`: width of the nested call counter, 0 if there is none.
    pub call_counter_size: u8,
    /// `bpred_size_p`: base-two logarithm of the branch predictor's size, 0 if there is none.
    pub predictor_size: u8,
    /// `cache_size_p`: base-two logarithm of the jump target cache's size, 0 if there is none.
    pub cache_size: u8,
    /// `f0s_width_p`: bits of the subformat of format 0, at most 8.
    pub format0_width: u8,
    /// `sijump_p`: targets of sequentially inferable jumps are not reported.
    pub sequential_jumps: bool,
    /// Bits of `encoder_mode`, at most 8; the specification leaves them to the implementation.
    pub mode_width: u8,
    /// Bits of `ioptions`, at most 64; the specification leaves them to the implementation.
    pub options_width: u8,
    /// Bits of `doptions`, at most 64; the specification leaves them to the implementation.
    pub data_options_width: u8,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            address_width: 32,
            address_lsb: 1,
            privilege_width: 2,
            time_width: 0,
            context_width: 0,
            cause_width: 4,
            return_stack_size: 0,
            call_counter_size: 0,
            predictor_size: 0,
            cache_size: 0,
            format0_width: 0,
            sequential_jumps: false,
            mode_width: 1,
            options_width: 5,
            data_options_width: 4,
        }
    }
}

impl Parameters {
    /// Checks that every width is one that fields here can have.
    ///
    /// # Errors
    /// A width is out of its range.
    pub fn check(&self) -> Result<(), BadParameters> {
        let limits = [
            ("address_width", self.address_width, 2, 64),
            ("address_lsb", self.address_lsb, 0, 2),
            ("privilege_width", self.privilege_width, 1, 8),
            ("time_width", self.time_width, 0, 64),
            ("context_width", self.context_width, 0, 64),
            ("cause_width", self.cause_width, 1, 64),
            ("return_stack_size", self.return_stack_size, 0, 12),
            ("call_counter_size", self.call_counter_size, 0, 12),
            ("predictor_size", self.predictor_size, 0, 16),
            ("cache_size", self.cache_size, 0, 32),
            ("format0_width", self.format0_width, 0, 8),
            ("mode_width", self.mode_width, 0, 8),
            ("options_width", self.options_width, 0, 64),
            ("data_options_width", self.data_options_width, 0, 64),
        ];
        for (name, value, low, high) in limits {
            if value < low || value > high || name == "address_lsb" && value >= self.address_width {
                return Err(BadParameters { name, value });
            }
        }
        Ok(())
    }

    /// Bits of `irdepth` (specification, "Format 2 packets").
    pub fn depth_width(&self) -> u8 {
        let stack = self.return_stack_size + u8::from(self.return_stack_size > 0);
        stack + self.call_counter_size
    }

    /// Largest depth of the return stack (specification, chapter "Decoder", `push_return_stack`).
    pub fn depth_max(&self) -> usize {
        match (self.return_stack_size, self.call_counter_size) {
            (0, 0) => 0,
            (0, bits) | (bits, _) => 1 << bits,
        }
    }

    /// The address within its width.
    pub fn address(&self, address: u64) -> u64 {
        address & low_bits(self.address_width)
    }
}

/// A number whose `width` low bits are set.
pub(crate) fn low_bits(width: u8) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

/// A parameter is out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadParameters {
    /// Name of the field in [`Parameters`].
    pub name: &'static str,
    /// Its value.
    pub value: u8,
}

impl fmt::Display for BadParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the parameter {} cannot be {}", self.name, self.value)
    }
}

impl core::error::Error for BadParameters {}

/// Run-time options, the content of `ioptions`. The specification leaves their order to the
/// implementation; here it is the order of the reference encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Return addresses that a stack of calls predicts are not reported.
    pub implicit_return: bool,
    /// Addresses of trap handlers are not reported.
    pub implicit_exception: bool,
    /// Reported addresses are absolute instead of differences.
    pub full_address: bool,
    /// Format 0 reports entries of the jump target cache.
    pub jump_target_cache: bool,
    /// Format 0 reports counts of predicted branches.
    pub branch_prediction: bool,
}

impl Options {
    /// Reads `ioptions` in the order of the reference encoder.
    pub fn from_bits(bits: u64) -> Self {
        let set = |bit: u32| bits >> bit & 1 != 0;
        Self {
            implicit_return: set(0),
            implicit_exception: set(1),
            full_address: set(2),
            jump_target_cache: set(3),
            branch_prediction: set(4),
        }
    }

    /// Writes `ioptions` in the order of the reference encoder.
    pub fn to_bits(self) -> u64 {
        let flags = [
            self.implicit_return,
            self.implicit_exception,
            self.full_address,
            self.jump_target_cache,
            self.branch_prediction,
        ];
        flags.iter().rev().fold(0, |bits, flag| bits << 1 | u64::from(*flag))
    }

    /// Name of an option that the flow layer does not implement, if one is set.
    pub fn unsupported(self) -> Option<&'static str> {
        if self.implicit_exception {
            Some("implicit exception")
        } else if self.jump_target_cache {
            Some("jump target cache")
        } else if self.branch_prediction {
            Some("branch prediction")
        } else {
            None
        }
    }
}
