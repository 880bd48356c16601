//! `weft bench zfilter`: filters of multicast trees at a node with 10,000 link identifiers, in memory, on one core.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009, §3 (filters,
//! false positives ρ^k); Machado et al., "Linux XIA", §5.3.
//!
//! A filter is that of a tree with one link of the node and with links elsewhere, as many as are needed for its number
//! of one bits. No two packets have the same filter. What is timed is the principal's whole answer, the
//! list of branches included. The peer compares the same filters with the same links one by one, three words
//! each without a branch, and makes the same list.
//!
//! The links lead to 64 gateways, as those of a router with as many ports and many virtual links do, or each to one of
//! its own, which is the worst case: every false positive is a branch. With half of the bits set there are some
//! three hundred.
//!
//! The matches beyond the filter's own link are the false positives. They are held against ρ^k, the formula
//! of the source, and against what it approximates: that a link's k bits, which all differ, are among the f that
//! are set, f(f−1)…(f−k+1) / m(m−1)…(m−k+1). The bench stops if both sides do not find the same.

use std::hint::black_box;
use std::time::Duration;

use weft_base::{Instant, Random};
use weft_xia_zf::{
    DEFAULT_LINK_BITS, FILTER_BITS, ZFilter, false_positive_rate, fill, link_identifier,
};
use weft_xip::principal::{Branch, Principal};
use weft_xip::words::WordError;
use weft_xip::{Xid, XidType};

use super::measure::{Bench, Experiment, Figure, Plan, Session};
use super::report::{Bound, Goal, Row};
use super::xip_engine::stopwatch::Stopwatch;

/// Link identifiers of the node.
const LINKS: usize = 10_000;
const GATEWAYS: [usize; 2] = [64, LINKS];
/// One bits of the filters, in hundredths of all.
const FILLS: [u32; 5] = [10, 20, 30, 40, 50];
/// Filters whose look-ups are timed together.
const BATCH: usize = 64;
/// The part of the batches that took longest, which others have interrupted.
const INTERRUPTED: f64 = 0.05;

/// The benchmark.
pub(super) struct ZFilterBench;

#[derive(Clone, Copy, Debug)]
enum Case {
    /// Look-ups at a node with so many gateways.
    Speed { gateways: usize, fill: u32 },
    /// False positives, beside ρ^k or beside what it approximates.
    False { fill: u32, exact: bool },
}

fn cases() -> Vec<Case> {
    let speed = |gateways| FILLS.map(|fill| Case::Speed { gateways, fill });
    let wrong = |exact| FILLS.map(|fill| Case::False { fill, exact });
    [GATEWAYS.map(speed), [false, true].map(wrong)].concat().concat()
}

impl Case {
    fn name(&self) -> String {
        match self {
            Self::Speed { gateways, fill } => format!("{gateways} gateways, {fill} % of bits set"),
            Self::False { fill, exact: false } => format!("false positives, {fill} % of bits set"),
            Self::False { fill, exact: true } => {
                format!("false positives, {fill} % of bits set, bits all differ")
            }
        }
    }

    fn experiment(&self) -> Experiment {
        let (peer_name, unit, panel) = match self {
            Self::Speed { .. } => ("each link compared", "packets/s", "filters matched"),
            Self::False { exact: false, .. } => ("ρ^k", "per million", "false positives"),
            Self::False { exact: true, .. } => {
                ("k different bits of f in m", "per million", "false positives")
            }
        };
        let figure = Figure { case: self.name(), unit, panel };
        Experiment { peer_name: peer_name.to_owned(), figures: vec![figure], most_runs: None }
    }
}

impl Bench for ZFilterBench {
    fn name(&self) -> &'static str {
        "zfilter"
    }

    fn summary(&self) -> &'static str {
        "zFilters matched against 10,000 links a second, and their false positives"
    }

    fn duration(&self, plan: &Plan) -> Duration {
        let searches = filters(plan) * plan.runs * cases().len();
        Duration::from_secs(3) + Duration::from_micros(12) * searches as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        let nodes = GATEWAYS.map(|gateways| Node::new(LINKS, gateways));
        let [few, many] = nodes;
        let nodes = [few, many].into_iter().collect::<Result<_, _>>();
        let nodes = nodes.map_err(|error: WordError| error.to_string())?;
        Ok(Box::new(Filters { nodes, filters: filters(plan) }))
    }
}

/// Filters in one run.
fn filters(plan: &Plan) -> usize {
    if plan.quick { 4096 } else { 32_768 }
}

/// A node's links, in the principal and in a list of which each is compared.
struct Node {
    zf: ZFilter,
    links: Vec<(Words, Branch)>,
}

/// 160 bits.
type Words = [u64; 3];

fn words(xid: &Xid) -> Words {
    let mut words = [0; 3];
    for (index, byte) in xid.id.iter().enumerate() {
        words[index / 8] |= u64::from(*byte) << (8 * (index % 8));
    }
    words
}

fn name(link: usize) -> String {
    format!("link {link}")
}

impl Node {
    fn new(links: usize, gateways: usize) -> Result<Self, WordError> {
        let gateway = |link: usize| {
            let mut id = [0; 20];
            id[..8].copy_from_slice(&((link % gateways) as u64).to_be_bytes());
            Xid::new(XidType::HID, id)
        };
        let mut node = Self { zf: ZFilter::new(), links: Vec::new() };
        for link in 0..links {
            let (name, via) = (name(link), gateway(link));
            let statement = ["route", "link", &name, "via", &via.to_string()];
            node.zf.set(Instant::ZERO, &statement, &mut Vec::new())?;
            let identifier = link_identifier(&name, DEFAULT_LINK_BITS);
            node.links.push((words(&identifier), Branch::To(via)));
        }
        // So that the branches of a gateway come together.
        node.links.sort_unstable_by_key(|(words, branch)| (branch.target(), *words));
        Ok(node)
    }

    /// Compares a filter with every link.
    fn compare(&self, filter: &Xid, branches: &mut Vec<Branch>) {
        let filter = words(filter);
        for (link, branch) in &self.links {
            let missing = (link[0] & !filter[0]) | (link[1] & !filter[1]) | (link[2] & !filter[2]);
            if missing == 0 && branches.last() != Some(branch) {
                branches.push(*branch);
            }
        }
    }
}

/// Everything that lasts for all runs.
struct Filters {
    nodes: Vec<Node>,
    filters: usize,
}

/// A filter with this many one bits: one link of the node, and any bits besides. That is what the union with other
/// links is, if only the number of its bits is known, because no bit is more frequent in links than another.
fn filter(bits: u32, links: usize, random: &mut Random) -> Xid {
    let own = random.below(links as u64) as usize;
    let mut filter = link_identifier(&name(own), DEFAULT_LINK_BITS);
    let mut missing = bits.saturating_sub(fill(&filter));
    while missing > 0 {
        let bit = random.below(u64::from(FILTER_BITS)) as usize;
        let (byte, mask) = (&mut filter.id[bit / 8], 1 << (bit % 8));
        missing -= u32::from(*byte & mask == 0);
        *byte |= mask;
    }
    filter
}

fn one_bits(fill: u32) -> u32 {
    FILTER_BITS * fill / 100
}

/// The probability that `k` different bits of all are among the `f` that are set.
fn all_among(k: u32, f: u32) -> f64 {
    (0..k).map(|n| f64::from(f.saturating_sub(n)) / f64::from(FILTER_BITS - n)).product()
}

impl Filters {
    fn random(fill: u32, run: usize) -> Random {
        Random::from_seed(u64::from(fill) << 32 | run as u64)
    }

    /// Filters that are answered in a second.
    fn speed(
        &self,
        case: (usize, u32),
        run: usize,
        answer: impl Fn(&Node, &Xid, &mut Vec<Branch>),
    ) -> f64 {
        let (gateways, fill) = case;
        let place = GATEWAYS.iter().position(|of| *of == gateways);
        let node = &self.nodes[place.expect("every case's number of gateways is in the list")];
        let mut random = Self::random(fill, run);
        let (mut stopwatch, mut branches) = (Stopwatch::new(BATCH), Vec::with_capacity(LINKS));
        for _ in 0..self.filters / BATCH {
            let batch: [Xid; BATCH] =
                std::array::from_fn(|_| filter(one_bits(fill), LINKS, &mut random));
            stopwatch.time(|| {
                for filter in &batch {
                    branches.clear();
                    answer(node, filter, &mut branches);
                    black_box(&branches);
                }
            });
        }
        1e9 / stopwatch.mean_without(INTERRUPTED)
    }

    /// How many of a million links are in a filter that none of them was put into.
    fn false_positives(&self, fill: u32, run: usize) -> Result<f64, String> {
        let node = &self.nodes[GATEWAYS.len() - 1];
        let mut random = Self::random(fill, run);
        let (mut found, mut expected, mut matches) = (Vec::new(), Vec::new(), 0);
        for _ in 0..self.filters {
            let filter = filter(one_bits(fill), node.links.len(), &mut random);
            found.clear();
            node.zf.lookup(&filter, &mut found);
            found.sort_unstable_by_key(Branch::target);
            expected.clear();
            node.compare(&filter, &mut expected);
            if found != expected {
                return Err(format!(
                    "the filter {filter} has {} links, and {} are found",
                    expected.len(),
                    found.len()
                ));
            }
            matches += found.len() - 1;
        }
        Ok(1e6 * matches as f64 / (self.filters * (node.links.len() - 1)) as f64)
    }

    /// What is to be expected of the same filters.
    fn expected(&self, of_fill: u32, exact: bool, run: usize) -> f64 {
        let links = self.nodes[GATEWAYS.len() - 1].links.len();
        let mut random = Self::random(of_fill, run);
        let rates = (0..self.filters).map(|_| {
            let filter = filter(one_bits(of_fill), links, &mut random);
            match exact {
                true => all_among(DEFAULT_LINK_BITS, fill(&filter)),
                false => false_positive_rate(&filter, DEFAULT_LINK_BITS),
            }
        });
        1e6 * rates.sum::<f64>() / self.filters as f64
    }
}

impl Session for Filters {
    fn experiments(&self) -> Vec<Experiment> {
        cases().iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        Ok(vec![match cases()[experiment] {
            Case::Speed { gateways, fill } => {
                self.speed((gateways, fill), run, |node, filter, branches| {
                    black_box(node.zf.lookup(filter, branches));
                })
            }
            Case::False { fill, .. } => self.false_positives(fill, run)?,
        }])
    }

    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String> {
        Ok(vec![match cases()[experiment] {
            Case::Speed { gateways, fill } => self.speed((gateways, fill), run, Node::compare),
            Case::False { fill, exact } => self.expected(fill, exact, run),
        }])
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let row = |case: Case| rows.iter().find(|row| row.figure.case == case.name());
        let speed = |gateways| Goal {
            name: format!("filters half full matched per second, {gateways} gateways, in millions"),
            bound: Bound::AtLeast(1.0),
            measured: row(Case::Speed { gateways, fill: 50 })
                .map_or(f64::NAN, |row| row.weft.median() / 1e6),
        };
        let wrong = |bound| Goal {
            name: "false positives of filters half full, over what is expected".to_owned(),
            bound,
            measured: row(Case::False { fill: 50, exact: true }).map_or(f64::NAN, Row::ratio),
        };
        let [few, many] = GATEWAYS.map(speed);
        vec![few, many, wrong(Bound::AtMost(1.05)), wrong(Bound::AtLeast(0.95))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_have_their_bits_and_a_link_of_the_node() {
        let mut random = Random::from_seed(1);
        for fill_of in FILLS {
            let filter = filter(one_bits(fill_of), 50, &mut random);
            assert_eq!(fill(&filter), one_bits(fill_of), "{fill_of} %");
            let node = Node::new(50, 50).unwrap();
            let mut found = Vec::new();
            node.compare(&filter, &mut found);
            assert!(!found.is_empty());
        }
    }

    #[test]
    fn both_sides_find_the_same_and_as_much_as_is_expected() {
        let nodes = GATEWAYS.map(|gateways| Node::new(300, gateways.min(300)).unwrap());
        let filters = Filters { nodes: nodes.into(), filters: 400 };
        for fill in [30, 50] {
            let (found, expected) =
                (filters.false_positives(fill, 0).unwrap(), filters.expected(fill, true, 0));
            assert!((found / expected - 1.0).abs() < 0.3, "{fill} %: {found} for {expected}");
            assert!(expected < filters.expected(fill, false, 0));
        }
        assert_eq!((all_among(5, 160), all_among(5, 4)), (1.0, 0.0));
    }

    #[test]
    fn cases_have_names_of_their_own() {
        let mut names: Vec<_> = cases().iter().map(Case::name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), cases().len());
    }
}
