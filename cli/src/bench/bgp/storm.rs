//! `weft bench route-storm`: what happens when the peer goes away that has announced a whole table.
//!
//! * *flap*: the connection is closed and opened again at once; the table is sent anew. How soon the router opens the
//!   session, when everything is again as it was, and how many changes the kernel was told of meanwhile.
//! * *storm*: the connection is closed, and stays so. When the kernel and the second peer have none of its routes any
//!   more; and how long the routes take that another peer announces all the while, beside what they would wait for the
//!   kernel alone.
//! * *ten flaps in ten seconds*: each cuts the table off that is being sent. How many routes the kernel has too many or
//!   too few when the last table was sent whole.
//! * *slow reader*: a third peer that is told everything reads nothing for 20 seconds while the table comes. How long
//!   the others take, how much more memory the router needs than with a peer that reads, and how long the third one
//!   takes when it reads again.

use std::thread;
use std::time::{Duration, Instant};

use super::super::measure::{Bench, Experiment, Figure, Plan, Program, Session};
use super::super::report::{Bound, Detail, Goal, Row};
use super::kernel::{self, Emptied};
use super::load::{FULL, TABLE, peak};
use super::network::Third;
use super::router::{Kind, needs};
use super::scene::{PATIENCE, Scene, Source, milliseconds, with_router};
use super::speaker::Order;

/// Between two probes.
const INTERVAL: Duration = Duration::from_millis(5);
/// So many at most, however long the storm lasts.
const MOST: usize = 4_000;
/// How long nothing has to happen until a flap is over.
const CALM: Duration = Duration::from_secs(1);
/// How often one looks.
const GLANCE: Duration = Duration::from_millis(5);
const FLAPS: usize = 10;
const EACH: Duration = Duration::from_secs(1);
/// How long the slow reader reads nothing.
const PAUSE: Duration = Duration::from_secs(20);

const RECONNECT: &str = "flap, until the session is open again";
const BACK: &str = "flap, until all is as it was";
const CHANGES: &str = "flap, changes of the kernel";
const KERNEL_EMPTY: &str = "storm, until the kernel is empty";
const PEER_EMPTY: &str = "storm, until the second peer is";
const TO_KERNEL: [&str; 2] =
    ["storm, other routes into the kernel, median", "storm, other routes into the kernel, 99 %"];
const TO_PEER: [&str; 2] = [
    "storm, other routes to the second peer, median",
    "storm, other routes to the second peer, 99 %",
];
const WRONG: &str = "ten flaps, routes too many or too few";
const SLOW_LOAD: &str = "slow reader, to the second peer";
const SLOW_KERNEL: &str = "slow reader, into the kernel";
const SLOW_MEMORY: &str = "slow reader, more memory";
const SLOW_BACK: &str = "slow reader, until it has everything";

/// The benchmark.
pub(in super::super) struct RouteStorm;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Storm,
    /// Without the ten flaps, for which others take more than a minute.
    QuickStorm,
    Slow,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    part: Part,
    count: usize,
    peer: Kind,
}

struct Cases {
    all: Vec<Case>,
    /// What the kernel alone makes of it that a table of so many goes.
    alone: Option<(usize, Vec<Emptied>)>,
}

impl Bench for RouteStorm {
    fn name(&self) -> &'static str {
        "route-storm"
    }

    fn summary(&self) -> &'static str {
        "a peer of BGP with a whole table goes, comes back, or does not read, beside BIRD, FRR and GoBGP"
    }

    fn needs(&self, plan: &Plan) -> Vec<Program> {
        let cases = cases(plan.quick);
        needs(plan, cases.iter().map(|case| (case.peer, case.experiment())))
    }

    fn duration(&self, plan: &Plan) -> Duration {
        Duration::from_secs(if plan.quick { 45 } else { 420 }) * plan.runs.min(MOST_RUNS) as u32
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Session>, String> {
        super::check_root()?;
        Ok(Box::new(Cases { all: cases(plan.quick), alone: None }))
    }
}

fn cases(quick: bool) -> Vec<Case> {
    let case = |part, count, peer| Case { part, count, peer };
    let bird = Kind::Bird { has_kernel: true };
    if quick {
        return vec![case(Part::QuickStorm, TABLE, bird)];
    }
    let storms = [bird, Kind::Frr, Kind::GoBgp].map(|peer| case(Part::Storm, FULL, peer));
    storms.into_iter().chain([case(Part::Slow, FULL, bird)]).collect()
}

/// Runs that make sense: each is a storm of minutes for some peers.
const MOST_RUNS: usize = 5;

impl Case {
    fn name(&self, what: &str) -> String {
        match self.peer {
            Kind::Bird { .. } => format!("{} routes: {what}", self.count),
            peer => format!("{} routes beside {}: {what}", self.count, peer.name()),
        }
    }

    fn experiment(&self) -> Experiment {
        Experiment {
            peer_name: self.peer.name().to_owned(),
            figures: self.figures(),
            most_runs: Some(MOST_RUNS),
        }
    }

    /// What it yields, with whether that needs a kernel.
    fn figures(&self) -> Vec<Figure> {
        let parts: &[(&str, &'static str, bool)] = match self.part {
            Part::Storm | Part::QuickStorm => &[
                (RECONNECT, "ms", false),
                (BACK, "ms", false),
                (CHANGES, "changes", true),
                (KERNEL_EMPTY, "ms", true),
                (PEER_EMPTY, "ms", false),
                (TO_KERNEL[0], "ms", true),
                (TO_KERNEL[1], "ms", true),
                (TO_PEER[0], "ms", false),
                (TO_PEER[1], "ms", false),
                (WRONG, "routes", true),
            ],
            Part::Slow => &[
                (SLOW_LOAD, "ms", false),
                (SLOW_KERNEL, "ms", true),
                (SLOW_MEMORY, "MiB", false),
                (SLOW_BACK, "ms", false),
            ],
        };
        let figure = |(what, unit, _): &(&str, &'static str, bool)| Figure {
            case: self.name(what),
            unit,
            panel: match *unit {
                "ms" => "A peer with a whole table",
                "MiB" => "More memory",
                _ => "The kernel",
            },
        };
        let has_kernel = self.peer.has_kernel();
        let is_measured = |(what, _, kernel): &&(&str, &str, bool)| {
            (has_kernel || !kernel) && (*what != WRONG || self.part == Part::Storm)
        };
        parts.iter().filter(is_measured).map(figure).collect()
    }

    fn measure(&self, kind: Kind) -> Result<Vec<f64>, String> {
        let all = match self.part {
            Part::Storm => storm(kind, self.count, true)?,
            Part::QuickStorm => storm(kind, self.count, false)?,
            Part::Slow => slow(kind, self.count)?,
        };
        let has_kernel = self.peer.has_kernel();
        Ok(all.into_iter().filter(|(_, kernel)| has_kernel || !kernel).map(|(v, _)| v).collect())
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        let row = |what: &str| {
            let name = self.name(what);
            rows.iter().find(move |row| row.figure.case == name)
        };
        let ratio = |what: &str, most: f64| Goal {
            name: format!("{}, share of {}'s", self.name(what), self.peer.name()),
            bound: Bound::AtMost(most),
            measured: row(what).map_or(f64::NAN, Row::ratio),
        };
        let value = |what: &str, most: f64| Goal {
            name: format!("{}, {}", self.name(what), row(what).map_or("", |row| row.figure.unit)),
            bound: Bound::AtMost(most),
            measured: row(what).map_or(f64::NAN, |row| row.weft.median()),
        };
        match (self.part, self.peer) {
            (Part::Storm | Part::QuickStorm, Kind::Bird { .. }) => vec![
                value(RECONNECT, 50.0),
                ratio(BACK, 0.5),
                value(CHANGES, 0.0),
                ratio(KERNEL_EMPTY, 0.5),
                value(TO_KERNEL[0], 5.0),
                value(TO_KERNEL[1], 20.0),
                value(TO_PEER[0], 5.0),
                value(TO_PEER[1], 20.0),
                value(WRONG, 0.0),
            ]
            .into_iter()
            .filter(|goal| self.part == Part::Storm || !goal.name.contains(WRONG))
            .collect(),
            // The queue of changes has two numbers of four bytes for each route at most.
            (Part::Slow, _) => vec![value(SLOW_MEMORY, self.count as f64 * 8.0 / 1048576.0)],
            _ => Vec::new(),
        }
    }
}

/// Values, and whether each needs a kernel.
type Values = Vec<(f64, bool)>;

fn storm(kind: Kind, count: usize, with_flaps: bool) -> Result<Values, String> {
    with_router(kind, count, Third::IsNotTold, |scene| {
        scene.load()?;
        let mut values = flap(scene)?;
        values.extend(go_away(scene)?);
        if with_flaps {
            scene.injector.connect()?;
            scene.load()?;
            values.push((ten_flaps(scene)?, true));
        }
        Ok(values)
    })
}

/// How far the kernel is from having the table, and nothing else.
fn distance(scene: &Scene<'_>) -> u64 {
    scene.told.present().abs_diff(scene.base + scene.count as u64)
}

/// Waits until the kernel and the second peer have the table and nothing has changed for a while, or the patience is
/// over. When the last change was.
pub(super) fn wait_for_calm(
    scene: &mut Scene<'_>,
    patience: Duration,
) -> Result<super::Time, String> {
    let until = Instant::now() + patience;
    loop {
        let (count, seen) = scene.sink.count()?;
        let last = seen.max(scene.told.last().unwrap_or(seen));
        let is_whole = count == scene.count && (!scene.kind.has_kernel() || distance(scene) == 0);
        let is_calm = super::Time::now().since(last) > CALM;
        if (is_whole && is_calm) || Instant::now() > until {
            return Ok(last);
        }
        thread::sleep(GLANCE);
    }
}

/// Sends the table, waits until it is everywhere, and says when.
pub(super) fn send_whole(scene: &mut Scene<'_>) -> Result<super::Time, String> {
    scene.injector.order(&Order::Send)?;
    scene.injector.order(&Order::End)?;
    scene.injector.sent(PATIENCE)?;
    // Behind the table, so it is there when the table was taken.
    let (marker, _) = scene.announce(Source::Injector)?;
    let mut back = scene.sink.wait_for(marker, PATIENCE)?;
    if scene.kind.has_kernel() {
        back = back.max(scene.told.wait_for(marker, PATIENCE)?);
    }
    let last = wait_for_calm(scene, Duration::from_secs(60))?;
    scene.injector.withdraw(marker)?;
    Ok(back.max(last))
}

fn flap(scene: &mut Scene<'_>) -> Result<Values, String> {
    let before = scene.told.operations();
    let closed = scene.injector.close()?;
    let open = scene.injector.connect()?;
    let back = send_whole(scene)?;
    let changes = scene.told.operations().since(before).sum() as f64;
    Ok(vec![
        (milliseconds(open.since(closed)), false),
        (milliseconds(back.since(closed)), false),
        (changes, true),
    ])
}

fn go_away(scene: &mut Scene<'_>) -> Result<Values, String> {
    let has_kernel = scene.kind.has_kernel();
    scene.told.want(scene.base);
    scene.sink.order(&Order::Await(0))?;
    let closed = scene.injector.close()?;
    let mut emptied = None;
    let sent = scene.announce_while(Source::Prober, INTERVAL, |scene, sent| {
        if emptied.is_none() {
            emptied = scene.sink.has_reached()?;
        }
        let is_empty = !has_kernel || scene.told.present() <= scene.base;
        Ok(sent >= MOST || (emptied.is_some() && is_empty))
    })?;
    let emptied = match emptied {
        Some(time) => time,
        None => scene.sink.reached(PATIENCE)?,
    };
    let kernel = if has_kernel { Some(scene.told.wait(PATIENCE)?) } else { None };
    let delays = scene.delays(&sent)?;
    scene.withdraw(Source::Prober, Duration::ZERO, &sent)?;
    let kernel = kernel.map_or(f64::NAN, |time| milliseconds(time.since(closed)));
    Ok(vec![
        (kernel, true),
        (milliseconds(emptied.since(closed)), false),
        (delays.to_kernel.median(), true),
        (delays.to_kernel.quantile(0.99), true),
        (delays.to_peer.median(), false),
        (delays.to_peer.quantile(0.99), false),
    ])
}

fn ten_flaps(scene: &mut Scene<'_>) -> Result<f64, String> {
    for _ in 0..FLAPS {
        let begin = Instant::now();
        scene.injector.close()?;
        scene.injector.connect()?;
        scene.injector.order(&Order::Send)?;
        thread::sleep(EACH.saturating_sub(begin.elapsed()));
    }
    scene.injector.close()?;
    scene.injector.connect()?;
    send_whole(scene)?;
    Ok(distance(scene) as f64)
}

fn slow(kind: Kind, count: usize) -> Result<Values, String> {
    let memory_of = |is_slow: bool| {
        with_router(kind, count, Third::IsTold, |scene| {
            let begin = Instant::now();
            if is_slow {
                scene.prober.order(&Order::Pause)?;
            }
            scene.prober.order(&Order::Await(count))?;
            let loaded = scene.load()?;
            if is_slow {
                thread::sleep(PAUSE.saturating_sub(begin.elapsed()));
            }
            let resumed = super::Time::now();
            scene.prober.order(&Order::Resume)?;
            let back = scene.prober.reached(PATIENCE)?.since(resumed);
            Ok((loaded, back, peak(&scene.router.memory())))
        })
    };
    let (_, _, usual) = memory_of(false)?;
    let (loaded, back, memory) = memory_of(true)?;
    Ok(vec![
        (milliseconds(loaded.to_peer), false),
        (loaded.to_kernel.map_or(f64::NAN, milliseconds), true),
        (memory - usual, false),
        (milliseconds(back), false),
    ])
}

impl Session for Cases {
    fn experiments(&self) -> Vec<Experiment> {
        self.all.iter().map(Case::experiment).collect()
    }

    fn weft(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.all[experiment];
        if case.part != Part::Slow && self.alone.is_none() {
            self.alone = Some((case.count, kernel::empty(case.count, INTERVAL)?));
        }
        case.measure(Kind::Weft)
    }

    fn peer(&mut self, experiment: usize, _: usize) -> Result<Vec<f64>, String> {
        let case = self.all[experiment];
        case.measure(case.peer)
    }

    fn details(&mut self) -> Vec<Detail> {
        let Some((count, orders)) = &self.alone else { return Vec::new() };
        let (lines, json): (Vec<_>, Vec<_>) =
            orders.iter().map(|one| (one.line(INTERVAL), one.json())).unzip();
        let title = format!("{count} routes: the kernel alone, taking them back");
        vec![Detail { title, lines, json: json.into() }]
    }

    fn goals(&self, rows: &[Row]) -> Vec<Goal> {
        self.all.iter().flat_map(|case| case.goals(rows)).collect()
    }
}
