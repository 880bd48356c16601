//! What can go wrong with a lab, said in sentences that name the remedy.

use std::io;
use std::path::PathBuf;

use weft_config::Errors;

/// Why a lab could not be built, or why its scenario failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The lab file has mistakes.
    #[error("{0}")]
    File(#[from] Errors),
    /// The lab cannot be used in this way.
    #[error("{0}")]
    Usage(String),
    /// The process lacks a privilege.
    #[error("{0}")]
    NotPermitted(String),
    /// A program of the system is missing.
    #[error(
        "the program `{program}` is missing: install it, on Debian and Ubuntu with `apt-get install {package}`"
    )]
    Missing {
        /// Its name.
        program: &'static str,
        /// The package that has it.
        package: &'static str,
    },
    /// A file could not be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Disk {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("cannot {action}: {reason}")]
    System {
        /// What was tried.
        action: String,
        /// Why it failed.
        reason: String,
    },
    /// A step of the scenario failed.
    #[error("{place}: the step `{step}` failed: {reason}")]
    Step {
        /// Where it stands: file, line and column.
        place: String,
        /// The step as it stands there.
        step: String,
        /// Why it failed.
        reason: String,
    },
    /// The user ended it.
    #[error("ended by {0}")]
    Interrupted(&'static str),
}

impl LabError {
    /// For `map_err`: `action` on `path` failed.
    pub(crate) fn disk<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Disk { action, path: path.into(), source: source.into() }
    }

    /// For `map_err`: `action` failed.
    pub(crate) fn system<E: std::fmt::Display>(
        action: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        move |reason| Self::System { action: action.into(), reason: reason.to_string() }
    }
}
