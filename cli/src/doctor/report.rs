//! The findings as text for people and as JSON. Pure.

use serde_json::{Value, json};

use super::check::{Check, Section, State};

/// Whether all is there that `weft demo` requires.
pub(super) fn is_ready(sections: &[Section]) -> bool {
    lacking(sections).next().is_none()
}

/// What `weft demo` requires and this machine has not.
fn lacking(sections: &[Section]) -> impl Iterator<Item = &Check> {
    let checks = sections.iter().flat_map(|section| &section.checks);
    checks.filter(|check| check.subject.required && check.state == State::Missing)
}

/// The report as JSON. Its names are a stable interface.
pub(super) fn json(sections: &[Section]) -> Value {
    let checks: Vec<_> = sections
        .iter()
        .flat_map(|section| section.checks.iter().map(|check| check_json(section.title, check)))
        .collect();
    json!({ "ready": is_ready(sections), "checks": checks })
}

fn check_json(section: &str, check: &Check) -> Value {
    let remedy = (!check.remedy.is_empty()).then_some(&check.remedy);
    json!({
        "section": section,
        "name": check.subject.name,
        "state": check.state.name(),
        "required": check.subject.required,
        "found": check.found,
        "needed_for": check.subject.purpose,
        "remedy": remedy,
    })
}

/// The lines of the report for people. What is well gets one line, unless `verbose` is set.
pub(super) fn text(sections: &[Section], verbose: bool) -> Vec<String> {
    let names = sections.iter().flat_map(|section| &section.checks);
    let width = names.map(|check| check.subject.name.len()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for section in sections {
        lines.push(format!("{}:", section.title));
        for check in &section.checks {
            push_check(check, width, verbose, &mut lines);
        }
        lines.push(String::new());
    }
    lines.push(summary(sections));
    lines
}

fn push_check(check: &Check, width: usize, verbose: bool, lines: &mut Vec<String>) {
    let Check { subject, state, found, remedy } = check;
    lines.push(format!("  {:<8}  {:<width$}  {found}", state.name(), subject.name));
    let indent = " ".repeat(2 + 8 + 2 + width + 2);
    if verbose || *state != State::Ok {
        let required = if subject.required { "; `weft demo` requires it" } else { "" };
        lines.push(format!("{indent}needed for: {}{required}", subject.purpose));
    }
    if !remedy.is_empty() {
        lines.push(format!("{indent}to mend it: {remedy}"));
    }
}

fn summary(sections: &[Section]) -> String {
    let lacking: Vec<_> = lacking(sections).map(|check| check.subject.name).collect();
    let checks = || sections.iter().flat_map(|section| &section.checks);
    let imperfect = checks().filter(|check| check.state != State::Ok).count();
    match (lacking.is_empty(), imperfect) {
        (true, 0) => "this machine is ready for `weft demo`, and nothing is missing".to_owned(),
        (true, 1) => {
            "this machine is ready for `weft demo`; 1 other thing could be better".to_owned()
        }
        (true, many) => {
            format!("this machine is ready for `weft demo`; {many} other things could be better")
        }
        (false, _) => {
            format!("this machine is not ready for `weft demo`: mend {} first", lacking.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Subject;
    use super::*;

    const VETH: Subject = Subject { name: "veth", purpose: "links of a lab", required: true };
    const TSHARK: Subject = Subject { name: "tshark", purpose: "looking closer", required: false };

    fn sections(veth: Check, tshark: Check) -> [Section; 2] {
        [
            Section { title: "network", checks: vec![veth] },
            Section { title: "tools", checks: vec![tshark] },
        ]
    }

    #[test]
    fn what_is_well_takes_one_line_and_what_is_not_says_why_and_how() {
        let sections =
            sections(VETH.ok("works"), TSHARK.missing("not found", "apt-get install tshark"));
        assert_eq!(
            text(&sections, false),
            [
                "network:",
                "  ok        veth    works",
                "",
                "tools:",
                "  missing   tshark  not found",
                "                    needed for: looking closer",
                "                    to mend it: apt-get install tshark",
                "",
                "this machine is ready for `weft demo`; 1 other thing could be better",
            ]
        );
    }

    #[test]
    fn verbose_says_of_everything_what_it_is_for() {
        let sections = sections(VETH.ok("works"), TSHARK.ok("/usr/bin/tshark"));
        assert_eq!(
            text(&sections, true),
            [
                "network:",
                "  ok        veth    works",
                "                    needed for: links of a lab; `weft demo` requires it",
                "",
                "tools:",
                "  ok        tshark  /usr/bin/tshark",
                "                    needed for: looking closer",
                "",
                "this machine is ready for `weft demo`, and nothing is missing",
            ]
        );
    }

    #[test]
    fn only_what_is_required_and_missing_stands_in_the_way_of_the_demo() {
        let ready = |veth, tshark| is_ready(&sections(veth, tshark));
        assert!(ready(VETH.ok(""), TSHARK.missing("", "")));
        assert!(ready(VETH.degraded("", ""), TSHARK.ok("")));
        assert!(!ready(VETH.missing("", ""), TSHARK.ok("")));
        let sections = sections(VETH.missing("", "modprobe veth"), TSHARK.ok(""));
        let last = text(&sections, false).pop();
        let expected = "this machine is not ready for `weft demo`: mend veth first";
        assert_eq!(last.as_deref(), Some(expected));
    }

    #[test]
    fn json_has_every_part_of_every_check() {
        let sections = sections(VETH.ok("works"), TSHARK.missing("not found", "install it"));
        assert_eq!(
            json(&sections),
            json!({
                "ready": true,
                "checks": [
                    {
                        "section": "network", "name": "veth", "state": "ok", "required": true,
                        "found": "works", "needed_for": "links of a lab", "remedy": null,
                    },
                    {
                        "section": "tools", "name": "tshark", "state": "missing",
                        "required": false, "found": "not found",
                        "needed_for": "looking closer", "remedy": "install it",
                    },
                ],
            })
        );
    }
}
