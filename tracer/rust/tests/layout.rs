// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compares the Rust declarations of the C core's structures with the C compiler's layout.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const PROGRAM: &str = r#"
#include <lat/lat.h>
#include <stdio.h>
int main(void)
{
    printf("%zu %zu %zu %zu %zu %zu %zu %zu %zu\n", offsetof(struct lat_schema, enabled),
           offsetof(struct lat_schema, base_id), offsetof(struct lat_schema, event_count),
           offsetof(struct lat_schema, hash), offsetof(struct lat_schema, name),
           offsetof(struct lat_schema, text), offsetof(struct lat_schema, text_bytes),
           offsetof(struct lat_schema, registered), sizeof(struct lat_schema));
    printf("%zu %zu %zu %zu %zu %zu %zu\n", offsetof(struct lat_i_state, rings),
           offsetof(struct lat_i_state, ring_stride), offsetof(struct lat_i_state, rseq_offset),
           offsetof(struct lat_i_state, mask), sizeof(struct lat_i_state),
           offsetof(struct lat_i_piece, bytes), sizeof(struct lat_i_piece));
    printf("%zu %zu %zu %u %zu\n", offsetof(struct lat_ring, cursor),
           offsetof(struct lat_ring, limit), offsetof(struct lat_ring, last_writer), LAT_RING_CONTROL_BYTES,
           offsetof(struct lat_i_thread, writer));
    printf("%u %u %u %u\n", LAT_ENABLE_RECORD, LAT_ENABLE_WATCH, LAT_AREA_EVENT_COUNT, LAT_ID_MARK);
    return 0;
}
"#;

#[test]
fn structures_are_those_of_c() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lateralis-layout.c");
    let program = source.with_extension("");
    fs::write(&source, PROGRAM).expect("the source can be written");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../c/include");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(compiler)
        .arg("-I")
        .args([&include, &source])
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the C compiler that has built the core");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&program).output().expect("the program runs");
    let printed = String::from_utf8(output.stdout).expect("ASCII");
    let said =
        |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<String>>().join(" ");
    // src/emit/*.rs contain the offsets of the ring's fields and of the writer's id as numbers.
    let ring_in_assembly = [0, 8, 16, 4096, 8];
    let expected = [
        said(&lateralis::SCHEMA_LAYOUT),
        said(&lateralis::CORE_LAYOUT),
        said(&ring_in_assembly),
        said(&lateralis::CORE_CONSTANTS),
    ];
    assert_eq!(printed.lines().collect::<Vec<&str>>(), expected);
}
