// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The JSON documents of all commands begin with their version.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// Version of all JSON documents of the commands, their key `version`: a new one where a key gets another
/// meaning or goes away. New keys may come at any time.
pub const JSON_VERSION: u32 = 1;

/// A document with its version in front.
pub struct Versioned<'a>(pub &'a Value);

impl Serialize for Versioned<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(entries) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(entries.len() + 1))?;
        map.serialize_entry("version", &JSON_VERSION)?;
        for (key, value) in entries {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// Members with their version in front.
pub struct VersionedMembers<'a, T>(pub &'a BTreeMap<String, T>);

impl<T: Serialize> Serialize for VersionedMembers<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len() + 1))?;
        map.serialize_entry("version", &JSON_VERSION)?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}
