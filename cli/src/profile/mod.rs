//! `weft profile`: profile points, `profile/1.0` of each component that has some. `weft show profile` shows what they have
//! recorded.
//!
//! Reference: Handley et al., "Designing Extensible IP Router Software" (XORP), §8.2 (there `xorp_profiler`).

mod way;

use clap::Subcommand;
use weft_xrl::ErrorCode;
use weft_xrl::profile::{Clear, Disable, Enable, Marks, Points, PointsReply};

use crate::args::NodeArgs;
use crate::output::{Outcome, print_lines};
use crate::show::Asker;
pub(crate) use way::{Gathered, Passed, Place, rows};

/// Marks that are asked for at once.
const PAGE: u32 = 10_000;
/// Those to which the others tell routes, in the order of the way.
const LAST: [&str; 2] = ["rib", "fea"];

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// Record when routes pass profile points
    #[command(
        after_help = "Examples:\n  weft profile on\n  weft profile on bgp rib/arrived --node r1\n  \
        weft profile on --at-most 1000000"
    )]
    On(OnArgs),
    /// Record it no longer; what was recorded stays
    #[command(after_help = "Examples:\n  weft profile off\n  weft profile off bgp/told")]
    Off(WhatArgs),
    /// Forget what was recorded
    #[command(after_help = "Examples:\n  weft profile clear\n  weft profile clear bgp")]
    Clear(WhatArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OnArgs {
    /// How many marks each component keeps, before it forgets the oldest [default: as it was, at first 65,536]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    at_most: Option<u32>,
    #[command(flatten)]
    what: WhatArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WhatArgs {
    /// Components, or points as in `rib/arrived` [default: all]
    #[arg(value_name = "COMPONENT[/POINT]")]
    what: Vec<String>,
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(command: &ProfileCommand) -> Outcome {
    match command {
        ProfileCommand::On(args) => {
            let asker = Asker::new(&args.what.node)?;
            switch_on(&asker, &args.what.what, args.at_most)?;
            let text = |one: &Place| format!("{}: {}", one.name(), one.help);
            print_lines(gather(&asker)?.places.iter().filter(|one| one.enabled).map(text))?;
        }
        ProfileCommand::Off(args) => {
            let asker = Asker::new(&args.node)?;
            for (component, points) in named(&asker, &args.what)? {
                asker.ask(&component, Disable { points })?;
            }
        }
        ProfileCommand::Clear(args) => {
            let asker = Asker::new(&args.node)?;
            if let Some(point) = args.what.iter().find(|what| what.contains('/')) {
                let note = "all points of a component are forgotten together";
                return Err(format!("{note}: name the component, not `{point}`"));
            }
            for (component, _) in named(&asker, &args.what)? {
                asker.ask(&component, Clear)?;
            }
        }
    }
    Ok(0)
}

/// Switches points on: all if none are named.
///
/// # Errors
/// A sentence that says whom, and why it is not done.
pub(crate) fn switch_on(
    asker: &Asker,
    what: &[String],
    at_most: Option<u32>,
) -> Result<(), String> {
    for (component, points) in named(asker, what)? {
        asker.ask(&component, Enable { points, at_most })?;
    }
    Ok(())
}

/// Which points of which components; no points stand for all.
fn named(asker: &Asker, what: &[String]) -> Result<Vec<(String, Vec<String>)>, String> {
    if what.is_empty() {
        let all = components(asker)?;
        if all.is_empty() {
            return Err("no component of this node has profile points".to_owned());
        }
        return Ok(all.into_iter().map(|(component, _)| (component, Vec::new())).collect());
    }
    let named = what.iter().map(|one| match one.split_once('/') {
        Some((component, point)) => (component.to_owned(), vec![point.to_owned()]),
        None => (one.clone(), Vec::new()),
    });
    Ok(named.collect())
}

/// The components that have profile points, in the order of the way of routes.
fn components(asker: &Asker) -> Result<Vec<(String, PointsReply)>, String> {
    let mut all = Vec::new();
    for target in asker.targets()? {
        match asker.try_ask(&target.instance, Points) {
            Ok(points) => {
                let place = LAST.iter().position(|last| *last == target.class);
                all.push((place.map_or(0, |place| place + 1), target.instance, points));
            }
            // Others have none, and one that died just now cannot tell.
            Err(error)
                if matches!(error.code, ErrorCode::NoSuchMethod | ErrorCode::ResolveFailed) => {}
            Err(error) => return Err(format!("{}: {error}", target.instance)),
        }
    }
    all.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    Ok(all.into_iter().map(|(_, component, points)| (component, points)).collect())
}

/// All that was recorded.
///
/// # Errors
/// A sentence that says who does not answer.
pub(crate) fn gather(asker: &Asker) -> Result<Gathered, String> {
    let mut gathered = Gathered::default();
    for (component, PointsReply { points, lost, .. }) in components(asker)? {
        let first = gathered.places.len();
        gathered.places.extend(points.into_iter().map(|point| Place {
            component: component.clone(),
            point: point.name,
            help: point.help,
            enabled: point.enabled,
        }));
        gathered.lost += lost;
        let mut after = 0;
        loop {
            let request = Marks { after: Some(after), at_most: Some(PAGE) };
            let page = asker.ask(&component, request)?.marks;
            let Some(last) = page.last() else { break };
            after = last.number;
            gathered.marks.extend(page.into_iter().map(|mark| Passed {
                place: first + mark.point as usize,
                time: mark.time,
                net: mark.net,
                gone: mark.gone,
            }));
        }
    }
    let places = gathered.places.len();
    gathered.marks.retain(|mark| mark.place < places);
    // The clock is the same for all; what happens at one time happens in the order of the way.
    gathered.marks.sort_by_key(|mark| (mark.time, mark.place));
    Ok(gathered)
}
