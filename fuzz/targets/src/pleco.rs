// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Schema text.

/// Compiles arbitrary bytes. Besides not panicking: what has no schema has a
/// diagnostic, and the canonical text of a schema compiles to the same schema.
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
}
