// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The numbers of `lateralis_ring::small::abi` against what a C compiler makes of the tracer's header.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use lateralis_ring::small::abi;

/// C expression, our number.
#[allow(clippy::unnecessary_cast)] // one table for constants of several widths
const NUMBERS: &[(&str, u64)] = &[
    ("LAT_SMALL_ABI_VERSION", abi::ABI_VERSION as u64),
    ("LAT_SMALL_MAGIC", abi::MAGIC as u64),
    ("LAT_SMALL_PACKET_MAGIC", abi::PACKET_MAGIC as u64),
    ("LAT_SMALL_BYTE_ORDER_MARK", abi::BYTE_ORDER_MARK as u64),
    ("LAT_SMALL_CORES_MAX", abi::CORES_MAX as u64),
    ("LAT_SMALL_AREA_BYTES_MAX", abi::AREA_BYTES_MAX as u64),
    ("LAT_SMALL_MODE_OVERWRITE", abi::MODE_OVERWRITE as u64),
    ("LAT_SMALL_STATE_READY", abi::STATE_READY as u64),
    ("sizeof(struct lat_small_header)", abi::HEADER_BYTES as u64),
    ("sizeof(struct lat_small_ring)", abi::CONTROL_BYTES as u64),
    ("sizeof(struct lat_small_packet)", abi::PACKET_HEADER_BYTES as u64),
    ("sizeof(struct lat_small_schema)", abi::SCHEMA_BYTES as u64),
    ("LAT_SMALL_PACKET_BYTES_MIN", *abi::PACKET_BYTES_RANGE.start() as u64),
    ("LAT_SMALL_PACKET_BYTES_MAX", *abi::PACKET_BYTES_RANGE.end() as u64),
    ("LAT_SMALL_PACKETS_MIN", *abi::PACKETS_RANGE.start() as u64),
    ("LAT_SMALL_PACKETS_MAX", *abi::PACKETS_RANGE.end() as u64),
    ("LAT_SMALL_FIRST_ID", lateralis_ring::abi::INTERNAL_EVENT_COUNT as u64),
    ("LAT_SMALL_ID_WRITER", lateralis_ring::abi::ID_WRITER as u64),
    ("LAT_SMALL_ID_THREAD_NAME", lateralis_ring::abi::ID_THREAD_NAME as u64),
    ("LAT_SMALL_ID_MARK", lateralis_ring::abi::ID_MARK as u64),
    ("offsetof(struct lat_small_header, magic)", abi::header::MAGIC as u64),
    ("offsetof(struct lat_small_header, magic_complement)", abi::header::MAGIC_COMPLEMENT as u64),
    ("offsetof(struct lat_small_header, abi_version)", abi::header::ABI_VERSION as u64),
    ("offsetof(struct lat_small_header, byte_order)", abi::header::BYTE_ORDER as u64),
    ("offsetof(struct lat_small_header, header_bytes)", abi::header::HEADER_BYTES as u64),
    ("offsetof(struct lat_small_header, area_bytes)", abi::header::AREA_BYTES as u64),
    ("offsetof(struct lat_small_header, address)", abi::header::ADDRESS as u64),
    ("offsetof(struct lat_small_header, core_count)", abi::header::CORE_COUNT as u64),
    ("offsetof(struct lat_small_header, schema_count)", abi::header::SCHEMA_COUNT as u64),
    ("offsetof(struct lat_small_header, event_count)", abi::header::EVENT_COUNT as u64),
    ("offsetof(struct lat_small_header, packet_bytes)", abi::header::PACKET_BYTES as u64),
    ("offsetof(struct lat_small_header, packets_per_ring)", abi::header::PACKETS_PER_RING as u64),
    ("offsetof(struct lat_small_header, ring_offset)", abi::header::RING_OFFSET as u64),
    ("offsetof(struct lat_small_header, ring_stride)", abi::header::RING_STRIDE as u64),
    ("offsetof(struct lat_small_header, schema_offset)", abi::header::SCHEMA_OFFSET as u64),
    ("offsetof(struct lat_small_header, mode)", abi::header::MODE as u64),
    ("offsetof(struct lat_small_header, clock_hz)", abi::header::CLOCK_HZ as u64),
    ("offsetof(struct lat_small_header, clock_bits)", abi::header::CLOCK_BITS as u64),
    ("offsetof(struct lat_small_header, pointer_bytes)", abi::header::POINTER_BYTES as u64),
    ("offsetof(struct lat_small_header, state)", abi::header::STATE as u64),
    ("offsetof(struct lat_small_header, generation)", abi::header::GENERATION as u64),
    ("offsetof(struct lat_small_schema, hash)", abi::schema::HASH as u64),
    ("offsetof(struct lat_small_schema, text)", abi::schema::TEXT as u64),
    ("offsetof(struct lat_small_schema, text_bytes)", abi::schema::TEXT_BYTES as u64),
    ("offsetof(struct lat_small_schema, base_id)", abi::schema::BASE_ID as u64),
    ("offsetof(struct lat_small_schema, event_count)", abi::schema::EVENT_COUNT as u64),
    ("offsetof(struct lat_small_schema, switches)", abi::schema::SWITCHES as u64),
    ("offsetof(struct lat_small_ring, cursor)", abi::ring::CURSOR as u64),
    ("offsetof(struct lat_small_ring, limit)", abi::ring::LIMIT as u64),
    ("offsetof(struct lat_small_ring, context)", abi::ring::CONTEXT as u64),
    ("offsetof(struct lat_small_ring, busy)", abi::ring::BUSY as u64),
    ("offsetof(struct lat_small_ring, sequence)", abi::ring::SEQUENCE as u64),
    ("offsetof(struct lat_small_ring, sequence_high)", abi::ring::SEQUENCE_HIGH as u64),
    ("offsetof(struct lat_small_ring, consumed)", abi::ring::CONSUMED as u64),
    ("offsetof(struct lat_small_ring, lost_full)", abi::ring::LOST_FULL as u64),
    ("offsetof(struct lat_small_ring, lost_too_big)", abi::ring::LOST_TOO_BIG as u64),
    ("offsetof(struct lat_small_ring, lost_nested)", abi::ring::LOST_NESTED as u64),
    ("offsetof(struct lat_small_ring, begin)", abi::ring::BEGIN as u64),
    ("offsetof(struct lat_small_ring, begin_high)", abi::ring::BEGIN_HIGH as u64),
    ("offsetof(struct lat_small_ring, core)", abi::ring::CORE as u64),
    ("offsetof(struct lat_small_ring, clock_last)", abi::ring::CLOCK_LAST as u64),
    ("offsetof(struct lat_small_ring, clock_high)", abi::ring::CLOCK_HIGH as u64),
    ("offsetof(struct lat_small_ring, clock_backward)", abi::ring::CLOCK_BACKWARD as u64),
    ("offsetof(struct lat_small_packet, magic)", abi::packet::MAGIC as u64),
    ("offsetof(struct lat_small_packet, sequence)", abi::packet::SEQUENCE as u64),
    ("offsetof(struct lat_small_packet, sequence_high)", abi::packet::SEQUENCE_HIGH as u64),
    ("offsetof(struct lat_small_packet, content_bytes)", abi::packet::CONTENT_BYTES as u64),
    ("offsetof(struct lat_small_packet, core)", abi::packet::CORE as u64),
    ("offsetof(struct lat_small_packet, begin)", abi::packet::BEGIN as u64),
    ("offsetof(struct lat_small_packet, lost_full)", abi::packet::LOST_FULL as u64),
    ("offsetof(struct lat_small_packet, lost_too_big)", abi::packet::LOST_TOO_BIG as u64),
    ("offsetof(struct lat_small_packet, lost_nested)", abi::packet::LOST_NESTED as u64),
];

#[test]
fn the_c_header_has_the_same_numbers() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("SKIPPED: comparison with small_abi.h: no C compiler (cc)");
        return;
    }
    let mut program =
        "#include <stdio.h>\n#include <stddef.h>\n#include \"lat/small_abi.h\"\nint main(void) {\n"
            .to_owned();
    for (expression, _) in NUMBERS {
        writeln!(program, "printf(\"%llu\\n\", (unsigned long long)({expression}));").unwrap();
    }
    program.push_str("return 0; }\n");
    let dir = std::env::temp_dir().join(format!("lateralis-small-abi-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let source = dir.join("abi.c");
    std::fs::write(&source, program).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c/include");
    let mut compiler = Command::new("cc");
    compiler.arg("-std=c11").arg("-I").arg(include).arg(&source).arg("-o").arg(dir.join("abi"));
    let compiled = compiler.output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(dir.join("abi")).output().unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), NUMBERS.len());
    for ((expression, ours), theirs) in NUMBERS.iter().zip(found) {
        assert_eq!(*ours, theirs, "{expression}");
    }
}

#[test]
fn every_offset_of_the_c_header_is_compared() {
    let header =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c/include/lat/small_abi.h");
    let text = std::fs::read_to_string(header).unwrap();
    let mut structure = "";
    let mut fields = 0;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("struct lat_small_") {
            structure = rest.trim_end_matches(" {");
        }
        let Some(rest) = line.trim_start().strip_prefix("uint") else { continue };
        let Some((_, name)) = rest.split_once("_t ") else { continue };
        let name = name.split([';', '[']).next().unwrap();
        fields += 1;
        let expression = format!("offsetof(struct lat_small_{structure}, {name})");
        let compared = NUMBERS.iter().any(|(one, _)| *one == expression);
        assert!(compared || name == "reserved", "{expression} is compared with nothing");
    }
    assert!(fields > 40, "{fields}");
}
