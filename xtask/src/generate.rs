// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Files in the repository that a program writes: `cargo xtask gen` writes
//! them, `gen --check` says which are not as they would be written.

use crate::notices;
use crate::process;
use crate::steps::{Outcome, Step};
use crate::workspace;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Every generated file is current.
pub const CHECK: Step = Step { name: "gen", run: check };
/// Writes the notices alone, which need no `lat`.
pub const NOTICES: Step = Step { name: "notices", run: || of_notices(write_one) };
/// Writes every generated file.
pub const WRITE: Step = Step { name: "gen", run: write };

/// A generated file, and the `lat` command whose standard output it is.
struct Product {
    path: &'static str,
    command: &'static [&'static str],
}

const PRODUCTS: &[Product] = &[
    Product { path: "docs/reference/cli.md", command: &["reference"] },
    Product {
        path: "tracer/preload/preload.h",
        command: &["pleco", "gen", "tracer/preload/preload.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/include/lat/packet_events.h",
        command: &["pleco", "gen", "spec/packets.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/include/lat/freertos_events.h",
        command: &["pleco", "gen", "spec/freertos.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/include/lat/rtos_events.h",
        command: &["pleco", "gen", "spec/rtos.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/include/lat/zephyr_events.h",
        command: &["pleco", "gen", "spec/zephyr.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/rust/src/packet_events.rs",
        command: &["pleco", "gen", "spec/packets.pleco", "--rust-by-hand", "-"],
    },
    Product {
        path: "tracer/c/compat/composite/composite_events.h",
        command: &["pleco", "gen", "tracer/c/compat/composite/composite.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/compat/barrelfish/barrelfish_events.h",
        command: &["pleco", "gen", "tracer/c/compat/barrelfish/barrelfish.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/compat/sel4/sel4_events.h",
        command: &["pleco", "gen", "tracer/c/compat/sel4/sel4.pleco", "--c", "-"],
    },
    Product {
        path: "tracer/c/compat/genode/genode_events.h",
        command: &["pleco", "gen", "tracer/c/compat/genode/genode.pleco", "--c", "-"],
    },
    Product {
        path: "examples/demo/demo.h",
        command: &["pleco", "gen", "examples/demo/demo.pleco", "--c", "-"],
    },
    Product {
        path: "examples/spikes/spikes.h",
        command: &["pleco", "gen", "examples/spikes/spikes.pleco", "--c", "-"],
    },
    Product {
        path: "examples/slowdown/slowdown.h",
        command: &["pleco", "gen", "examples/slowdown/slowdown.pleco", "--c", "-"],
    },
    Product {
        path: "examples/lockio/lockio.h",
        command: &["pleco", "gen", "examples/lockio/lockio.pleco", "--c", "-"],
    },
    Product {
        path: "crates/cli/src/commands/demo/events.rs",
        command: &["pleco", "gen", "examples/demo/demo.pleco", "--rust-by-hand", "-"],
    },
];

/// `lat` is copied to machines that are looked at. Beyond this see [profile] in Cargo.toml
/// and crates/cli/build.rs.
const LAT_BYTES_MAX: u64 = 30_000_000;

fn check() -> Outcome {
    let mut outcome = are_current();
    let lat = workspace::target().join("debug").join("lat");
    outcome.add(match fs::metadata(&lat).map_or(0, |lat| lat.len()) {
        1..=LAT_BYTES_MAX => Outcome::pass(),
        bytes => Outcome::fail(format!("lat has {bytes} bytes, at most {LAT_BYTES_MAX}")),
    });
    outcome
}

fn are_current() -> Outcome {
    each(|path, current, text| {
        if current == text {
            Outcome::pass()
        } else {
            Outcome::fail(format!("{}: not current: run cargo xtask gen", path.display()))
        }
    })
}

fn write() -> Outcome {
    each(write_one)
}

fn write_one(path: &PathBuf, current: &str, text: &str) -> Outcome {
    if current == text {
        return Outcome::pass();
    }
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| fs::write(path, text)) {
        Ok(()) => {
            println!("wrote {}", path.display());
            Outcome::pass()
        }
        Err(error) => Outcome::fail(format!("{}: {error}", path.display())),
    }
}

fn each(action: fn(&PathBuf, &str, &str) -> Outcome) -> Outcome {
    let mut outcome = of_notices(action);
    let lat = match lat() {
        Ok(lat) => lat,
        Err(error) => {
            outcome.add(Outcome::fail(error));
            return outcome;
        }
    };
    for product in PRODUCTS {
        let path = workspace::root().join(product.path);
        let current = fs::read_to_string(&path).unwrap_or_default();
        let output =
            Command::new(&lat).args(product.command).current_dir(workspace::root()).output();
        outcome.add(match output {
            Ok(output) if output.status.success() => {
                action(&path, &current, &String::from_utf8_lossy(&output.stdout))
            }
            Ok(output) => Outcome::fail(format!(
                "lat {}: {}",
                product.command.join(" "),
                String::from_utf8_lossy(&output.stderr)
            )),
            Err(error) => Outcome::fail(format!("{}: {error}", lat.display())),
        });
    }
    outcome
}

/// The one file that `lat` does not write.
fn of_notices(action: fn(&PathBuf, &str, &str) -> Outcome) -> Outcome {
    match notices::text() {
        Ok(text) => {
            let path = workspace::root().join(notices::PATH);
            action(&path, &fs::read_to_string(&path).unwrap_or_default(), &text)
        }
        Err(error) => Outcome::fail(error),
    }
}

/// Builds `lat` and says where it is.
pub fn lat() -> Result<PathBuf, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--locked", "--package", "lateralis-cli", "--bin", "lat"]);
    let finished = process::run(&mut cargo, "build-lat")?;
    if !finished.success() {
        return Err(format!("cannot build lat\n{}", finished.tail(60)));
    }
    Ok(workspace::target().join("debug").join("lat"))
}
