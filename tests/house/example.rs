//! The example protocol and the example principal: what each needs outside of its folder is a line in the registry, and
//! what cargo wants.
//!
//! Reference: Handley et al. (XORP), §1 and §8.3 (a protocol is added without touching what there is); Machado et al.
//! (Linux XIA), §4.1 (a principal is).

use crate::files;

/// What is about them, and changes nothing: pages, labs, tests.
const ABOUT: &[&str] = &[
    "CHANGELOG.md",
    "control/README.md",
    "xia/README.md",
    "docs/",
    "examples/",
    "tests/",
    "cli/tests/",
    "bindings/python/tests/",
];

/// Checks that outside of `folder` exactly these `lines` contain one of the `names`.
fn check(folder: &str, names: &[&str], lines: &[&str]) {
    let is_outside =
        |path: &str| !path.starts_with(folder) && !ABOUT.iter().any(|one| path.starts_with(one));
    let mut found = Vec::new();
    for file in files::ending_in(&[
        ".rs", ".toml", ".xif", ".conf", ".sh", ".py", ".yml", "Makefile", ".md", ".c", ".h",
    ]) {
        if is_outside(&file.path) {
            let is_named = |line: &&str| names.iter().any(|name| line.contains(name));
            let line = |line: &str| format!("{}: {}", file.path, line.trim());
            found.extend(file.text.lines().filter(is_named).map(line));
        }
    }
    println!("outside of {folder} name the example:\n+ {}", found.join("\n+ "));
    assert_eq!(
        found, lines,
        "an example is a line in the registry and two for cargo: derive the rest from the registry"
    );
}

#[test]
fn the_example_protocol_changes_nothing_outside_of_its_folder_but_these_lines() {
    check(
        "control/example/",
        &["hearsay", "control/example"],
        &[
            "Cargo.toml: weft-hearsay = { path = \"control/example\" }",
            "cli/Cargo.toml: weft-hearsay.workspace = true",
            "cli/src/registry.rs: weft_hearsay::PROTOCOL,",
        ],
    );
}

#[test]
fn the_example_principal_changes_nothing_outside_of_its_folder_but_these_lines() {
    check(
        "xia/principals/example/",
        &["xia-example", "xia_example", "principals/example", "0x10ff"],
        &[
            "Cargo.toml: weft-xia-example = { path = \"xia/principals/example\" }",
            "cli/Cargo.toml: weft-xia-example.workspace = true",
            "cli/src/registry.rs: \
             .with_statements(\"example\", weft_xia_example::STATEMENTS, weft_xia_example::nearest)",
        ],
    );
}
