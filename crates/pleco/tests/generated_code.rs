// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Generated C and Rust: compiled without a warning as C11 and C++17 by every
//! compiler that is installed, run, and the bytes of every record compared with
//! those of the tests' own encoder.

use crate::every_type;

use every_type::{Value, event, payload, records, schema};
use lateralis_pleco::generate::{c_header, rust_module};
use lateralis_pleco::schema::{Event, FieldType, Integer, Scalar, Schema};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const STRICT: &[&str] = &[
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-Wcast-qual",
    "-Wcast-align",
    "-Wundef",
    "-Wwrite-strings",
    "-Wdouble-promotion",
    "-Wfloat-equal",
    "-Wformat=2",
    "-Wunused",
    "-Werror",
];
const COMPILERS: [(&str, &[&str]); 4] = [
    ("gcc", &["-x", "c", "-std=c11", "-Wstrict-prototypes", "-Wmissing-prototypes"]),
    ("g++", &["-x", "c++", "-std=c++17"]),
    ("clang", &["-x", "c", "-std=c11", "-Wstrict-prototypes"]),
    ("clang++", &["-x", "c++", "-std=c++17"]),
];

fn crate_path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("generated-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a program; `None`, said aloud, if it is not installed.
fn run(command: &mut Command) -> Option<Output> {
    match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("SKIPPED: {} is not installed", command.get_program().to_string_lossy());
            None
        }
        other => Some(other.unwrap()),
    }
}

fn assert_silent(output: &Output, what: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{what}:\n{errors}");
}

/// Lines that a program with all [`records`] must print.
fn expected(schema: &Schema) -> String {
    let is_big = cfg!(target_endian = "big");
    let mut out = String::new();
    for (name, values) in records() {
        let event = event(schema, name);
        let payload = payload(event, &values, is_big);
        let hex: String = payload.iter().map(|byte| format!("{byte:02x}")).collect();
        let _ = writeln!(out, "{} {} {hex}", event.index, payload.len());
    }
    out
}

fn c_integer(integer: Integer, value: i128) -> String {
    let name = integer.name();
    let bits = &name[1..];
    if name.starts_with('u') {
        return format!("(uint{bits}_t)UINT64_C({value})");
    }
    if value == i128::from(i64::MIN) {
        return "(-INT64_C(9223372036854775807) - 1)".to_owned();
    }
    format!("(int{bits}_t)(INT64_C({value}))")
}

fn c_scalar(schema: &Schema, scalar: Scalar, value: &Value, is_element: bool) -> String {
    match (scalar, value) {
        (Scalar::Integer(integer), Value::Int(value)) => c_integer(integer, *value),
        (Scalar::Enum { index, container }, Value::Int(value)) => {
            if is_element {
                return c_integer(container, *value);
            }
            // The tag as the generated header has it, found by a label of the enum.
            let label = &schema.enums[index].labels[0].0;
            let header = c_header(schema);
            let at = header.find(&format!("_{label} = ")).unwrap();
            let tag = header[..at].rsplit("enum ").next().unwrap().split(' ').next().unwrap();
            format!("(enum {tag})({value})")
        }
        (Scalar::Bool, Value::Int(value)) => if *value == 0 { "false" } else { "true" }.to_owned(),
        (Scalar::F32, Value::F32(value)) => format!("{value:?}f"),
        (Scalar::F64, Value::F64(value)) => format!("{value:?}"),
        other => panic!("{other:?}"),
    }
}

fn c_type(scalar: Scalar) -> String {
    match scalar {
        Scalar::Integer(integer) | Scalar::Enum { container: integer, .. } => {
            let sign = if integer.is_signed() { "int" } else { "uint" };
            format!("{sign}{}_t", &integer.name()[1..])
        }
        Scalar::F32 => "float".to_owned(),
        Scalar::F64 => "double".to_owned(),
        Scalar::Bool => "bool".to_owned(),
    }
}

fn c_program(schema: &Schema) -> String {
    let mut out = String::from("#include \"every_type.h\"\n\nint main(void)\n{\n");
    for (number, (name, values)) in records().iter().enumerate() {
        let event = event(schema, name);
        let mut arguments = Vec::new();
        for (i, (field, value)) in event.fields.iter().zip(values).enumerate() {
            let (element, is_counted) = match field.ty {
                FieldType::Scalar(scalar) => {
                    arguments.push(c_scalar(schema, scalar, value, false));
                    continue;
                }
                FieldType::String => {
                    let Value::Text(text) = value else { panic!() };
                    arguments.push(format!("{text:?}"));
                    continue;
                }
                FieldType::Bytes => (Scalar::Integer(Integer::U8), true),
                FieldType::Sequence(element) => (element, true),
                FieldType::Array { element, .. } => (element, false),
            };
            let Value::List(items) = value else { panic!() };
            if items.is_empty() {
                arguments.push("NULL".to_owned());
            } else {
                let listed: Vec<String> =
                    items.iter().map(|item| c_scalar(schema, element, item, true)).collect();
                let ty = c_type(element);
                let listed = listed.join(", ");
                let _ = writeln!(out, "    const {ty} list_{number}_{i}[] = {{ {listed} }};");
                arguments.push(format!("list_{number}_{i}"));
            }
            if is_counted {
                arguments.push(format!("{}u", items.len()));
            }
        }
        let function = name.to_lowercase();
        let _ = writeln!(out, "    lat_types_{function}({});", arguments.join(", "));
    }
    out.push_str("    return lat_types_nothing_enabled() ? 0 : 1;\n}\n");
    out
}

#[test]
fn c_and_cpp_write_the_right_bytes() {
    let schema = schema();
    let directory = directory("c");
    fs::write(directory.join("every_type.h"), c_header(&schema)).unwrap();
    fs::write(directory.join("main.c"), c_program(&schema)).unwrap();
    // The header must not be alone in its program: definitions in it are weak.
    fs::write(
        directory.join("other.c"),
        "#include \"every_type.h\"\nextern int other;\nint other = 0;\n",
    )
    .unwrap();
    for (compiler, flags) in COMPILERS {
        for level in ["-O0", "-O2"] {
            let mut command = Command::new(compiler);
            command.args(STRICT).args(flags).arg(level).current_dir(&directory);
            command.arg("-I").arg(crate_path("tests/c")).args(["main.c", "-o", "main"]);
            command.arg("other.c");
            let Some(output) = run(&mut command) else { break };
            assert_silent(&output, compiler);
            let ran = Command::new(directory.join("main")).output().unwrap();
            assert!(ran.status.success());
            assert_eq!(
                String::from_utf8_lossy(&ran.stdout),
                expected(&schema),
                "{compiler} {level}"
            );
        }
    }
}

/// The real tracer's header, as far as it is in the tree.
#[test]
fn c_compiles_with_the_tracer() {
    let include = crate_path("../../tracer/c/include");
    if !include.join("lat/lat.h").exists() {
        eprintln!("SKIPPED: there is no tracer/c/include/lat/lat.h");
        return;
    }
    let schema = schema();
    let directory = directory("tracer");
    fs::write(directory.join("every_type.h"), c_header(&schema)).unwrap();
    fs::write(directory.join("main.c"), c_program(&schema)).unwrap();
    for (compiler, flags) in COMPILERS {
        let mut command = Command::new(compiler);
        command.args(STRICT).args(flags).current_dir(&directory);
        command.arg("-isystem").arg(&include).args(["-O1", "-c", "main.c", "-o", "main.o"]);
        let Some(output) = run(&mut command) else { continue };
        assert_silent(&output, compiler);
    }
}

#[test]
fn names_that_other_languages_reserve() {
    let text = "
        subsystem i { event yield'd \"\" (int: u32, on: u8, lat_on: u8, errno: u8, INT8_MAX: u8), };
        subsystem class { event move \"\" (class: string, xs: [u8], xs_count: u8), };
        subsystem register { event names \"*/ ??/ \\\\\" (self: u8, type: enum { Self, second }), };
        subsystem Ärger { event Größe \"\" (länge: u16), };";
    let compiled = lateralis_pleco::compile("names.pleco", text.as_bytes());
    let schema = compiled.schema.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let directory = directory("names");
    let program = "#include <errno.h>\n#include \"names.h\"\nint main(void) {\n\
                   lat_i__yield_qd(1u, 2, 3, 4, 5);\nlat_class_move(\"a\", NULL, 0u, 1);\n\
                   lat_register__names(1, LAT_ENUM_REGISTER_NAMES_TYPE_SECOND);\n return 0;\n}\n";
    fs::write(directory.join("names.h"), c_header(&schema)).unwrap();
    fs::write(directory.join("main.c"), program).unwrap();
    for (compiler, flags) in COMPILERS {
        let mut command = Command::new(compiler);
        command.args(STRICT).args(flags).current_dir(&directory);
        command.arg("-I").arg(crate_path("tests/c")).args(["main.c", "-o", "main"]);
        let Some(output) = run(&mut command) else { continue };
        assert_silent(&output, compiler);
    }
    rust_program(&directory, &schema, "names::class::move_(\"a\", &[], 1);");
}

/// Compiles a program around a generated module and returns what it prints.
fn rust_program(directory: &Path, schema: &Schema, body: &str) -> Option<String> {
    fs::write(directory.join("generated.rs"), rust_module(schema)).unwrap();
    let main = format!(
        "#![deny(warnings)]\n#![forbid(unsafe_code)]\nmod {name} {{\n    \
         include!(\"generated.rs\");\n}}\nfn main() {{\n{body}\n}}\n",
        name = schema.name
    );
    fs::write(directory.join("main.rs"), main).unwrap();
    let library = crate_path("tests/rust/lateralis.rs");
    let mut command = Command::new("rustc");
    command.args(["--edition=2024", "--crate-type=lib", "--crate-name=lateralis"]);
    command.arg(library).arg("--out-dir").arg(directory);
    assert_silent(&run(&mut command)?, "tests/rust/lateralis.rs");
    let mut command = Command::new("rustc");
    command.args(["--edition=2024", "-L", ".", "--extern", "lateralis", "main.rs"]);
    assert_silent(&run(command.current_dir(directory))?, "generated Rust");
    let ran = Command::new(directory.join("main")).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

fn rust_scalar(schema: &Schema, event: &Event, scalar: Scalar, value: &Value) -> String {
    match (scalar, value) {
        (Scalar::Integer(_), Value::Int(value)) => value.to_string(),
        (Scalar::Enum { index, .. }, Value::Int(value)) => {
            let enumeration = &schema.enums[index];
            let label = enumeration.label(*value).unwrap();
            match (&enumeration.name, enumeration.owner) {
                (Some(name), _) => {
                    let (first, rest) = name.split_at(1);
                    format!("every_type::{}{rest}::{label}", first.to_uppercase())
                }
                (None, _) => {
                    assert_eq!(event.name, "ENUMS");
                    format!("every_type::types::EnumsB::{label}")
                }
            }
        }
        (Scalar::Bool, Value::Int(value)) => (*value != 0).to_string(),
        (_, Value::F32(value)) => format!("{value:?}"),
        (_, Value::F64(value)) => format!("{value:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rust_writes_the_right_bytes() {
    let schema = schema();
    let mut body = String::new();
    // Every value in the records has a label, but in the first language this one has none.
    let records: Vec<_> = records();
    let mut wanted = String::new();
    for (line, (name, values)) in expected(&schema).lines().zip(&records) {
        let event = event(&schema, name);
        let unlabelled = event.fields.iter().zip(values).any(|(field, value)| {
            let Value::Int(value) = value else { return false };
            field.ty.enum_index().is_some_and(|i| schema.enums[i].label(*value).is_none())
        });
        if unlabelled {
            // A Rust enum cannot hold it.
            continue;
        }
        let arguments: Vec<String> = event
            .fields
            .iter()
            .zip(values)
            .map(|(field, value)| match (field.ty, value) {
                (FieldType::Scalar(scalar), value) => rust_scalar(&schema, event, scalar, value),
                (FieldType::Array { element, .. }, Value::List(items)) => {
                    let items = items.iter().map(|item| rust_scalar(&schema, event, element, item));
                    format!("&[{}]", items.collect::<Vec<_>>().join(", "))
                }
                (_, Value::List(items)) => {
                    let items = items.iter().map(|item| match item {
                        Value::Int(value) => value.to_string(),
                        Value::F64(value) => format!("{value:?}"),
                        other => panic!("{other:?}"),
                    });
                    format!("&[{}]", items.collect::<Vec<_>>().join(", "))
                }
                (_, Value::Text(text)) => format!("{text:?}"),
                other => panic!("{other:?}"),
            })
            .collect();
        let function = name.to_lowercase();
        let _ = writeln!(body, "    every_type::types::{function}({});", arguments.join(", "));
        let _ = writeln!(wanted, "{line}");
    }
    body.push_str("    assert!(every_type::types::nothing_enabled());\n");
    let directory = directory("rust");
    let Some(printed) = rust_program(&directory, &schema, &body) else { return };
    assert_eq!(printed, wanted);
    assert!(wanted.lines().count() + 1 >= records.len(), "almost every record was tried");
}

const SPANS: &str = "schema spans;
subsystem a {
    event OPEN \"\" (path: string, key: u32, data: [u16]) begin file key key,
    event ENTER \"\" () begin plain,
};
subsystem b {
    event CLOSE \"\" (key: u32, path: string, data: [u16]) end file key key,
    event LEAVE \"\" () end plain,
};";

/// Scope macros and guards write the end where the block is left.
#[test]
fn scopes_of_spans() {
    let compiled = lateralis_pleco::compile("spans.pleco", SPANS.as_bytes());
    let schema = compiled.schema.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let directory = directory("spans");
    let program = "#include \"spans.h\"\n\
        static int work(int early)\n{\n    static const uint16_t data[] = {1, 2};\n    \
        LAT_SPAN_A_FILE(\"p\", 5u, data, 2u);\n    LAT_SPAN_A_PLAIN();\n    \
        if (early)\n        return 1;\n    puts(\"late\");\n    return 0;\n}\n\
        int main(void)\n{\n    return work(1) + work(0) - 1;\n}\n";
    fs::write(directory.join("spans.h"), c_header(&schema)).unwrap();
    fs::write(directory.join("main.c"), program).unwrap();
    let indices: [&str; 4] = ["0", "1", "3", "2"];
    for (compiler, flags) in COMPILERS {
        let mut command = Command::new(compiler);
        command.args(STRICT).args(flags).current_dir(&directory);
        command.arg("-I").arg(crate_path("tests/c")).args(["main.c", "-o", "main"]);
        let Some(output) = run(&mut command) else { continue };
        assert_silent(&output, compiler);
        let ran = Command::new(directory.join("main")).output().unwrap();
        assert!(ran.status.success());
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        let order: Vec<&str> = text.lines().map(|l| l.split(' ').next().unwrap()).collect();
        let wanted = [&indices[..], &["0", "1", "late", "3", "2"]].concat();
        assert_eq!(order, wanted, "{compiler}");
    }
    let body = "{ let _file = spans::a::file_span(\"p\", 5, &[1, 2]);\n\
                let _plain = spans::a::plain_span(); println!(\"in\"); }";
    let Some(text) = rust_program(&directory, &schema, body) else { return };
    let order: Vec<&str> = text.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(order, ["0", "1", "in", "3", "2"]);
}
