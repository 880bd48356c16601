//! Links inside the documentation lead somewhere.

use std::path::Path;

use crate::{expect_none, files, workspace};

/// The targets of all Markdown links `[…](target)` in a text, without code blocks.
fn targets(text: &str) -> Vec<&str> {
    let outside_code = text.split("```").step_by(2);
    outside_code
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
        .collect()
}

/// The path in a target, without the place in the page; none if the target is not a file here.
fn path(target: &str) -> Option<&str> {
    let path = target.split('#').next().unwrap_or(target);
    (!path.is_empty() && !path.contains(':')).then_some(path)
}

#[test]
fn links_between_pages_lead_to_a_file() {
    let mut offences = Vec::new();
    for page in files::ending_in(&[".md"]) {
        let file = workspace::root().join(&page.path);
        let folder = file.parent().unwrap_or(Path::new("/"));
        for target in targets(&page.text).into_iter().filter_map(path) {
            if !folder.join(target).exists() {
                offences.push(format!("{}: {target}", page.path));
            }
        }
    }
    expect_none("links to nowhere:", &offences);
}

#[test]
fn every_chapter_is_in_the_summary() {
    let chapters = files::ending_in(&[".md"]);
    let summary = chapters.iter().find(|page| page.path == "docs/src/SUMMARY.md").unwrap();
    let listed = targets(&summary.text);
    let offences: Vec<_> = chapters
        .iter()
        .filter_map(|page| page.path.strip_prefix("docs/src/"))
        .filter(|chapter| *chapter != "SUMMARY.md" && !listed.contains(chapter))
        .map(str::to_owned)
        .collect();
    expect_none("chapters that docs/src/SUMMARY.md does not list:", &offences);
}

#[test]
fn targets_are_found_outside_code_only() {
    let text = "a [b](c.md) and [d](e.md#f)\n```\n[g](h.md)\n```\n[i](https://example.org) [j](#k)";
    let found: Vec<_> = targets(text).into_iter().filter_map(path).collect();
    assert_eq!(found, ["c.md", "e.md"]);
}
