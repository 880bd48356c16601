//! How everything is measured: experiments, weft and peer in turn, run after run.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::report::{Detail, Goal, Row};
use super::samples::Samples;

/// How often a measurement that takes long says how far it is, at most.
const PROGRESS: Duration = Duration::from_secs(30);

/// A benchmark: what it is called, what it needs, and how it is set up.
pub(crate) trait Bench: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// One line that says what is measured beside what.
    fn summary(&self) -> &'static str;

    /// Programs of others that it runs as peers or tools, for what the plan includes.
    fn needs(&self, _: &Plan) -> Vec<Program> {
        Vec::new()
    }

    /// About how long it takes on an idle machine, preparation included.
    fn duration(&self, plan: &Plan) -> Duration;

    /// Sets up everything that lasts for all runs.
    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String>;
}

/// A program that has to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// What it is called.
    pub(crate) name: &'static str,
    /// The package of Debian and Ubuntu that brings it.
    pub(crate) package: &'static str,
}

/// How much is measured.
pub(crate) struct Plan {
    /// Less of everything.
    pub(crate) quick: bool,
    /// How often every experiment is run.
    pub(crate) runs: usize,
    /// When no further run must begin that would last longer.
    pub(crate) until: Option<Instant>,
    /// Only experiments with a figure whose case contains this text.
    pub(crate) only: Option<String>,
    /// A table whose prefixes are the destinations, for benchmarks that forward to prefixes.
    pub(crate) prefixes: Option<PathBuf>,
}

impl Plan {
    /// Whether an experiment is measured.
    pub(crate) fn includes(&self, experiment: &Experiment) -> bool {
        let mut cases = experiment.figures.iter().map(|figure| &figure.case);
        self.only.as_ref().is_none_or(|text| cases.any(|case| case.contains(text)))
    }
}

/// A benchmark that was set up.
pub(crate) trait Session {
    /// What is measured.
    fn experiments(&self) -> Vec<Experiment>;

    /// Runs weft's side of an experiment; one value for each of its figures. The number of the
    /// run lets both sides work on the same input, and on another one in the next run.
    fn weft(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String>;

    /// Runs the peer's side, as [`Session::weft`].
    fn peer(&mut self, experiment: usize, run: usize) -> Result<Vec<f64>, String>;

    /// What the rows, one for each figure in order, are held against.
    fn goals(&self, rows: &[Row]) -> Vec<Goal>;

    /// What else was seen, when everything is measured.
    fn details(&mut self) -> Vec<Detail> {
        Vec::new()
    }
}

/// Something that is done once by weft and once by the peer, and yields figures.
pub(crate) struct Experiment {
    /// What weft is compared with.
    pub(crate) peer_name: String,
    /// What is read off; one or more.
    pub(crate) figures: Vec<Figure>,
    /// The most runs that make sense; `None` if every run tells something new.
    pub(crate) most_runs: Option<usize>,
}

/// A quantity that an experiment yields.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// What was measured, unique in the benchmark.
    pub(crate) case: String,
    /// The unit of its values.
    pub(crate) unit: &'static str,
    /// The part of the drawing that it belongs to.
    pub(crate) panel: &'static str,
}

/// The values of one figure so far.
#[derive(Default)]
struct Series {
    weft: Vec<f64>,
    peer: Vec<f64>,
}

/// What came out of all experiments.
pub(crate) struct Measured {
    /// One for each figure, in order.
    pub(crate) rows: Vec<Row>,
    /// Where a peer has failed, and what it said; it has a value less there.
    pub(crate) failures: Vec<String>,
}

/// Runs all experiments of a session, `plan.runs` times or until its time is over. A peer that fails costs its own values
/// only: others may have been measured for an hour.
///
/// # Errors
/// Weft has failed.
pub(crate) fn measure(session: &mut dyn Session, plan: &Plan) -> Result<Measured, String> {
    // A session knows its experiments by their places in the whole list.
    let all = session.experiments().into_iter().enumerate();
    let experiments: Vec<_> = all.filter(|(_, experiment)| plan.includes(experiment)).collect();
    let mut series: Vec<_> = experiments.iter().map(|(_, one)| empty_series(one)).collect();
    let (mut longest, mut said) = (Duration::ZERO, Instant::now());
    let mut failures = Vec::new();
    for run in 0..plan.runs {
        let begin = Instant::now();
        if run > 0 && plan.until.is_some_and(|until| begin + longest > until) {
            eprintln!("the time is over after {run} of {} runs", plan.runs);
            break;
        }
        for ((index, experiment), series) in experiments.iter().zip(&mut series) {
            if experiment.most_runs.is_none_or(|most| run < most)
                && let Err(error) = contest(session, *index, run, series)?
            {
                let failure = format!("run {}: {}: {error}", run + 1, name_of(experiment));
                eprintln!("{failure}");
                failures.push(failure);
            }
            if said.elapsed() >= PROGRESS {
                let case = experiment.figures.last().map_or("", |figure| &figure.case);
                eprintln!("run {} of {}: measured {case}", run + 1, plan.runs);
                said = Instant::now();
            }
        }
        longest = longest.max(begin.elapsed());
    }
    let measured = experiments.iter().zip(series);
    let rows = measured.flat_map(|((_, experiment), series)| rows(experiment, series)).collect();
    Ok(Measured { rows, failures })
}

/// What an experiment is called where no figure is meant: by its peer and its first figure.
fn name_of(experiment: &Experiment) -> String {
    let case = experiment.figures.first().map_or("", |figure| &figure.case);
    format!("{} ({case})", experiment.peer_name)
}

fn empty_series(experiment: &Experiment) -> Vec<Series> {
    experiment.figures.iter().map(|_| Series::default()).collect()
}

/// Runs both sides of an experiment; who begins changes from run to run, because the second finds
/// caches warmed by the first. Returns whether the peer has not failed.
///
/// # Errors
/// Weft has failed.
fn contest(
    session: &mut dyn Session,
    index: usize,
    run: usize,
    series: &mut [Series],
) -> Result<Result<(), String>, String> {
    let (weft, peer) = if run.is_multiple_of(2) {
        let weft = session.weft(index, run)?;
        (weft, session.peer(index, run))
    } else {
        let peer = session.peer(index, run);
        (session.weft(index, run)?, peer)
    };
    for (series, weft) in series.iter_mut().zip(weft) {
        series.weft.push(weft);
    }
    Ok(peer.map(|peer| {
        for (series, peer) in series.iter_mut().zip(peer) {
            series.peer.push(peer);
        }
    }))
}

fn rows(experiment: &Experiment, series: Vec<Series>) -> impl Iterator<Item = Row> {
    experiment.figures.iter().zip(series).map(|(figure, series)| Row {
        figure: figure.clone(),
        peer_name: experiment.peer_name.clone(),
        weft: Samples::new(series.weft),
        peer: Samples::new(series.peer),
    })
}
