// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Types of values that can be logged.

use super::format::Type;
use crate::record::Record;

/// A value that [`log!`](crate::log!) records unformatted.
pub trait Argument {
    /// Its type in the schema.
    const TYPE: Type;
    /// Appends it to a record.
    fn put<'a>(&'a self, record: &mut Record<'a>);
}

macro_rules! integers {
    ($($ty:ident $variant:ident $put:ident $raw:ident;)*) => {$(
        impl Argument for $ty {
            const TYPE: Type = Type::$variant;
            #[inline]
            fn put<'a>(&'a self, record: &mut Record<'a>) {
                record.$put(*self as $raw);
            }
        }
    )*};
}

integers! {
    u8 U8 u8 u8;
    u16 U16 u16 u16;
    u32 U32 u32 u32;
    u64 U64 u64 u64;
    usize U64 u64 u64;
    i8 I8 u8 u8;
    i16 I16 u16 u16;
    i32 I32 u32 u32;
    i64 I64 u64 u64;
    isize I64 u64 u64;
    bool Bool u8 u8;
}

impl Argument for f32 {
    const TYPE: Type = Type::F32;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        record.u32(self.to_bits());
    }
}

impl Argument for f64 {
    const TYPE: Type = Type::F64;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        record.u64(self.to_bits());
    }
}

impl Argument for char {
    const TYPE: Type = Type::String;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        record.char(*self);
    }
}

impl Argument for str {
    const TYPE: Type = Type::String;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        record.str(self);
    }
}

impl<T: Argument + ?Sized> Argument for &T {
    const TYPE: Type = T::TYPE;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        (**self).put(record);
    }
}

impl<T> Argument for *const T {
    const TYPE: Type = Type::Pointer;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        record.u64(self.addr() as u64);
    }
}

impl<T> Argument for *mut T {
    const TYPE: Type = Type::Pointer;
    #[inline]
    fn put<'a>(&'a self, record: &mut Record<'a>) {
        record.u64(self.addr() as u64);
    }
}

/// Up to 16 arguments.
pub trait Arguments {
    /// Their types.
    const TYPES: &'static [Type];
    /// Appends them to a record, in order.
    fn put<'a>(&'a self, record: &mut Record<'a>);
}

macro_rules! tuple {
    ($($name:ident $place:tt)*) => {
        impl<$($name: Argument),*> Arguments for ($($name,)*) {
            const TYPES: &'static [Type] = &[$($name::TYPE),*];
            #[inline]
            fn put<'a>(&'a self, _record: &mut Record<'a>) {
                $(self.$place.put(_record);)*
            }
        }
    };
}

/// Implements a tuple of the first names, then one with one more, and so on.
macro_rules! tuples {
    ([$($first:tt)*]) => { tuple!($($first)*); };
    ([$($first:tt)*] $name:ident $place:tt $($rest:tt)*) => {
        tuple!($($first)*);
        tuples!([$($first)* $name $place] $($rest)*);
    };
}

tuples! { [] A 0 B 1 C 2 D 3 E 4 F 5 G 6 H 7 I 8 J 9 K 10 L 11 M 12 N 13 O 14 P 15 }
