//! What every source file has to look like.

use crate::expect_none;
use crate::files::{self, SourceFile};

/// The crates whose work needs `unsafe`: they stand at the border to the kernel or the processor.
const UNSAFE_CRATES: &[&str] = &[
    "bindings/c",
    "control/launcher",
    "core/ebpf",
    "core/flow",
    "core/mapping",
    "core/port",
    "core/processor",
    "lab",
    "xia/c",
];

/// Lines from which on a file is asked whether it has one subject.
const LONG: usize = 600;

/// Files that are longer, each with its reason.
const LONG_WITH_REASON: &[(&str, &str)] = &[];

/// Words that belong to the machine a file was written on, not to weft. Each is given in two
/// halves, so that the list does not find itself.
const FOREIGN: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("../sha", "red"),
    ("/sha", "red/"),
    ("crates", ".io"),
    ("deb.deb", "ian.org"),
    ("archive.ubu", "ntu.com"),
    ("static.rust", "-lang.org"),
    ("proxy.go", "lang.org"),
];

/// Files that name a registry because a tool wrote them.
const WRITTEN_BY_TOOLS: &[&str] = &["Cargo.lock", "fuzz/Cargo.lock"];

/// Whether a file holds the unit tests of the file beside it, which says what they are about.
fn is_sibling_of_its_subject(path: &str) -> bool {
    path.ends_with("/tests.rs")
}

/// The lines of a Rust file without those of its test module at the end.
fn lines_of_code(text: &str) -> usize {
    let code = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    code.lines().count()
}

#[test]
fn every_module_begins_with_what_it_is() {
    let offences: Vec<_> = files::ending_in(&[".rs"])
        .into_iter()
        .filter(|file| !file.text.starts_with("//! ") && !is_sibling_of_its_subject(&file.path))
        .map(|file| file.path)
        .collect();
    expect_none("modules that do not begin with a `//!` comment:", &offences);
}

#[test]
fn only_crates_at_the_border_to_the_kernel_are_unsafe() {
    let permission = concat!("allow(unsafe", "_code");
    let is_known = |file: &SourceFile| {
        let folder = |name: &&str| file.path.starts_with(&format!("{name}/"));
        UNSAFE_CRATES.iter().any(folder)
    };
    let offences: Vec<_> = files::ending_in(&[".rs"])
        .into_iter()
        .filter(|file| file.text.contains(permission) && !is_known(file))
        .map(|file| file.path)
        .collect();
    expect_none("files that allow themselves `unsafe`:", &offences);
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let mut offences = Vec::new();
    for file in files::ending_in(&[""]) {
        if WRITTEN_BY_TOOLS.contains(&file.path.as_str()) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let foreign = FOREIGN.iter().map(|(a, b)| format!("{a}{b}"));
            for word in foreign.filter(|word| line.contains(word.as_str())) {
                offences.push(format!("{}:{}: {word}", file.path, number + 1));
            }
        }
    }
    expect_none("words that do not belong into weft:", &offences);
}

#[test]
fn no_file_is_half_merged() {
    let is_mark = |line: &str| ["<<<<<<< ", ">>>>>>> "].iter().any(|mark| line.starts_with(mark));
    let half = |file: &files::SourceFile| file.text.lines().any(is_mark);
    let all = files::ending_in(&[""]).into_iter();
    let offences: Vec<_> = all.filter(half).map(|file| file.path).collect();
    expect_none("files with the marks of a conflict:", &offences);
}

#[test]
fn files_have_one_subject() {
    let has_reason = |path: &str| {
        is_sibling_of_its_subject(path) || LONG_WITH_REASON.iter().any(|(known, _)| *known == path)
    };
    let offences: Vec<_> = files::ending_in(&[".rs"])
        .into_iter()
        .map(|file| (lines_of_code(&file.text), file.path))
        .filter(|(lines, path)| *lines > LONG && !has_reason(path))
        .map(|(lines, path)| format!("{path}: {lines} lines"))
        .collect();
    expect_none("files of more than 600 lines, tests not counted:", &offences);
}

#[test]
fn every_reason_for_a_long_file_is_still_needed() {
    for file in files::ending_in(&[".rs"]) {
        let known = LONG_WITH_REASON.iter().any(|(path, _)| *path == file.path);
        assert!(!known || lines_of_code(&file.text) > LONG, "{} is short by now", file.path);
    }
}

#[test]
fn tests_at_the_end_of_a_file_are_not_counted() {
    assert_eq!(lines_of_code("//! A.\nfn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n"), 2);
    assert_eq!(lines_of_code("//! A.\n#[cfg(test)]\nmod tests;\nfn b() {}\n"), 4);
}
