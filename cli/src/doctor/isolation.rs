//! What stands between the processes of a node.
//!
//! Reference: landlock(7), seccomp(2), cgroups(7), user_namespaces(7).

use weft_launcher::isolate::{Finding, survey};

use super::check::{Check, Subject};

/// What each kind of isolation is needed for.
const SUBJECTS: [Subject; 4] = [
    Subject {
        name: "landlock",
        purpose: "a process of a node reaches no file but its own, and no TCP port",
        required: false,
    },
    Subject {
        name: "seccomp",
        purpose: "a process of a node makes no system call that it has no use for",
        required: false,
    },
    Subject {
        name: "users",
        purpose: "each process of a node has a user of its own, who owns nothing else",
        required: false,
    },
    Subject {
        name: "control-groups",
        purpose: "a process of a node that runs wild leaves the others their processor time and \
                  memory",
        required: false,
    },
];

pub(super) fn checks() -> Vec<Check> {
    let subject = |name| SUBJECTS.into_iter().find(|subject| subject.name == name);
    survey()
        .into_iter()
        .filter_map(|finding| Some(judge(subject(finding.name)?, finding)))
        .collect()
}

fn judge(subject: Subject, finding: Finding) -> Check {
    match finding.missing.is_empty() {
        true => subject.ok(finding.found),
        false => {
            subject.degraded(format!("{}: {}", finding.found, finding.missing), finding.remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[test]
    fn every_finding_is_a_check() {
        let names: Vec<_> = checks().iter().map(|check| check.subject.name).collect();
        assert_eq!(names, SUBJECTS.map(|subject| subject.name));
    }

    #[test]
    fn what_is_missing_degrades_and_can_be_mended() {
        let finding = |missing: &str| Finding {
            name: "landlock",
            found: "version 4".to_owned(),
            missing: missing.to_owned(),
            remedy: "boot Linux 6.12".to_owned(),
        };
        assert_eq!(judge(SUBJECTS[0], finding("")).state, State::Ok);
        let check = judge(SUBJECTS[0], finding("signals are free"));
        assert_eq!((check.state, check.remedy.as_str()), (State::Degraded, "boot Linux 6.12"));
    }
}
