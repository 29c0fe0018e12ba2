// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parameters of a request, which are untrusted.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::answer::Problem;

/// Limit of numbers in a list.
const LIST_MAX: usize = 100_000;
/// Limit of pixels of a picture.
pub const PX_MAX: u32 = 1 << 14;

/// The parameters of a request.
#[derive(Clone, Copy)]
pub struct Params<'a>(pub &'a Value);

impl<'a> Params<'a> {
    /// Returns a parameter, if present and not null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn wrong(name: &str, wanted: &str) -> Problem {
        Problem::new("cannot read the request", name, format!("expected {wanted}"))
    }

    /// A time, rounded down to whole nanoseconds.
    ///
    /// # Errors
    /// If it is missing or not a number.
    pub fn time(&self, name: &str) -> Result<i64, Problem> {
        self.time_or(name, None)?.ok_or_else(|| Self::wrong(name, "a time in nanoseconds"))
    }

    /// A time, or `other` if it is missing.
    ///
    /// # Errors
    /// If it is present and not a number.
    pub fn time_or(&self, name: &str, other: Option<i64>) -> Result<Option<i64>, Problem> {
        let Some(value) = self.get(name) else { return Ok(other) };
        let number = value.as_f64().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| Self::wrong(name, "a time in nanoseconds"))?;
        // The cast saturates.
        Ok(Some(number.floor() as i64))
    }

    /// A non-negative integer, or `other` if it is missing.
    ///
    /// # Errors
    /// If it is present and not such a number.
    pub fn count(&self, name: &str, other: u64) -> Result<u64, Problem> {
        let Some(value) = self.get(name) else { return Ok(other) };
        let whole = || value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64);
        value.as_u64().or_else(whole).ok_or_else(|| Self::wrong(name, "a whole number"))
    }

    /// A required 32-bit number.
    ///
    /// # Errors
    /// If it is missing or not such a number.
    pub fn id(&self, name: &str) -> Result<u32, Problem> {
        let number = self.get(name).and_then(Value::as_u64);
        let number = number.and_then(|number| u32::try_from(number).ok());
        number.ok_or_else(|| Self::wrong(name, "a number"))
    }

    /// Width of a picture in pixels.
    ///
    /// # Errors
    /// If it is missing, 0 or too large.
    pub fn px(&self) -> Result<u32, Problem> {
        let px = self.id("px")?;
        let is_good = (1..=PX_MAX).contains(&px);
        is_good.then_some(px).ok_or_else(|| Self::wrong("px", &format!("1 to {PX_MAX} pixels")))
    }

    /// A list of numbers; empty if it is missing.
    ///
    /// # Errors
    /// If it is present and not such a list, or too long.
    pub fn ids(&self, name: &str) -> Result<Vec<u32>, Problem> {
        let wrong = || Self::wrong(name, "a list of numbers");
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let list = value.as_array().filter(|list| list.len() <= LIST_MAX).ok_or_else(wrong)?;
        let number = |value: &Value| value.as_u64().and_then(|n| u32::try_from(n).ok());
        list.iter().map(|value| number(value).ok_or_else(wrong)).collect()
    }

    /// A list of numbers as a set.
    ///
    /// # Errors
    /// As [`Params::ids`].
    pub fn set(&self, name: &str) -> Result<BTreeSet<u32>, Problem> {
        Ok(self.ids(name)?.into_iter().collect())
    }

    /// A required string.
    ///
    /// # Errors
    /// If it is missing or not a string.
    pub fn text(&self, name: &str) -> Result<&'a str, Problem> {
        self.get(name).and_then(Value::as_str).ok_or_else(|| Self::wrong(name, "a text"))
    }

    /// A Boolean; false if it is missing.
    #[must_use]
    pub fn is(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }
}
