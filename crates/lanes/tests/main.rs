// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of pictures.

mod growing;
mod pixels;
