// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `docs/reference/tables.md` describes every table as its schema does.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::DataType;
use lateralis_store::Session;
use lateralis_store::flow::Recorded;
use lateralis_store::places::{Images, Places};
use lateralis_symbols::{Functions, Image};

/// Nothing is decoded here.
struct NoImages;

impl Images for NoImages {
    fn image(&mut self, _: &str, _: Option<&[u8]>) -> Result<Image, String> {
        Err(String::new())
    }

    fn code(&mut self, _: &str, _: Option<&[u8]>, _: (u64, u64)) -> Result<Vec<u8>, String> {
        Err(String::new())
    }

    fn kernel(&mut self, _: Option<&[u8]>) -> Result<Functions, String> {
        Err(String::new())
    }

    fn generated(&mut self, _: u32) -> Option<(Functions, String)> {
        None
    }
}

fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int64 | DataType::UInt64 => "integer",
        DataType::Float64 => "number",
        DataType::Boolean => "yes/no",
        DataType::Utf8 | DataType::Dictionary(..) => "text",
        other => panic!("no word for {other}"),
    }
}

#[test]
fn the_document_has_every_table_and_column() {
    let recorded = Recorded::raw(Places::without_events(NoImages), Vec::new(), &[]);
    let session = Session::new(Vec::new()).with_flow(recorded);
    let session = session.with_stacks(Arc::new(|| Box::new(NoImages)));
    let mut expected = String::new();
    for table in session.tables() {
        expected += &format!("### `{}`\n\nRows: {}.\n\n", table.name, table.description);
        expected += "| column | type | unit | what |\n|---|---|---|---|\n";
        for field in table.schema.fields() {
            let about = |key: &str| field.metadata().get(key).map_or("", String::as_str);
            let (unit, text) = (about("unit"), about("description"));
            let (name, kind) = (field.name(), type_name(field.data_type()));
            expected += &format!("| `{name}` | {kind} | {unit} | {text} |\n");
        }
        expected += "\n";
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/tables.md");
    let document = fs::read_to_string(&path).unwrap();
    let marker = "<!-- tables: checked against the schemas by crates/store/tests -->\n\n";
    let (_, rest) = document.split_once(marker).expect("the marker");
    let is_same = rest.trim_end() == expected.trim_end();
    let wanted = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tables.md");
    if !is_same {
        fs::write(&wanted, &expected).unwrap();
    }
    assert!(is_same, "behind its marker the document must be {}", wanted.display());
}
