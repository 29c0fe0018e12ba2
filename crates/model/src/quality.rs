// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How far a derived number can be trusted.

use std::fmt;

/// How far a number computed from events can be trusted, given what was lost. The order is
/// from the best to the worst, so the quality of a sum is the maximum of its parts'.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Quality {
    /// Nothing is missing where it was computed: putting lost events back would not change it.
    #[default]
    Exact,
    /// Events are missing, and with them it could only be larger.
    LowerBound,
    /// Events are missing, and with them it could be anything.
    Unknown,
}

impl Quality {
    /// The worse of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }

    /// The word used in tables and JSON: `exact`, `lower_bound`, `unknown`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LowerBound => "lower_bound",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
