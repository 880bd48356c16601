//! Compiles eBPF programs in C with clang, for the build scripts of crates that embed them.
//!
//! Nothing binary is kept in the repository. Where clang or the headers are missing, a crate is built
//! without its programs, says so in a warning, and reports it again whenever a program is asked for.
//! `CLANG` names another compiler.
//!
//! ```no_run
//! // build.rs
//! weft_bpf_build::compile(&["bpf/loss.bpf.c"]);
//! ```
//!
//! The crate then includes `OUT_DIR/loss.bpf.o` if `cfg(weft_bpf)` is set; else `WEFT_BPF_SKIPPED` says why
//! not. The macro `weft_ebpf::embedded` does so.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const PACKAGES: &str = "clang, libbpf-dev and linux-libc-dev";

/// Compiles the programs: files below the directory of the crate that end in `.c`. They are compiled again when they
/// change, or a file that they include by its path.
///
/// # Panics
/// If a program does not compile, or this is no build script.
pub fn compile(sources: &[&str]) {
    println!("cargo:rustc-check-cfg=cfg(weft_bpf)");
    println!("cargo:rerun-if-env-changed=CLANG");
    for source in sources {
        println!("cargo:rerun-if-changed={source}");
    }
    for source in sources {
        match compile_one(Path::new(source)) {
            Outcome::Built(included) => {
                included.iter().for_each(|path| println!("cargo:rerun-if-changed={path}"));
            }
            Outcome::Skipped(reason) => {
                println!("cargo:warning=no ebpf program {source}: {reason}; install {PACKAGES}");
                println!("cargo:rustc-env=WEFT_BPF_SKIPPED={reason}");
                // Installing a package touches this directory, which brings cargo back here.
                println!("cargo:rerun-if-changed=/usr/bin");
                return;
            }
            Outcome::Broken(message) => panic!("{source} does not compile:\n{message}"),
        }
    }
    println!("cargo:rustc-cfg=weft_bpf");
}

enum Outcome {
    /// From this file and these others.
    Built(Vec<String>),
    /// The machine lacks something, in one line.
    Skipped(String),
    /// The program itself is wrong.
    Broken(String),
}

fn compile_one(source: &Path) -> Outcome {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let stem = source.file_stem().map(PathBuf::from).unwrap_or_default();
    let object = PathBuf::from(variable("OUT_DIR")).join(stem).with_extension("bpf.o");
    let rule = object.with_extension("d");
    let little = variable("CARGO_CFG_TARGET_ENDIAN") == "little";
    let output = Command::new(&clang)
        .args(["-O2", "-Wall", "-Werror"])
        // Maps are described by BTF, which needs debug information.
        .args(["-g", "-ffile-prefix-map=bpf=weft", "-fdebug-compilation-dir=."])
        .args(["-target", if little { "bpfel" } else { "bpfeb" }])
        // The programs run on the machine's own processor. Those that reorder reads need barriers.
        .args((variable("CARGO_CFG_TARGET_ARCH") == "x86_64").then_some("-DWEFT_READS_IN_ORDER"))
        // Version 3 has atomic operations that return the old value (Linux 5.12).
        .arg("-mcpu=v3")
        // asm/types.h lives in the directory of the architecture on Debian and Ubuntu.
        .arg(format!("-I/usr/include/{}-linux-gnu", variable("CARGO_CFG_TARGET_ARCH")))
        .args(["-MMD", "-MF"])
        .arg(&rule)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output();
    match output {
        Err(error) => Outcome::Skipped(format!("{clang} cannot be run ({error})")),
        Ok(output) if output.status.success() => {
            Outcome::Built(fs::read_to_string(rule).map(|rule| parts(&rule)).unwrap_or_default())
        }
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            match missing_part(&message) {
                Some(part) => Outcome::Skipped(part),
                None => Outcome::Broken(message),
            }
        }
    }
}

/// What an object file is made of, in a rule for make.
fn parts(rule: &str) -> Vec<String> {
    let (_, parts) = rule.split_once(": ").unwrap_or_default();
    parts.split_whitespace().filter(|part| *part != "\\").map(str::to_owned).collect()
}

/// The header that clang did not find, or that it has no BPF back end; `None` for other errors.
fn missing_part(message: &str) -> Option<String> {
    let line = message
        .lines()
        .find(|line| line.contains("file not found") || line.contains("unable to create target"))?;
    Some(line.trim().to_owned())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name} for build scripts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn included_files_are_parts() {
        let rule = "out/x.bpf.o: bpf/x.bpf.c \\\n  ../other/table.h\n";
        assert_eq!(parts(rule), ["bpf/x.bpf.c", "../other/table.h"]);
    }

    #[test]
    fn what_is_missing_is_told_from_what_is_wrong() {
        let missing = "x.bpf.c:3:10: fatal error: 'bpf/bpf_helpers.h' file not found\n1 error";
        assert_eq!(missing_part(missing).as_deref(), missing.lines().next());
        assert_eq!(missing_part("x.bpf.c:3:10: error: expected ';'\n"), None);
    }
}
