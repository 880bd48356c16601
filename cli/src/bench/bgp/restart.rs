//! BGP's part of `weft bench restart`: how long a process of a router with a table of BGP is missed that was killed.
//!
//! The table is that of the other benchmarks, announced by one peer. The router's processes are killed in turn
//! (`kill -9`), the launcher excepted, and from the kill on it is measured when a route that another peer announces just
//! then is in the kernel, and how many changes of other routes the kernel was told of until everything was calm.
//! Behind the kill of BGP itself all peers open their sessions again and announce what they have, and the time is
//! that until the kernel and the second peer have everything, and a route that was announced last.
//!
//! BIRD, beside it, is one process. It is killed and started again at once, as it would be by whoever looks after it.

use std::thread;
use std::time::{Duration, Instant};

use super::super::killed::Process;
use super::super::measure::{Experiment, Figure};
use super::super::report::{Bound, Goal, Row};
use super::load::TABLE;
use super::network::Third;
use super::router::{Kind, Router};
use super::scene::{PATIENCE, Scene, Source, milliseconds, with_router};
use super::speaker::Order;
use super::storm::{send_whole, wait_for_calm};

/// Those that are killed, by their classes, in order.
const PROCESSES: [&str; 5] = ["manager", "finder", "fea", "rib", "bgp"];
const BACK: &str = "until a new route is in the kernel";
const CHANGES: &str = "changes of the kernel";
/// How long a process lives before it is killed; one that dies sooner is given time to think.
const LIFE: Duration = Duration::from_millis(10_100);
/// How often one looks whether a process is there again.
const GLANCE: Duration = Duration::from_millis(1);
/// The most runs that make sense: each takes half a minute.
const MOST_RUNS: usize = 5;

fn case(process: &str, what: &str) -> String {
    format!("{TABLE} routes, {process} killed: {what}")
}

/// What is measured.
pub(in super::super) fn experiment() -> Experiment {
    let figures = |process: &&str| {
        let figure = |what, unit, panel| Figure { case: case(process, what), unit, panel };
        [
            figure(BACK, "ms", "From the kill until a new route is in the kernel"),
            figure(CHANGES, "changes", "The kernel"),
        ]
    };
    Experiment {
        peer_name: "BIRD, killed and started again".to_owned(),
        figures: PROCESSES.iter().flat_map(figures).collect(),
        most_runs: Some(MOST_RUNS),
    }
}

/// What the figures are held against.
pub(in super::super) fn goals(rows: &[Row]) -> Vec<Goal> {
    let measured = |case: &str| {
        let row = rows.iter().find(|row| row.figure.case == case);
        row.map_or(f64::NAN, |row| row.weft.median())
    };
    let goals = |process: &&str| {
        let (back, changes) = (case(process, BACK), case(process, CHANGES));
        [
            Goal {
                measured: measured(&back),
                name: format!("{back}, ms"),
                bound: Bound::AtMost(1_000.0),
            },
            Goal { measured: measured(&changes), name: changes, bound: Bound::AtMost(0.0) },
        ]
    };
    PROCESSES.iter().flat_map(goals).collect()
}

/// Kills each process of weft once.
pub(in super::super) fn weft() -> Result<Vec<f64>, String> {
    with_router(Kind::Weft, TABLE, Third::IsNotTold, |scene| {
        let begin = Instant::now();
        scene.load()?;
        thread::sleep(LIFE.saturating_sub(begin.elapsed()));
        let values = PROCESSES.map(|process| kill(scene, process));
        let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(values.concat())
    })
}

fn kill(scene: &mut Scene<'_>, class: &str) -> Result<[f64; 2], String> {
    let launcher = scene.router.launcher();
    let process = Process::find(launcher, class);
    let process = process.ok_or_else(|| format!("the router has no process of {class}"))?;
    let (before, killed) = (scene.told.operations(), super::Time::now());
    process.kill()?;
    let back = match class {
        "bgp" => sessions_anew(scene)?,
        _ => {
            let (probe, _) = scene.announce(Source::Prober)?;
            scene.told.wait_for(probe, PATIENCE)?
        }
    };
    let until = Instant::now() + PATIENCE;
    while Process::find(launcher, class).is_none_or(|now| now == process) {
        if Instant::now() > until {
            return Err(format!("{class} is not started again"));
        }
        thread::sleep(GLANCE);
    }
    wait_for_calm(scene, PATIENCE)?;
    let changes = scene.told.operations().since(before).sum();
    Ok([milliseconds(back.since(killed)), changes as f64])
}

/// All sessions were lost: the peers open them again and announce what they have; when everything was there.
fn sessions_anew(scene: &mut Scene<'_>) -> Result<super::Time, String> {
    let speakers = |scene: &mut Scene<'_>, work: fn(&mut _) -> Result<(), String>| {
        [&mut scene.injector, &mut scene.sink, &mut scene.prober].into_iter().try_for_each(work)
    };
    speakers(scene, |speaker: &mut super::remote::Speaker| speaker.lost(PATIENCE))?;
    speakers(scene, |speaker| speaker.connect().map(drop))?;
    scene.sink.order(&Order::End)?;
    scene.prober.order(&Order::End)?;
    send_whole(scene)
}

/// Kills BIRD and starts it again; the same values for each process of weft, for it has one.
pub(in super::super) fn peer() -> Result<Vec<f64>, String> {
    let kind = Kind::Bird { has_kernel: true };
    with_router(kind, TABLE, Third::IsNotTold, |scene| {
        scene.load()?;
        let process = Process::numbered(scene.router.launcher()).ok_or("BIRD does not run")?;
        let (before, killed) = (scene.told.operations(), super::Time::now());
        process.kill()?;
        let _again = Router::start(kind, &scene.peers)?;
        let back = sessions_anew(scene)?;
        wait_for_calm(scene, PATIENCE)?;
        let changes = scene.told.operations().since(before).sum();
        let values = [milliseconds(back.since(killed)), changes as f64];
        Ok(values.repeat(PROCESSES.len()))
    })
}
