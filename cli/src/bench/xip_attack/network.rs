//! The same flood in a network: packets that come in and leave by ports, through the kernel's engine and the portable
//! one behind it, or through the portable one alone.
//!
//! The network is that of `xip-forward`: a router with four ports and one processor, a source and sinks on another.
//! As many packets come as the engine forwards at most without a flood. Every other one is of the flood, so that the
//! flood has half of the router's peak, as the legitimate packets have. Those that arrive each second count.

use std::time::Duration;

use weft_base::Random;
use weft_xip::forward::SlowPathLimit;

use super::super::measure::{Experiment, Figure};
use super::super::report::{Bound, Goal, Row};
use super::super::xip_engine::zipf::Zipf;
use super::super::xip_forward::cases::{Place, Sides};
use super::super::xip_forward::frames::Form;
use super::super::xip_forward::network;
use super::super::xip_forward::prefixes::{self, Prefix};
use super::super::xip_forward::site::Site;
use super::super::xip_forward::threads::Processors;
use super::super::xip_forward::traffic::{Flood, Sending};
use super::{DOMAINS, EXPONENT, GENEROUS, USUAL, limit};

const PLACE: Place = Place { ports: 4, changes: false };
const PANEL: &str = "Legitimate packets that arrive during a flood";

/// What one experiment is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    /// The kernel's engine is before the portable one.
    kernel: bool,
    /// A new domain comes before a known one.
    deliverable: bool,
    budget: Option<u32>,
}

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in [true, false] {
        for deliverable in [false, true] {
            for budget in [Some(USUAL), Some(GENEROUS), None] {
                if !quick || (kernel && !deliverable && budget != Some(GENEROUS)) {
                    cases.push(Case { kernel, deliverable, budget });
                }
            }
        }
    }
    cases
}

impl Case {
    fn name(&self) -> String {
        let kind = if self.deliverable { "deliverable" } else { "undeliverable" };
        let engine = if self.kernel { "kernel" } else { "portable" };
        let budget =
            self.budget.map_or("no budget".to_owned(), |most| format!("{most} decisions/s"));
        format!("in a network, {kind}, {engine}, {budget}: legitimate packets")
    }

    fn form(&self) -> Form {
        Form::Fallback(usize::from(self.deliverable))
    }

    fn limit(&self) -> Option<SlowPathLimit> {
        self.budget.map(limit)
    }

    pub(super) fn experiment(&self) -> Experiment {
        Experiment {
            peer_name: "the same flood on one cached address".to_owned(),
            figures: vec![Figure { case: self.name(), unit: "packets/s", panel: PANEL }],
            most_runs: None,
        }
    }

    /// What is hoped for with a defence.
    pub(super) fn goal(&self, rows: &[Row]) -> Option<Goal> {
        self.budget.filter(|budget| *budget == USUAL)?;
        let row = rows.iter().find(|row| row.figure.case == self.name());
        let measured = row.map_or(f64::NAN, Row::ratio);
        Some(Goal { name: self.name(), bound: Bound::AtLeast(0.8), measured })
    }
}

/// The network, and what its router forwards at most without a flood.
pub(super) struct Flooded {
    site: Site,
    prefixes: Vec<Prefix>,
    /// By whether the kernel's engine is there, and the form.
    peaks: Vec<((bool, Form), f64)>,
    time: Duration,
}

impl Flooded {
    pub(super) fn new(quick: bool) -> Result<Self, String> {
        network::enter_namespace()?;
        let prefixes = prefixes::prefixes(DOMAINS, &mut Random::from_seed(1));
        let sides = Sides { limited: vec![limit(USUAL), limit(GENEROUS)], ..Sides::default() };
        let forms = [Form::Fallback(0), Form::Fallback(1)];
        let site = Site::new(PLACE, &prefixes, &forms, &sides, Processors::new()?)?;
        let time = Duration::from_millis(if quick { 400 } else { 1000 });
        Ok(Self { site, prefixes, peaks: Vec::new(), time })
    }

    /// Legitimate packets that arrive each second beside a flood.
    pub(super) fn measure(&mut self, case: Case, flood: Flood, run: usize) -> Result<f64, String> {
        let zipf = Zipf::new(self.prefixes.len(), EXPONENT);
        let mut random = Random::from_seed(run as u64);
        let prefixes = &self.prefixes;
        self.site.set_samples(|| prefixes[zipf.draw(&mut random)].destination().octets());
        let pace = Some(self.peak(case)?);
        let sending = Sending { pace, flood: Some(flood) };
        let rate = self.site.flooded(case.form(), case.kernel, case.limit(), sending, self.time)?;
        Ok(rate.arriving)
    }

    fn peak(&mut self, case: Case) -> Result<f64, String> {
        let key = (case.kernel, case.form());
        if let Some((_, peak)) = self.peaks.iter().find(|(of, _)| *of == key) {
            return Ok(*peak);
        }
        let sending = Sending::default();
        let rate = self.site.flooded(case.form(), case.kernel, None, sending, self.time)?;
        self.peaks.push((key, rate.arriving));
        Ok(rate.arriving)
    }
}
