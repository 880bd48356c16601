//! Writes the Rust module of an interface: one struct per record, request and reply, and one enum of
//! all calls.
//!
//! The module is meant for `include!` inside a module of the crate that uses it, which depends on
//! `weft-xrl`. A component matches on `Call::decode`, a caller sends a request; both are checked by the
//! compiler against the interface file.

mod rust;

use std::path::Path;
use std::{env, fs, process};

use crate::Interface;

/// The text of the Rust module for an interface whose file has the text `source`.
///
/// # Panics
/// Never for the interface that was read from `source`.
#[must_use]
pub fn generate(interface: &Interface, source: &str) -> String {
    rust::module(interface, source)
}

/// For build scripts: reads interface files, whose paths are relative to the crate, and writes
/// `NAME.rs` for each into `OUT_DIR`.
///
/// On a mistake it says where and what, and ends the build.
pub fn build(paths: &[&str]) {
    for path in paths {
        println!("cargo::rerun-if-changed={path}");
        if let Err(error) = build_one(Path::new(path)) {
            println!("cargo::error={path}: {error}");
            process::exit(1);
        }
    }
}

fn build_one(path: &Path) -> Result<(), String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let interface = Interface::parse(&text).map_err(|error| error.to_string())?;
    let directory = env::var_os("OUT_DIR").ok_or("not in a build script: OUT_DIR is not set")?;
    let target = Path::new(&directory).join(format!("{}.rs", interface.name));
    fs::write(&target, generate(&interface, &text))
        .map_err(|error| format!("cannot write {}: {error}", target.display()))
}
