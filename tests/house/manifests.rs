//! What every crate's manifest has to say, and every folder's README.

use std::fs;

use crate::{expect_none, workspace};

/// Folders that hold several crates and so have a README that names them all.
const ROOMS: &[&str] = &["control", "core", "xia"];

#[test]
fn crates_share_licence_edition_and_lints_and_are_not_published() {
    let mut offences = Vec::new();
    for package in workspace::members() {
        let name = package["name"].as_str().expect("every package has a name");
        let manifest = package["manifest_path"].as_str().expect("every package has a manifest");
        let text = fs::read_to_string(manifest).unwrap();
        let mut demand = |met: bool, what: &str| {
            if !met {
                offences.push(format!("{name} {what}"));
            }
        };
        demand(name == "weft" || name.starts_with("weft-"), "is not named weft-…");
        demand(package["license"] == "Apache-2.0 OR MIT", "has another licence");
        demand(package["edition"] == "2024", "has another edition");
        demand(package["rust_version"] == "1.95", "has another minimum Rust");
        demand(package["publish"].as_array().is_some_and(Vec::is_empty), "could be published");
        demand(package["description"].is_string(), "has no description");
        demand(text.contains("[lints]\nworkspace = true"), "does not inherit the lints");
    }
    expect_none("manifests that differ from the workspace:", &offences);
}

#[test]
fn a_folder_of_crates_has_a_readme_that_names_them() {
    let mut offences = Vec::new();
    let members = workspace::members();
    for room in ROOMS {
        let readme = fs::read_to_string(workspace::root().join(room).join("README.md")).unwrap();
        for package in &members {
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let folder = workspace::relative(manifest.trim_end_matches("/Cargo.toml").as_ref());
            if let Some(inside) = folder.strip_prefix(&format!("{room}/"))
                && !readme.contains(&format!("`{inside}`"))
            {
                offences.push(format!("{room}/README.md: `{inside}`"));
            }
        }
    }
    expect_none("crates that the README of their folder does not name:", &offences);
}
