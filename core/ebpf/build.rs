//! Compiles the eBPF programs under `bpf/` with clang.
//!
//! Nothing binary is kept in the repository. Where clang or the headers are missing, the crate is
//! built without the programs, says so in a warning, and reports it again whenever a program is
//! asked for. `CLANG` names another compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGES: &str = "clang, libbpf-dev and linux-libc-dev";

fn main() {
    println!("cargo:rustc-check-cfg=cfg(weft_bpf)");
    println!("cargo:rerun-if-env-changed=CLANG");
    let source = Path::new("bpf/loss.bpf.c");
    println!("cargo:rerun-if-changed={}", source.display());

    match compile(source) {
        Outcome::Built => println!("cargo:rustc-cfg=weft_bpf"),
        Outcome::Skipped(reason) => {
            println!("cargo:warning=no ebpf loss program: {reason}; install {PACKAGES}");
            println!("cargo:rustc-env=WEFT_BPF_SKIPPED={reason}");
            // Installing a package touches this directory, which brings cargo back here.
            println!("cargo:rerun-if-changed=/usr/bin");
        }
        Outcome::Broken(message) => panic!("{} does not compile:\n{message}", source.display()),
    }
}

enum Outcome {
    Built,
    /// The machine lacks something, in one line.
    Skipped(String),
    /// The program itself is wrong.
    Broken(String),
}

fn compile(source: &Path) -> Outcome {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let object = PathBuf::from(variable("OUT_DIR")).join("loss.bpf.o");
    let little = variable("CARGO_CFG_TARGET_ENDIAN") == "little";
    let output = Command::new(&clang)
        .args(["-O2", "-Wall", "-Werror"])
        // Maps are described by BTF, which needs debug information.
        .args(["-g", "-ffile-prefix-map=bpf=weft", "-fdebug-compilation-dir=."])
        .args(["-target", if little { "bpfel" } else { "bpfeb" }])
        // Version 3 has atomic additions that return the old value (Linux 5.12).
        .arg("-mcpu=v3")
        // asm/types.h lives in the directory of the architecture on Debian and Ubuntu.
        .arg(format!("-I/usr/include/{}-linux-gnu", variable("CARGO_CFG_TARGET_ARCH")))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .output();
    match output {
        Err(error) => Outcome::Skipped(format!("{clang} cannot be run ({error})")),
        Ok(output) if output.status.success() => Outcome::Built,
        Ok(output) => {
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            match missing_part(&message) {
                Some(part) => Outcome::Skipped(part),
                None => Outcome::Broken(message),
            }
        }
    }
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
