// SPDX-License-Identifier: Apache-2.0 OR MIT
//! C programs for the tests: compiled from a schema and a main function with the real tracer.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory of a test, with areas, output and programs. Removed on drop.
pub struct Workshop {
    root: PathBuf,
}

impl Workshop {
    /// `None` if there is no C compiler: the test is skipped, with a message.
    pub fn new(name: &str) -> Option<Workshop> {
        if Command::new("cc").arg("--version").output().is_err() {
            eprintln!("SKIPPED: {name}: no C compiler (cc)");
            return None;
        }
        let root =
            std::env::temp_dir().join(format!("lateralis-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        Some(Workshop { root })
    }

    /// A path in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Directory of the areas of this test.
    pub fn areas(&self) -> PathBuf {
        self.path("areas")
    }

    /// Remaining area files.
    pub fn areas_left(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.areas()).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "area"))
            .collect()
    }

    /// Compiles a program whose events are `schema` and whose C text is `main`.
    pub fn compile(&self, name: &str, schema: &str, main: &str) -> PathBuf {
        self.compile_with(name, schema, main, &[])
    }

    /// Like `compile`, with compiler flags.
    pub fn compile_with(&self, name: &str, schema: &str, main: &str, flags: &[&str]) -> PathBuf {
        let compiled = lateralis_pleco::compile("app.pleco", schema.as_bytes());
        let schema = compiled.schema.expect("the test's schema is right");
        let header = lateralis_pleco::generate::c_header(&schema);
        fs::write(self.path(&format!("{name}.h")), header).unwrap();
        let source = self.path(&format!("{name}.c"));
        fs::write(&source, format!("#include \"{name}.h\"\n{main}")).unwrap();
        let binary = self.path(name);
        let tracer = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tracer/c");
        let mut sources: Vec<PathBuf> = fs::read_dir(tracer.join("src"))
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
            .filter(|path| {
                // The restartable sequences of the machine on which the test runs.
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                !name.starts_with("rseq_") || name == format!("rseq_{}", std::env::consts::ARCH)
            })
            .collect();
        sources.sort();
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-g", "-pthread", "-Wl,--build-id"])
            .args(flags)
            .arg("-I")
            .arg(tracer.join("include"))
            .arg("-I")
            .arg(&self.root)
            .arg(&source)
            .args(&sources)
            .arg("-o")
            .arg(&binary)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "cannot compile the traced program:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        binary
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if std::env::var_os("KEEP_TEST_FILES").is_none() {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// Output of babeltrace2 for a trace; `None`, with a message, if it is not installed.
pub struct Babeltrace {
    pub lines: Vec<String>,
    pub warnings: String,
}

pub fn babeltrace(trace: &Path) -> Option<Babeltrace> {
    let output = Command::new("babeltrace2")
        .args(["--clock-cycles", "--names=none"])
        .arg(trace.join("ctf"))
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: comparison with babeltrace2: not installed");
        return None;
    };
    let warnings = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "babeltrace2 fails: {warnings}");
    let text = String::from_utf8_lossy(&output.stdout);
    Some(Babeltrace { lines: text.lines().map(str::to_owned).collect(), warnings })
}

/// Words of a command.
pub fn command(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}
