//! What a check is and what comes of it.

/// How well something can be done here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// It works with less, or something else takes its place.
    Degraded,
    /// It cannot be done.
    Missing,
}

impl State {
    /// Its name, in text and JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Missing => "missing",
        }
    }
}

/// A thing that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    /// Its name, the same in every release.
    pub(super) name: &'static str,
    /// What it is needed for.
    pub(super) purpose: &'static str,
    /// Whether `weft demo` cannot do without.
    pub(super) required: bool,
}

/// What came of checking a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) subject: Subject,
    pub(super) state: State,
    /// What was found.
    pub(super) found: String,
    /// How to mend it; empty if there is nothing to mend.
    pub(super) remedy: String,
}

impl Subject {
    /// All is well.
    pub(super) fn ok(self, found: impl Into<String>) -> Check {
        Check { subject: self, state: State::Ok, found: found.into(), remedy: String::new() }
    }

    /// It is there in part.
    pub(super) fn degraded(self, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        let (found, remedy) = (found.into(), remedy.into());
        Check { subject: self, state: State::Degraded, found, remedy }
    }

    /// It is not there.
    pub(super) fn missing(self, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        let (found, remedy) = (found.into(), remedy.into());
        Check { subject: self, state: State::Missing, found, remedy }
    }
}

/// Checks that belong together.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) checks: Vec<Check>,
}
