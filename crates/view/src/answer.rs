// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Responses to the page (spec/view.md §3).

use serde_json::{Value, json};

/// Reason why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What could not be done.
    pub what: String,
    /// Location of the problem: a parameter, or a line of a script.
    pub place: String,
    /// Advice to the user; may be empty.
    pub advice: String,
}

impl Problem {
    /// Creates a problem from its three parts.
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), place: place.into(), advice: advice.into() }
    }

    /// Returns the problem in the form that the page expects.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "what": self.what, "where": self.place, "do": self.advice })
    }
}

/// Values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// 8-bit integers.
    U8(Vec<u8>),
    /// 16-bit integers.
    U16(Vec<u16>),
    /// 32-bit integers.
    U32(Vec<u32>),
    /// IEEE 754 doubles.
    F64(Vec<f64>),
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::U8(all) => all.len(),
            Self::U16(all) => all.len(),
            Self::U32(all) => all.len(),
            Self::F64(all) => all.len(),
        }
    }

    fn bytes(&self) -> usize {
        self.len() * [1, 2, 4, 8][self.kind()]
    }

    fn kind(&self) -> usize {
        match self {
            Self::U8(_) => 0,
            Self::U16(_) => 1,
            Self::U32(_) => 2,
            Self::F64(_) => 3,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::U8(all) => out.extend_from_slice(all),
            Self::U16(all) => all.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
            Self::U32(all) => all.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
            Self::F64(all) => all.iter().for_each(|n| out.extend_from_slice(&n.to_le_bytes())),
        }
    }
}

/// Result of a method.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Sent as a text frame.
    Json(Value),
    /// Sent as a binary frame: a JSON result, and named columns.
    Columns(Value, Vec<(&'static str, Numbers)>),
}

/// WebSocket frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Text frame.
    Text(String),
    /// Binary frame.
    Binary(Vec<u8>),
}

/// Encodes the response to a request as a frame.
#[must_use]
pub fn frame(id: u32, answer: Result<Answer, Problem>) -> Frame {
    match answer {
        Err(problem) => Frame::Text(json!({ "id": id, "error": problem.json() }).to_string()),
        Ok(Answer::Json(result)) => Frame::Text(json!({ "id": id, "result": result }).to_string()),
        Ok(Answer::Columns(result, columns)) => Frame::Binary(binary(id, &result, &columns)),
    }
}

/// Encodes a binary frame. The JSON contains the offsets of the columns that follow it, and the
/// length of the JSON depends on the digits of these offsets: the start of the columns is increased
/// until the JSON fits before it.
fn binary(id: u32, result: &Value, columns: &[(&'static str, Numbers)]) -> Vec<u8> {
    const TYPES: [&str; 4] = ["u8", "u16", "u32", "f64"];
    let head = |begin: usize| {
        let mut at = begin;
        let told: Vec<Value> = columns
            .iter()
            .map(|(name, numbers)| {
                let offset = at;
                at += numbers.bytes().next_multiple_of(8);
                let kind = TYPES[numbers.kind()];
                json!({ "name": name, "type": kind, "offset": offset, "length": numbers.len() })
            })
            .collect();
        json!({ "result": result, "columns": told }).to_string()
    };
    // The start only grows from one iteration to the next, when offsets get more digits: a few
    // iterations suffice.
    let mut begin = 8;
    let mut json = head(begin);
    while (8 + json.len()).next_multiple_of(8) > begin {
        begin = (8 + json.len()).next_multiple_of(8);
        json = head(begin);
    }
    let mut out =
        Vec::with_capacity(begin + columns.iter().map(|(_, n)| n.bytes() + 8).sum::<usize>());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&(json.len() as u32).to_le_bytes());
    out.extend_from_slice(json.as_bytes());
    out.resize(begin, 0);
    for (_, numbers) in columns {
        numbers.write(&mut out);
        out.resize(out.len().next_multiple_of(8), 0);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_where_the_json_says() {
        for wide in [0usize, 1, 7, 8, 90, 100_000] {
            let columns = [
                ("a", Numbers::U8(vec![7; wide])),
                ("b", Numbers::F64(vec![1.5, -2.0])),
                ("c", Numbers::U16(vec![1, 2, 3])),
            ];
            let Frame::Binary(bytes) =
                frame(9, Ok(Answer::Columns(json!({ "x": "ü" }), columns.to_vec())))
            else {
                panic!("columns are binary")
            };
            assert_eq!(bytes[..4], 9u32.to_le_bytes());
            let len = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
            let told: Value = serde_json::from_slice(&bytes[8..8 + len]).unwrap();
            assert_eq!(told["result"]["x"], "ü");
            let offset = |index: usize| told["columns"][index]["offset"].as_u64().unwrap() as usize;
            assert!((0..3).all(|index| offset(index) % 8 == 0));
            assert_eq!(bytes[offset(0)..][..wide], vec![7; wide]);
            assert_eq!(bytes[offset(1)..][..8], 1.5f64.to_le_bytes());
            assert_eq!(bytes[offset(2)..][..6], [1, 0, 2, 0, 3, 0]);
            assert_eq!(told["columns"][2]["length"], 3);
        }
    }
}
