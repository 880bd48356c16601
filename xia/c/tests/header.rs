//! The header and the library agree: its functions, its numbers, and what it says of addresses, which a
//! program in C tries. Sockets need a node; they are tried where there is one, in the tests of the program.
#![allow(clippy::unwrap_used, reason = "what helpers of a test cannot do fails the test")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use weft_c_border::testing::{archive, compile, expect_success, library, shared};
use weft_xip::numbers::{DEFAULT_HOP_LIMIT, MAX_NODES};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The header without its comments.
fn header() -> String {
    let text = fs::read_to_string(here("weft_xia.h")).unwrap();
    let mut parts = text.split("/*");
    let mut code = parts.next().unwrap().to_owned();
    parts.for_each(|part| code.push_str(part.split_once("*/").unwrap().1));
    code
}

/// The names in front of a parenthesis.
fn declared() -> BTreeSet<String> {
    let header = header();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    header
        .match_indices('(')
        .filter_map(|(at, _)| header[..at].rsplit(|c| !is_name(c)).next())
        .filter(|name| name.starts_with("weft_"))
        .map(str::to_owned)
        .collect()
}

/// What a file defines for others.
fn exported(file: &Path, options: &[&str]) -> BTreeSet<String> {
    let output = expect_success(Command::new("nm").args(options).arg(file));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().nth(2)).map(str::to_owned).collect()
}

#[test]
fn the_shared_library_exports_what_the_header_declares_and_nothing_else() {
    let declared = declared();
    assert!(declared.contains("weft_xia_open") && declared.len() > 10, "{declared:?}");
    let exported = exported(&library("libweftxia.so"), &["--dynamic", "--defined-only"]);
    assert_eq!(exported, declared);
}

#[test]
fn the_static_library_has_what_the_header_declares() {
    let options = ["--extern-only", "--defined-only", "--quiet"];
    let mut exported = exported(&library("libweftxia.a"), &options);
    exported.retain(|name| name.starts_with("weft_"));
    assert_eq!(exported, declared());
}

#[test]
fn numbers_of_the_header_are_those_of_the_code() {
    let header = header();
    let defined = |name: &str| -> i64 {
        let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
        line.unwrap().trim_matches(|c| "() ".contains(c)).parse().unwrap()
    };
    assert_eq!(defined("WEFT_XIA_ROWS"), MAX_NODES as i64);
    assert_eq!(defined("WEFT_XIA_ROW"), weft_xip::dag::ROW_LEN as i64);
    assert_eq!(defined("WEFT_XIA_HOP_LIMIT"), i64::from(DEFAULT_HOP_LIMIT));
    assert_eq!(defined("WEFT_XIA_LONGEST"), weft_flow::LONGEST as i64);
    assert_eq!(defined("WEFT_XIA_ARGUMENT"), i64::from(weft_c_border::ARGUMENT));
    assert_eq!(defined("WEFT_XIA_BUG"), i64::from(weft_c_border::BUG));
}

#[test]
fn the_header_stands_alone() {
    let directory = tempfile::tempdir().unwrap();
    let source = directory.path().join("alone.c");
    fs::write(&source, "#include <weft_xia.h>\nint main(void) { return 0; }\n").unwrap();
    let strict = ["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"];
    expect_success(Command::new("cc").args(strict).arg(here("")).arg(&source));
}

/// Compiles the program and runs it.
fn addresses(link: &[OsString]) {
    let directory = tempfile::tempdir().unwrap();
    let program = compile(directory.path(), &here(""), &here("tests/addresses.c"), link);
    expect_success(Command::new(&program).arg(directory.path().join("missing.sock")));
}

#[test]
fn addresses_with_the_shared_library() {
    addresses(&shared("libweftxia.so"));
}

#[test]
fn addresses_with_the_static_library() {
    addresses(&archive("libweftxia.a"));
}
