//! What is measured: every row of the report.

use super::traffic::Form;
use super::{world, zipf};
use crate::bench::measure::{Experiment, Figure};

/// Exponents of the full run; the quick one has the ends of the range in which Linux XIA was slower
/// than IP, and 1.0.
const EXPONENTS: [f64; 6] = [0.0, 0.5, 0.8, 1.0, 1.2, 1.5];
const QUICK_EXPONENTS: [f64; 2] = [0.0, 1.0];
/// How many of the decisions one change makes stale.
const STALE: [usize; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

const FORMS: &str = "Address forms, Zipf exponent 1.0";
const DISTRIBUTIONS: &str = "Distribution of destinations";
const MISSES: &str = "Without a decision in the cache";
const FULL_TABLE: &str = "LPM, a full table";
const MULTICAST: &str = "Multicast, by number of copies";
const MEMORY: &str = "Memory of a table with 462,150 domains";
const UPDATES: &str = "A route is changed";
const INVALIDATION: &str = "Entries forgotten, of 1,000,000";

/// How the forwarder is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Single,
    Batch,
}

const MODES: [(Mode, &str); 2] = [(Mode::Single, "single"), (Mode::Batch, "batch")];

/// What the routing cache has to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cache {
    /// Every decision is there.
    Warm,
    /// No decision is there: the addresses are new, and go into the cache.
    Missing,
    /// It is switched off.
    Off,
}

/// What one row of the report is about.
#[derive(Clone, Debug)]
pub(super) enum Case {
    /// Packets of this form are routed.
    Packets { form: Form, exponent: f64, mode: Mode, cache: Cache, figure: Figure },
    /// Packets to identifiers that lie in one of many prefixes are routed.
    FullTable { mode: Mode, cache: Cache, figure: Figure },
    /// Routes are replaced; a decision rests on each, or none does.
    Updates { is_used: bool, figure: Figure },
    /// A change makes this many decisions stale.
    Invalidation { entries: usize, figure: Figure },
    /// The memory that a table takes.
    Memory,
    /// The memory that the cache takes for a decision.
    CacheMemory,
}

pub(super) fn exponents(quick: bool) -> &'static [f64] {
    if quick { &QUICK_EXPONENTS } else { &EXPONENTS }
}

pub(super) fn cases(quick: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut both = |form, exponent, cache, panel, name: &str| {
        for (mode, word) in MODES {
            let figure = Figure { case: format!("{name}, {word}"), unit: "ns/packet", panel };
            cases.push(Case::Packets { form, exponent, mode, cache, figure });
        }
    };
    both(Form::Host, 1.0, Cache::Warm, FORMS, "HID, a neighbour");
    both(Form::Fallback(0), 1.0, Cache::Warm, FORMS, "FB0: AD redirected to HID");
    for unknown in 1..=3 {
        let name = format!("FB{unknown}: {unknown} unknown, then AD");
        both(Form::Fallback(unknown), 1.0, Cache::Warm, FORMS, &name);
    }
    both(Form::Via, 1.0, Cache::Warm, FORMS, "VIA: local AD, then AD");
    both(Form::TwoRedirects, 1.0, Cache::Warm, FORMS, "AD redirected to AD to HID");
    both(Form::Socket, 1.0, Cache::Warm, FORMS, "local HID, then XDP socket");
    for exponent in exponents(quick) {
        let name = format!("FB0, Zipf {exponent}");
        both(Form::Fallback(0), *exponent, Cache::Warm, DISTRIBUTIONS, &name);
    }
    for unknown in [0, 3] {
        let name = format!("FB{unknown} without cache: one look-up per edge and redirect");
        both(Form::Fallback(unknown), 1.0, Cache::Off, MISSES, &name);
    }
    for unknown in [1, 3] {
        let name = format!("FB{unknown}, unknown domains that never came before");
        both(Form::Unique(unknown), 1.0, Cache::Missing, MISSES, &name);
    }
    for links in 1..=world::NEIGHBOURS {
        let name = format!("zFilter, {links} of 4 links");
        both(Form::Filter(links), 1.0, Cache::Warm, MULTICAST, &name);
    }
    for (cache, name) in [
        (Cache::Warm, "LPM, a prefix of a full table"),
        (Cache::Off, "LPM without cache: longest prefix, then HID"),
        (Cache::Missing, "LPM, destinations that never came before"),
    ] {
        for (mode, word) in MODES {
            let case = format!("{name}, {word}");
            let figure = Figure { case, unit: "ns/packet", panel: FULL_TABLE };
            cases.push(Case::FullTable { mode, cache, figure });
        }
    }
    for (is_used, name) in [(false, "no decision rests on it"), (true, "a decision rests on it")] {
        let figure = Figure { case: name.to_owned(), unit: "ns/update", panel: UPDATES };
        cases.push(Case::Updates { is_used, figure });
    }
    for entries in STALE {
        let case = format!("{entries} decisions stale");
        let figure = Figure { case, unit: "us", panel: INVALIDATION };
        cases.push(Case::Invalidation { entries, figure });
    }
    cases.push(Case::Memory);
    cases.push(Case::CacheMemory);
    cases
}

impl Case {
    pub(super) fn experiment(&self) -> Experiment {
        let (peer_name, figure, most_runs) = match self {
            Self::Packets { form, mode, cache, figure, .. } => {
                (peer_name(*form, *mode, *cache), figure.clone(), None)
            }
            Self::FullTable { mode, cache: Cache::Warm, figure } => {
                (peer_name(Form::Host, *mode, Cache::Warm), figure.clone(), None)
            }
            Self::FullTable { mode, figure, .. } => {
                let name = match mode {
                    Mode::Single => "prefix-trie, then hash, one after the other",
                    Mode::Batch => "prefix-trie, then hash, overlapping",
                };
                (name, figure.clone(), None)
            }
            Self::Updates { figure, .. } => ("hash table, value replaced", figure.clone(), None),
            Self::Invalidation { figure, .. } => {
                ("hash table of 1,000,000, as many removed", figure.clone(), None)
            }
            Self::Memory => {
                let figure =
                    Figure { case: "AD table".to_owned(), unit: "bytes/entry", panel: MEMORY };
                ("hash table with 4-byte values", figure, Some(1))
            }
            Self::CacheMemory => {
                let case = "decisions on FB0".to_owned();
                let figure = Figure { case, unit: "bytes/entry", panel: MEMORY };
                ("hash table with 4-byte values", figure, Some(1))
            }
        };
        Experiment { peer_name: peer_name.to_owned(), figures: vec![figure], most_runs }
    }
}

fn peer_name(form: Form, mode: Mode, cache: Cache) -> &'static str {
    match (form, mode, cache) {
        (Form::Filter(_), ..) => "memcpy of the copies",
        (_, Mode::Single, _) => "hash look-ups, one after the other",
        (_, Mode::Batch, Cache::Warm) => "hash look-ups, prefetched by 32",
        (_, Mode::Batch, _) => "hash look-ups, overlapping",
    }
}

/// The distributions that the cases draw from, by their exponents.
pub(super) fn zipfs(domains: usize, quick: bool) -> Vec<(f64, zipf::Zipf)> {
    let zipf = |exponent: &f64| (*exponent, zipf::Zipf::new(domains, *exponent));
    exponents(quick).iter().map(zipf).collect()
}
