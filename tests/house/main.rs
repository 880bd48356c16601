//! The house's own rules, checked: who may depend on whom, under which licences, and what every
//! file has to look like.
//!
//! The rules themselves are told in ARCHITECTURE.md and CONTRIBUTING.md. Each check collects every
//! offence before it fails, so that one run shows all there is to mend.

mod dependencies;
mod example;
mod files;
mod licences;
mod links;
mod manifests;
mod sources;
mod workspace;

/// Fails with all `offences`, one a line, below the `rule` that they break.
#[track_caller]
fn expect_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}\n  {}\n", offences.join("\n  "));
}
