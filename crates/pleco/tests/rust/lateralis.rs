// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What generated modules need of the tracer, for tests: events are printed, a
//! line each, as "INDEX PAYLOAD-BYTES HEX", instead of recorded.

pub struct Schema {
    count: u32,
}

impl Schema {
    pub const fn new(_name: &'static str, _text: &'static str, _hash: u64, count: u32) -> Schema {
        Schema { count }
    }

    pub fn on(&'static self, index: u32) -> u8 {
        if index < self.count { 7 } else { 0 }
    }

    pub fn is_enabled(&'static self, index: u32) -> bool {
        self.on(index) != 0
    }

    pub fn emit<const N: usize>(
        &'static self,
        on: u8,
        index: u32,
        payload_bytes: u32,
        words: [u64; N],
    ) {
        assert_eq!((payload_bytes as usize).div_ceil(8), N);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        show(on, index, &bytes[..payload_bytes as usize]);
    }

    pub fn emit_record(&'static self, on: u8, index: u32, record: &Record) {
        show(on, index, &record.bytes);
    }
}

/// Nothing has to know of these schemas.
#[macro_export]
macro_rules! register_at_start {
    ($schema:path) => {
        const _: &$crate::Schema = &$schema;
    };
}

fn show(on: u8, index: u32, payload: &[u8]) {
    assert_eq!(on, 7);
    let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{index} {} {hex}", payload.len());
}

#[derive(Default)]
pub struct Record {
    bytes: Vec<u8>,
}

impl Record {
    pub fn new() -> Record {
        Record::default()
    }

    fn put(&mut self, bytes: &[u8], alignment: usize) {
        self.align(alignment);
        self.bytes.extend_from_slice(bytes);
    }

    fn align(&mut self, alignment: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
    }

    pub fn str(&mut self, text: &str) {
        self.put(text.as_bytes(), 1);
        self.put(&[0], 1);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.slice_u8(bytes);
    }
}

macro_rules! numbers {
    ($($ty:ident $put:ident $slice:ident $array:ident $size:literal)*) => {
        impl Record {
            $(
                pub fn $put(&mut self, value: $ty) {
                    self.put(&value.to_ne_bytes(), $size);
                }

                pub fn $array(&mut self, values: &[$ty]) {
                    self.align($size);
                    values.iter().for_each(|value| self.$put(*value));
                }

                pub fn $slice(&mut self, values: &[$ty]) {
                    self.u32(values.len() as u32);
                    self.$array(values);
                }
            )*
        }
    };
}

numbers! {
    u8 u8 slice_u8 array_u8 1
    u16 u16 slice_u16 array_u16 2
    u32 u32 slice_u32 array_u32 4
    u64 u64 slice_u64 array_u64 8
    i8 i8 slice_i8 array_i8 1
    i16 i16 slice_i16 array_i16 2
    i32 i32 slice_i32 array_i32 4
    i64 i64 slice_i64 array_i64 8
    f32 f32 slice_f32 array_f32 4
    f64 f64 slice_f64 array_f64 8
}
