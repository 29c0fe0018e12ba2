// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What goes back to the page: spec/view.md §3.

use serde_json::{Value, json};

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What could not be done.
    pub what: String,
    /// Where: a parameter, a line of a script.
    pub place: String,
    /// What to do; may be empty.
    pub advice: String,
}

impl Problem {
    /// A problem in its three parts.
    pub fn new(
        what: impl Into<String>,
        place: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), place: place.into(), advice: advice.into() }
    }

    /// As the page gets it.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "what": self.what, "where": self.place, "do": self.advice })
    }
}

/// Numbers of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Numbers {
    /// Bytes.
    U8(Vec<u8>),
    /// 16 bits.
    U16(Vec<u16>),
    /// 32 bits.
    U32(Vec<u32>),
    /// IEEE 754 double.
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

/// What a method gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A text frame.
    Json(Value),
    /// A binary frame: a result, and columns with their names.
    Columns(Value, Vec<(&'static str, Numbers)>),
}

/// A frame of the WebSocket.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
}

/// The frame that answers a request.
#[must_use]
pub fn frame(id: u32, answer: Result<Answer, Problem>) -> Frame {
    match answer {
        Err(problem) => Frame::Text(json!({ "id": id, "error": problem.json() }).to_string()),
        Ok(Answer::Json(result)) => Frame::Text(json!({ "id": id, "result": result }).to_string()),
        Ok(Answer::Columns(result, columns)) => Frame::Binary(binary(id, &result, &columns)),
    }
}

/// Offsets stand in the JSON before the columns, whose begin depends on the length of that JSON:
/// they are counted from a begin that leaves room for the longest numbers.
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
    // Begins only grow from one round to the next, by digits: a few rounds are enough.
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
