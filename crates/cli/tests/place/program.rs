// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles programs of examples/ with the tracer.

use super::Place;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

impl Place {
    /// Compiles `examples/NAME/NAME.c`; prints a message and returns `None` if there is no compiler.
    pub fn example(&self, name: &str) -> Option<PathBuf> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        self.compile(name, &root.join("examples").join(name).join(format!("{name}.c")), name)
    }

    /// Compiles a program that uses the schema of an example.
    pub fn compile(&self, name: &str, source: &Path, schema: &str) -> Option<PathBuf> {
        if Command::new("cc").arg("--version").output().is_err() {
            eprintln!("SKIPPED: no C compiler here");
            return None;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tracer = root.join("tracer/c");
        let mut sources: Vec<PathBuf> = fs::read_dir(tracer.join("src"))
            .expect("the tracer's sources")
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
            .collect();
        sources.sort();
        let binary = self.0.join(format!("{name}-program"));
        let output = Command::new("cc")
            .args(["-std=c11", "-O2", "-pthread"])
            .args(["-I".into(), tracer.join("include"), "-I".into(), tracer.join("src")])
            .arg("-I")
            .arg(root.join("examples").join(schema))
            .arg(source)
            .args(&sources)
            .arg("-o")
            .arg(&binary)
            .output()
            .expect("cc");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(binary)
    }

    /// Records a program, with options of `lat record` and arguments of the program.
    pub fn record(&self, to: &str, options: &[&str], program: &Path, arguments: &[&str]) {
        let program = program.to_str().expect("a path of letters");
        let all = [&["record", "--quiet", "-o", to], options, &["--", program], arguments].concat();
        let output = self.lat(&all);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{text}");
    }
}
