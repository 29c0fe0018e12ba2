// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schema text.

/// Compiles arbitrary bytes. Besides not panicking: what has no schema has a
/// diagnostic, the canonical and the formatted text of a schema compile to the same
/// schema, and the metadata made of it has no fault.
pub fn check(text: &[u8]) {
    let compiled = lateralis_pleco::compile("input.pleco", text);
    let _ = compiled.render();
    let Some(schema) = compiled.schema else {
        assert!(!compiled.diagnostics.is_empty(), "refused without a reason");
        return;
    };
    let canonical = schema.canonical_text();
    let again = lateralis_pleco::compile("input.pleco", canonical.as_bytes());
    let again_schema = again.schema.unwrap_or_else(|| panic!("not canonical: {canonical}"));
    assert_eq!(schema.hash(), again_schema.hash(), "hash of {canonical}");
    assert_eq!(again_schema.canonical_text(), canonical, "canonical text is not stable");
    let pretty = lateralis_pleco::format("input.pleco", text).expect("it has a schema");
    let again = lateralis_pleco::format("input.pleco", pretty.as_bytes());
    assert_eq!(again.as_deref().ok(), Some(&pretty[..]), "formatting is not stable");
    let same = lateralis_pleco::compile("input.pleco", pretty.as_bytes()).schema;
    assert_eq!(same.map(|schema| schema.hash()), Some(schema.hash()), "formatting changes it");
    let order = lateralis_pleco::ctf::ByteOrder::Little;
    let trace = lateralis_pleco::ctf::TraceDescription::of_schema(&schema, order);
    for metadata in [lateralis_pleco::ctf::ctf1(&trace), lateralis_pleco::ctf::ctf2(&trace)] {
        let (_, diagnostics) = lateralis_ctf::metadata::parse(metadata.as_bytes());
        assert!(diagnostics.is_empty(), "{diagnostics:?} in {metadata}");
    }
    let _ = lateralis_pleco::generate::c_header(&schema);
    let _ = lateralis_pleco::generate::json(&schema);
    let _ = lateralis_pleco::generate::rust_module(&schema);
    let _ = lateralis_pleco::generate::markdown(&schema);
}

/// The schemas of this repository, and the real one if it is there.
pub fn good() -> Vec<Vec<u8>> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["spec/lateralis.pleco", "examples/demo/demo.pleco", "tracer/preload/preload.pleco"]
        .into_iter()
        .chain(["../shared/data/barrelfish/trace_defs.pleco"])
        .filter_map(|path| std::fs::read(root.join(path)).ok())
        .collect()
}
