//! What is measured: points around that of the paper, one dimension at a time.
//!
//! Reference: Machado et al., "Linux XIA", §6.3.1 and Figure 5.

use super::frames::Form;

/// Bytes of a frame, link header included, and ports, unless they are what is varied.
pub(in crate::bench) const FRAME_LEN: usize = 256;
const PORTS: usize = 4;

/// What packets are measured with, and what happens meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) form: Form,
    /// Of Zipf's law, by which destinations are drawn.
    pub(super) exponent: f64,
    /// Bytes of a frame, link header included.
    pub(super) len: usize,
    pub(super) ports: usize,
    /// Changes of routes each second.
    pub(super) updates: u32,
}

/// The paper's point.
const PAPER: Point =
    Point { form: Form::Fallback(0), exponent: 1.0, len: FRAME_LEN, ports: PORTS, updates: 0 };

/// Who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Contest {
    /// Both engines beside Linux.
    Engines,
    /// Frames that are moved and nothing more, beside Linux: what no engine can be faster than.
    Redirect,
    /// The kernel engine with one look-up for each edge, beside the one that looks all edges up at once.
    EachEdge,
    /// The portable engine with AF_XDP, beside itself with packet sockets.
    Sockets,
    /// The portable engine with far more packets than it can forward, beside itself with as many as suit it best.
    Overload,
    /// The same while it has a quarter of its processor, so that the source can send ten times as many.
    OverloadOfQuarter,
}

/// What one experiment is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) contest: Contest,
    pub(super) point: Point,
    pub(super) panel: &'static str,
}

const FORMS: &str = "Address forms";
const DISTRIBUTIONS: &str = "Distribution of destinations";
const LENGTHS: &str = "Length of frames";
const PORT_COUNTS: &str = "Ports";
const UPDATES: &str = "Changes of routes";
const EDGES: &str = "One look-up for each edge, beside one for all edges";
const REDIRECT: &str = "Moving frames alone";
const SOCKETS: &str = "AF_XDP, beside packet sockets";
const OVERLOAD: &str = "More packets than can be forwarded";

/// The updates at which a goal is set.
pub(super) const MANY_UPDATES: u32 = 100_000;

/// The cases, of the quick benchmark or of the whole one.
pub(super) fn cases(quick: bool) -> Vec<Case> {
    let engines = |panel, point| Case { contest: Contest::Engines, point, panel };
    let mut cases = Vec::new();
    if quick {
        for exponent in [1.0, 0.5] {
            for form in [Form::Fallback(0), Form::Fallback(3)] {
                cases.push(engines(DISTRIBUTIONS, Point { form, exponent, ..PAPER }));
            }
        }
        return cases;
    }
    for step in 0..=8 {
        let exponent = f64::from(step) * 0.25;
        cases.push(engines(DISTRIBUTIONS, Point { exponent, ..PAPER }));
    }
    for exponent in [1.0, 2.0] {
        let point = Point { exponent, ..PAPER };
        cases.push(Case { contest: Contest::Redirect, point, panel: REDIRECT });
    }
    for form in [Form::Fallback(1), Form::Fallback(2), Form::Fallback(3), Form::Via] {
        cases.push(engines(FORMS, Point { form, ..PAPER }));
    }
    for form in [Form::Fallback(3), Form::Via] {
        cases.push(engines(FORMS, Point { form, exponent: 0.5, ..PAPER }));
    }
    for len in [64, 128, 512, 1024, 1500] {
        cases.push(engines(LENGTHS, Point { len, ..PAPER }));
    }
    for ports in [2, 8] {
        cases.push(engines(PORT_COUNTS, Point { ports, ..PAPER }));
    }
    for updates in [100, 1000, 10_000, MANY_UPDATES] {
        cases.push(engines(UPDATES, Point { updates, ..PAPER }));
    }
    for len in [64, FRAME_LEN, 1500] {
        let point = Point { len, ..PAPER };
        cases.push(Case { contest: Contest::Sockets, point, panel: SOCKETS });
    }
    for contest in [Contest::Overload, Contest::OverloadOfQuarter] {
        cases.push(Case { contest, point: PAPER, panel: OVERLOAD });
    }
    for form in [Form::Fallback(0), Form::Fallback(3)] {
        for exponent in [0.5, 1.0] {
            let point = Point { form, exponent, ..PAPER };
            cases.push(Case { contest: Contest::EachEdge, point, panel: EDGES });
        }
    }
    cases
}

/// Where a case is measured. Routes change in a place of their own: each form of packets that caches know makes a
/// change more work, and one form is the paper's point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::bench) struct Place {
    pub(in crate::bench) ports: usize,
    /// Routes change here.
    pub(in crate::bench) changes: bool,
}

/// The forms of packets that have to be known at a place, and whether the engine with one look-up for each edge is
/// needed there, too.
pub(super) fn needs(cases: &[Case], place: Place) -> (Vec<Form>, bool) {
    let here: Vec<_> = cases.iter().filter(|case| case.place() == place).collect();
    let mut forms: Vec<_> = here.iter().map(|case| case.point.form).collect();
    forms.sort_unstable();
    forms.dedup();
    let each_edge = here.iter().any(|case| case.contest == Contest::EachEdge);
    (forms, each_edge)
}

impl Case {
    /// Whether more packets come than can be forwarded.
    pub(super) fn is_overload(&self) -> bool {
        matches!(self.contest, Contest::Overload | Contest::OverloadOfQuarter)
    }

    pub(super) fn place(&self) -> Place {
        Place { ports: self.point.ports, changes: self.point.updates > 0 }
    }

    /// What its point is called: whatever differs from the paper's, and form and exponent always.
    pub(super) fn name(&self) -> String {
        let Point { form, exponent, len, ports, updates } = self.point;
        let mut name = match form {
            Form::Fallback(unknown) => format!("FB{unknown}"),
            Form::Via => "VIA".to_owned(),
            Form::Ip => "IP".to_owned(),
        };
        name += &format!(", Zipf {exponent}");
        if len != PAPER.len {
            name += &format!(", {len} bytes");
        }
        if ports != PAPER.ports {
            name += &format!(", {ports} ports");
        }
        if updates != PAPER.updates {
            name += &format!(", {updates} updates/s");
        }
        name
    }

    /// How many times as fast as Linux forwards IPv4 the kernel engine shall be.
    pub(super) fn kernel_goal(&self) -> Option<f64> {
        let is_plain = Point { form: PAPER.form, exponent: PAPER.exponent, ..self.point } == PAPER;
        if self.contest != Contest::Engines || !is_plain {
            return None;
        }
        match self.point.form {
            Form::Fallback(0) | Form::Via => {
                Some(if self.point.exponent >= 1.0 { 4.0 } else { 3.5 })
            }
            Form::Fallback(3) => Some(2.5),
            _ => None,
        }
    }

    /// How many times as fast as Linux forwards IPv4 the portable engine shall be.
    pub(super) fn portable_goal(&self) -> Option<f64> {
        self.kernel_goal().map(|_| 0.8)
    }

    /// Whether this is `other` with changes of routes.
    pub(super) fn is_with_updates(&self, other: &Self) -> bool {
        self.contest == other.contest
            && self.point.updates > 0
            && Point { updates: 0, ..self.point } == other.point
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_cases_have_names_of_their_own_and_the_paper_s_point_is_one() {
        for quick in [false, true] {
            let cases = cases(quick);
            let names: HashSet<_> =
                cases.iter().map(|case| (case.contest as usize, case.name())).collect();
            assert_eq!(names.len(), cases.len());
            let paper = |case: &&Case| case.contest == Contest::Engines && case.point == PAPER;
            assert_eq!(cases.iter().filter(paper).count(), 1);
        }
    }

    #[test]
    fn the_case_with_most_updates_has_one_without_beside_it() {
        let cases = cases(false);
        let many = cases.iter().find(|case| case.point.updates == MANY_UPDATES).unwrap();
        assert_eq!(cases.iter().filter(|case| many.is_with_updates(case)).count(), 1);
    }
}
