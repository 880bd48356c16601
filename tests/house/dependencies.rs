//! The dependency rule: architectures never import one another.
//!
//! A crate stands in a room, named by its folder. `core/` knows no architecture; an architecture
//! knows `core/` and itself; inside an architecture a protocol or principal knows the one crate
//! that all of them share, never its sibling; `bindings/` offers `core/` to other languages; only the
//! binary, the lab and the tests know all.
//! The rule counts dev- and build-dependencies, too: a test that needs a sibling belongs into
//! `tests/`.

use serde_json::Value;

use crate::{expect_none, workspace};

/// The folders of architectures: none may know another.
const ARCHITECTURES: &[&str] = &["xia", "rina", "ilnp", "ndn", "sdn", "control", "examples"];

/// The folders that may know everything below them.
const KNOW_ALL: &[&str] = &["cli", "lab", "tests"];

/// What a crate of an architecture may use of its own folder. The first row whose folder fits
/// decides; a crate of such an architecture that fits no row may use none of its siblings.
const INSIDE: &[(&str, &[&str])] = &[
    ("control/launcher", &[]),
    ("control/finder", &[]),
    ("control/fea", &[]),
    ("control/bgp", &["control/protocol"]),
    ("control/gateway", &[]),
    ("control/protocol", &[]),
    ("control/rib", &[]),
    // The manager speaks to the launcher in its words.
    ("control/manager", &["control/launcher"]),
    // Routing protocols.
    ("control/*", &["control/protocol"]),
    ("xia/component", &["xia/xip"]),
    ("xia/xip", &[]),
    ("xia/kernel", &["xia/xip"]),
    ("xia/principals/*", &["xia/xip"]),
    ("xia/linkstate", &["xia/xip"]),
    ("xia/sockets", &["xia/xip"]),
    ("xia/c", &["xia/xip", "xia/sockets"]),
    ("xia/push", &["xia/xip"]),
    ("xia/tools", &["xia/xip", "xia/sockets", "xia/push"]),
];

/// One crate's wish to use another, both named by their folders.
#[derive(Clone, Debug, PartialEq)]
struct Edge {
    from: String,
    to: String,
}

impl Edge {
    fn new(from: &str, to: &str) -> Self {
        Self { from: from.to_owned(), to: to.to_owned() }
    }
}

/// The rule that `edge` breaks, if any.
fn broken_rule(edge: &Edge) -> Option<String> {
    let (from, to) = (room(&edge.from), room(&edge.to));
    if to == "tests" {
        return Some("nothing depends on the tests".to_owned());
    }
    if KNOW_ALL.contains(&from) {
        return None;
    }
    if from == "core" || from == "bindings" {
        return (to != "core").then(|| format!("{from}/ depends only on core/"));
    }
    if ARCHITECTURES.contains(&from) {
        return match to {
            "core" => None,
            _ if to == from => broken_inside(edge),
            _ => Some(format!("{from}/ depends only on core/ and its own folder")),
        };
    }
    Some(format!("{from}/ is no room of the house: say in the dependency rule what it may know"))
}

/// The rule that `edge` breaks inside one architecture's folder, if any.
fn broken_inside(edge: &Edge) -> Option<String> {
    let described = INSIDE.iter().any(|(folder, _)| room(folder) == room(&edge.from));
    if !described {
        return None;
    }
    let row = INSIDE.iter().find(|(pattern, _)| fits(&edge.from, pattern));
    let allowed = row.map_or(&[][..], |(_, allowed)| *allowed);
    if allowed.contains(&edge.to.as_str()) {
        return None;
    }
    let subject = row.map_or(edge.from.as_str(), |(pattern, _)| *pattern);
    Some(match allowed {
        [] => format!("{subject} depends on nothing else in its folder"),
        _ => format!("{subject} depends, in its folder, only on {}", allowed.join(", ")),
    })
}

/// The first part of a folder: the room of the house.
fn room(folder: &str) -> &str {
    folder.split('/').next().unwrap_or(folder)
}

/// Whether `folder` is `pattern`, or a direct child of it where the pattern ends in `/*`.
fn fits(folder: &str, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(parent) => folder.strip_prefix(parent).is_some_and(|child| !child.contains('/')),
        None => folder == pattern,
    }
}

/// Every forbidden edge of a graph, in words.
fn offences(edges: &[Edge]) -> Vec<String> {
    let offence = |edge: &Edge| {
        broken_rule(edge).map(|rule| format!("{} uses {}: {rule}", edge.from, edge.to))
    };
    edges.iter().filter_map(offence).collect()
}

/// The edges between the crates of the repository, as cargo knows them.
fn edges(members: &[Value]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for package in members {
        let manifest = package["manifest_path"].as_str().expect("every package has a manifest");
        let from = folder(manifest.trim_end_matches("/Cargo.toml"));
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if let Some(path) = dependency["path"].as_str() {
                edges.push(Edge { from: from.clone(), to: folder(path) });
            }
        }
    }
    edges
}

fn folder(path: &str) -> String {
    workspace::relative(std::path::Path::new(path))
}

#[test]
fn crates_depend_only_on_what_the_house_allows() {
    let edges = edges(&workspace::members());
    assert!(
        edges.contains(&Edge::new("xia/xip", "core/base")),
        "the graph was not read: {edges:?}"
    );
    expect_none("forbidden dependencies:", &offences(&edges));
}

#[test]
fn every_row_about_the_inside_of_an_architecture_is_about_a_crate() {
    let members = workspace::members();
    let folders: Vec<_> = members
        .iter()
        .filter_map(|package| package["manifest_path"].as_str())
        .map(|manifest| folder(manifest.trim_end_matches("/Cargo.toml")))
        .collect();
    for (pattern, allowed) in INSIDE {
        let named = std::iter::once(pattern).chain(*allowed);
        for pattern in named {
            assert!(folders.iter().any(|f| fits(f, pattern)), "{pattern} is no crate");
        }
    }
}

#[test]
fn allowed_edges_pass() {
    let good = [
        Edge::new("core/runtime", "core/base"),
        Edge::new("xia/xip", "core/wire"),
        Edge::new("xia/principals/hid", "xia/xip"),
        Edge::new("xia/principals/hid", "core/keys"),
        Edge::new("xia/tools", "xia/push"),
        Edge::new("bindings/c", "core/flow"),
        Edge::new("rina/efcp", "rina/ipcp"),
        Edge::new("lab", "xia/principals/zf"),
        Edge::new("cli", "lab"),
        Edge::new("tests", "cli"),
    ];
    assert_eq!(offences(&good), Vec::<String>::new());
}

#[test]
fn a_forbidden_edge_is_named_with_both_crates_and_the_rule() {
    let bad = [
        (Edge::new("core/base", "xia/xip"), "core/base uses xia/xip: core/ depends only on core/"),
        (
            Edge::new("bindings/c", "xia/xip"),
            "bindings/c uses xia/xip: bindings/ depends only on core/",
        ),
        (
            Edge::new("xia/xip", "rina/efcp"),
            "xia/xip uses rina/efcp: xia/ depends only on core/ and its own folder",
        ),
        (
            Edge::new("xia/xip", "xia/principals/ad"),
            "xia/xip uses xia/principals/ad: xia/xip depends on nothing else in its folder",
        ),
        (
            Edge::new("xia/principals/ad", "xia/principals/hid"),
            "xia/principals/ad uses xia/principals/hid: \
             xia/principals/* depends, in its folder, only on xia/xip",
        ),
        (
            Edge::new("xia/push", "xia/sockets"),
            "xia/push uses xia/sockets: xia/push depends, in its folder, only on xia/xip",
        ),
        (
            Edge::new("xia/tools", "xia/principals/zf"),
            "xia/tools uses xia/principals/zf: \
             xia/tools depends, in its folder, only on xia/xip, xia/sockets, xia/push",
        ),
        (
            Edge::new("xia/novelty", "xia/xip"),
            "xia/novelty uses xia/xip: xia/novelty depends on nothing else in its folder",
        ),
        (
            Edge::new("control/rib", "lab"),
            "control/rib uses lab: control/ depends only on core/ and its own folder",
        ),
        (Edge::new("lab", "tests"), "lab uses tests: nothing depends on the tests"),
        (
            Edge::new("attic/box", "core/base"),
            "attic/box uses core/base: \
             attic/ is no room of the house: say in the dependency rule what it may know",
        ),
    ];
    for (edge, words) in bad {
        assert_eq!(offences(&[edge]), [words]);
    }
}

#[test]
fn dev_and_build_dependencies_count() {
    let root = workspace::root();
    let package = serde_json::json!({
        "manifest_path": root.join("core/base/Cargo.toml"),
        "dependencies": [
            { "name": "weft-xip", "kind": "dev", "path": root.join("xia/xip") },
            { "name": "weft-lab", "kind": "build", "path": root.join("lab") },
            { "name": "libc", "kind": null },
        ],
    });
    assert_eq!(
        edges(&[package]),
        [Edge::new("core/base", "xia/xip"), Edge::new("core/base", "lab")]
    );
}
