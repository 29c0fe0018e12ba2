// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts from files, and their errors.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use lateralis_script::{Limits, Script, ScriptError};

use crate::Error;

/// Bytes of a file that can be a script; what is longer the loader refuses.
const FILE_MAX: u64 = 1 << 22;

/// Reads and runs a script, so that it declares what it has.
///
/// Errors: the file, or the script, with its line.
pub fn load(path: &Path) -> Result<Script, Error> {
    let fail = |cause: &std::io::Error| Error::at_path("cannot read", path, cause);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|cause| fail(&cause))?;
    file.take(FILE_MAX).read_to_end(&mut bytes).map_err(|cause| fail(&cause))?;
    let name = path.display().to_string();
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::new("cannot read the script", &name, "it is no text in UTF-8"))?;
    Script::load(&name, &text, Limits::default()).map_err(error)
}

/// A filter of the command line: a file whose name ends in `.js`, or an expression.
///
/// Errors: as [`load`].
pub fn load_filter(given: &str) -> Result<Script, Error> {
    let path = Path::new(given);
    let script = if given.ends_with(".js") || path.is_file() {
        load(path)?
    } else {
        Script::load("--filter", given, Limits::default()).map_err(error)?
    };
    if !script.has_filters() {
        let advice = "it declares no filter: filter(event => …); activities are for lat run-script";
        return Err(Error::new("cannot filter by the script", given, advice));
    }
    Ok(script)
}

/// What failed in a script, with the line below.
pub fn error(error: ScriptError) -> Error {
    Error::new("the script failed", error.place(), error.message.clone())
        .with_picture(error.caret())
}
