//! A router with its speakers, and what all benchmarks do with them: announce a table, and probe.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::super::samples::Samples;
use super::Time;
use super::network::{Peer, Third, within};
use super::remote::Speaker;
use super::router::{Kind, Router};
use super::speaker::Order;
use super::table::MOST_PROBES;
use super::told::Told;

/// Between the last session that was opened and the first route.
const SETTLE: Duration = Duration::from_secs(1);
/// Whatever has not happened by then will not.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);

/// See the module's text. Sessions are open.
pub(super) struct Scene<'a> {
    pub(super) kind: Kind,
    /// Routes of the table.
    pub(super) count: usize,
    pub(super) told: &'a Told,
    pub(super) router: &'a Router,
    /// Announces the table.
    pub(super) injector: Speaker,
    /// Is told of everything.
    pub(super) sink: Speaker,
    /// Announces probes; mostly it is told nothing.
    pub(super) prober: Speaker,
    /// Routes that the kernel had without the table.
    pub(super) base: u64,
    pub(super) peers: [Peer; 3],
    next_probe: usize,
}

/// How long a table took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded {
    pub(super) to_peer: Duration,
    /// If the router tells the kernel.
    pub(super) to_kernel: Option<Duration>,
}

/// Who announces probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Who has announced the table.
    Injector,
    /// Somebody else.
    Prober,
}

/// When probes were announced, or withdrawn, by their numbers.
pub(super) type Sent = BTreeMap<usize, Time>;

/// What became of probes, in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    pub(super) to_peer: Samples,
    /// Empty if the router does not tell the kernel.
    pub(super) to_kernel: Samples,
}

/// Does something with a router, which is new.
pub(super) fn with_router<T: Send>(
    kind: Kind,
    count: usize,
    third: Third,
    work: impl FnOnce(&mut Scene<'_>) -> Result<T, String> + Send,
) -> Result<T, String> {
    let peers =
        [Peer::behind(1, true), Peer::behind(2, true), Peer::behind(3, third == Third::IsTold)];
    within(&peers, || {
        let told = Told::new()?;
        let router = Router::start(kind, &peers)?;
        let result =
            Scene::open(kind, count, &peers, &told, &router).and_then(|mut scene| work(&mut scene));
        result.map_err(|error| match router.said() {
            said if said.is_empty() => format!("{}: {error}", kind.name()),
            said => format!("{}: {error}; it has said:\n{said}", kind.name()),
        })
    })
}

impl<'a> Scene<'a> {
    fn open(
        kind: Kind,
        count: usize,
        peers: &[Peer; 3],
        told: &'a Told,
        router: &'a Router,
    ) -> Result<Self, String> {
        let mut injector = Speaker::start(peers[0])?;
        let mut sink = Speaker::start(peers[1])?;
        let mut prober = Speaker::start(peers[2])?;
        injector.table(count)?;
        for speaker in [&mut sink, &mut prober, &mut injector] {
            speaker.connect()?;
        }
        thread::sleep(SETTLE);
        let base = told.present();
        let (peers, next_probe) = (*peers, 0);
        Ok(Self { kind, count, told, router, injector, sink, prober, base, peers, next_probe })
    }

    /// Announces the table, and waits until it is everywhere.
    pub(super) fn load(&mut self) -> Result<Loaded, String> {
        self.told.want(self.base + self.count as u64);
        self.sink.order(&Order::Await(self.count))?;
        self.injector.order(&Order::Send)?;
        let (first, _) = self.injector.sent(PATIENCE)?;
        let to_peer = self.sink.reached(PATIENCE)?.since(first);
        let to_kernel = match self.kind.has_kernel() {
            true => Some(self.told.wait(PATIENCE)?.since(first)),
            false => None,
        };
        Ok(Loaded { to_peer, to_kernel })
    }

    /// The number of a probe that nobody has seen.
    fn new_probe(&mut self) -> Result<usize, String> {
        let probe = self.next_probe;
        self.next_probe += 1;
        if probe < MOST_PROBES { Ok(probe) } else { Err("there are no more probes".to_owned()) }
    }

    fn source(&mut self, source: Source) -> &mut Speaker {
        match source {
            Source::Injector => &mut self.injector,
            Source::Prober => &mut self.prober,
        }
    }

    /// Announces a new probe.
    pub(super) fn announce(&mut self, source: Source) -> Result<(usize, Time), String> {
        let probe = self.new_probe()?;
        self.source(source).announce(probe).map(|time| (probe, time))
    }

    /// Announces new probes, one each `interval`, until `is_over` says so of how many there were.
    pub(super) fn announce_while(
        &mut self,
        source: Source,
        interval: Duration,
        mut is_over: impl FnMut(&mut Self, usize) -> Result<bool, String>,
    ) -> Result<Sent, String> {
        let (begin, mut sent) = (Instant::now(), Sent::new());
        while !is_over(self, sent.len())? {
            let (probe, time) = self.announce(source)?;
            sent.insert(probe, time);
            let next = begin + interval * sent.len() as u32;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(sent)
    }

    /// Withdraws probes, one each `interval`.
    pub(super) fn withdraw(
        &mut self,
        source: Source,
        interval: Duration,
        probes: &Sent,
    ) -> Result<Sent, String> {
        let (begin, mut sent) = (Instant::now(), Sent::new());
        for probe in probes.keys() {
            sent.insert(*probe, self.source(source).withdraw(*probe)?);
            let next = begin + interval * sent.len() as u32;
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(sent)
    }

    /// Waits for announced probes, and says how long they took.
    pub(super) fn delays(&mut self, sent: &Sent) -> Result<Delays, String> {
        self.delays_of(sent, Speaker::wait_for, Told::wait_for)
    }

    /// The same of probes that were withdrawn.
    pub(super) fn delays_of_withdrawn(&mut self, sent: &Sent) -> Result<Delays, String> {
        self.delays_of(sent, Speaker::wait_for_withdrawal, Told::wait_for_withdrawal)
    }

    fn delays_of(
        &mut self,
        sent: &Sent,
        peer: fn(&mut Speaker, usize, Duration) -> Result<Time, String>,
        kernel: fn(&Told, usize, Duration) -> Result<Time, String>,
    ) -> Result<Delays, String> {
        let (mut to_peer, mut to_kernel) = (Vec::new(), Vec::new());
        for (probe, time) in sent {
            to_peer.push(milliseconds(peer(&mut self.sink, *probe, PATIENCE)?.since(*time)));
            if self.kind.has_kernel() {
                to_kernel.push(milliseconds(kernel(self.told, *probe, PATIENCE)?.since(*time)));
            }
        }
        Ok(Delays { to_peer: Samples::new(to_peer), to_kernel: Samples::new(to_kernel) })
    }
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
