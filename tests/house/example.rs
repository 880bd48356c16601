//! The example protocol: what it needs outside of its folder is a line in the registry, and what cargo wants.
//!
//! Reference: Handley et al. (XORP), §1 and §8.3 (a protocol is added without touching what there is).

use crate::files;

const FOLDER: &str = "control/example/";

/// What is about it, and changes nothing: pages, labs, tests.
const ABOUT: &[&str] = &[
    "CHANGELOG.md",
    "control/README.md",
    "docs/",
    "examples/",
    "tests/",
    "cli/tests/",
    "bindings/python/tests/",
];

#[test]
fn the_example_protocol_changes_nothing_outside_of_its_folder_but_these_lines() {
    let is_outside =
        |path: &str| !path.starts_with(FOLDER) && !ABOUT.iter().any(|one| path.starts_with(one));
    let mut found = Vec::new();
    for file in files::ending_in(&[
        ".rs", ".toml", ".xif", ".conf", ".sh", ".py", ".yml", "Makefile", ".md", ".c", ".h",
    ]) {
        if is_outside(&file.path) {
            let names = |line: &&str| line.contains("hearsay") || line.contains("control/example");
            found.extend(
                file.text
                    .lines()
                    .filter(names)
                    .map(|line| format!("{}: {}", file.path, line.trim())),
            );
        }
    }
    println!("outside of {FOLDER} name the example protocol:\n+ {}", found.join("\n+ "));
    assert_eq!(
        found,
        [
            "Cargo.toml: weft-hearsay = { path = \"control/example\" }",
            "cli/Cargo.toml: weft-hearsay.workspace = true",
            "cli/src/registry.rs: weft_hearsay::PROTOCOL,",
        ],
        "a protocol is a line in the registry and two for cargo: derive the rest from the registry"
    );
}
