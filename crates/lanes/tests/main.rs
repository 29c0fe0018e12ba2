// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tests of what is drawn.

mod growing;
mod pixels;
