//! For tests of libraries for C: programs are compiled against the library of this build, and run.
//!
//! Panics where a test cannot go on, with what was said.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where this build put a library: beside the test.
#[must_use]
pub fn library(name: &str) -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name(name);
    assert!(path.exists(), "{} was not built", path.display());
    path
}

/// Runs a command, which must succeed.
#[track_caller]
pub fn expect_success(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let said = [&output.stdout[..], &output.stderr].concat();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&said));
    output
}

/// What links a program with a shared library, which it finds where it is now.
#[must_use]
pub fn shared(name: &str) -> Vec<OsString> {
    let library = library(name);
    let mut path = OsString::from("-Wl,-rpath,");
    path.push(library.parent().unwrap());
    vec![library.into(), path]
}

/// What links a program with a static library.
#[must_use]
pub fn archive(name: &str) -> Vec<OsString> {
    let others = ["-lpthread", "-ldl", "-lm"].map(OsString::from);
    [&[library(name).into()][..], &others].concat()
}

/// Compiles a program in C11, without a warning, with a header of folder `include`; returns where it is, in
/// `directory`, under the name of its source.
#[must_use]
pub fn compile(directory: &Path, include: &Path, source: &Path, link: &[OsString]) -> PathBuf {
    let program = directory.join(source.file_stem().unwrap());
    expect_success(
        Command::new("cc")
            .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(include)
            .arg(source)
            .args(link)
            .arg("-o")
            .arg(&program),
    );
    program
}
