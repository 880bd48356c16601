//! Source and sinks; their programs are in `traffic.bpf.c`.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use weft_ebpf::{
    LiveRun, LoadedProgram, Map, MapKind, MapShape, Memory, ProgramError, ProgramType, XdpLink,
    XdpMode, embedded,
};

use super::frames::Template;
use super::network::{Network, Side};
use super::threads::{Processors, Threads, Work};

const OBJECT: Result<&[u8], ProgramError> = embedded!("traffic");
/// Destinations that are drawn beforehand, a power of two: four or five for each prefix.
pub(super) const SAMPLES: usize = 1 << 21;
/// Bytes of what a program knows of an outlet, and how many there are at most.
pub(super) const OUTLET: usize = 24;
pub(super) const OUTLETS: u32 = 8;
/// Bytes of the source's variables.
const VARIABLES: u32 = 80;
/// Before it counts: queues fill, and threads get their processors.
const WARM_UP: Duration = Duration::from_millis(150);

/// How packets are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::bench) struct Sending {
    /// So many a second, or as fast as possible.
    pub(in crate::bench) pace: Option<f64>,
    pub(in crate::bench) flood: Option<Flood>,
}

/// What every other packet is, then: it does not count when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::bench) enum Flood {
    /// One with an address that has hardly ever been.
    New,
    /// One with an address that leads nowhere, always the same.
    One,
}

/// Packets per second.
#[derive(Clone, Copy, Debug)]
pub(in crate::bench) struct Rate {
    /// That arrive.
    pub(in crate::bench) arriving: f64,
    /// That arrive for each second that the router has worked: more, if the source was too slow for it, or
    /// its processor did something else meanwhile.
    pub(in crate::bench) of_router: f64,
    /// That the source has sent.
    pub(in crate::bench) offered: f64,
}

/// What has been counted at a time.
struct Counts {
    sent: u64,
    arrived: u64,
    at: Instant,
    /// For how long the router's threads had a processor.
    busy: Duration,
}

impl Counts {
    /// The rates since `before`.
    fn since(&self, before: &Self) -> Rate {
        let per = |count: u64, time: Duration| count as f64 / time.as_secs_f64();
        let arrived = self.arrived.wrapping_sub(before.arrived);
        let time = self.at.duration_since(before.at);
        Rate {
            arriving: per(arrived, time),
            of_router: per(arrived, self.busy.saturating_sub(before.busy)),
            offered: per(self.sent.wrapping_sub(before.sent), time),
        }
    }
}

/// A network's traffic.
pub(in crate::bench) struct Traffic {
    outlets: Map,
    samples: Map,
    sample_words: Memory,
    received: Map,
    processors: Processors,
    _sinks: Vec<XdpLink>,
}

impl Traffic {
    /// Attaches the sinks.
    pub(in crate::bench) fn new(network: &Network, processors: Processors) -> Result<Self, String> {
        let create = |name: &str, shape| {
            Map::create(name, shape).map_err(|error| format!("no map for the traffic: {error}"))
        };
        let outlets =
            create("outlets", MapShape::numbered(MapKind::Array, OUTLET as u32, OUTLETS))?;
        let samples = create("samples", MapShape::numbered(MapKind::Array, 8, SAMPLES as u32))?;
        let received = create("received", MapShape::numbered(MapKind::PerProcessor, 8, 1))?;
        let sink = load("weft_sink", &[("received", &received)])?;
        let sinks = network.inside(Side::Host, || {
            let interfaces = (0..network.ports()).map(|port| network.interface(Side::Host, port));
            interfaces
                .map(|interface| XdpLink::attach(&interface, XdpMode::Driver, &sink))
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| error.to_string())
        })?;
        for (port, sink) in sinks.iter().enumerate() {
            set_outlet(&outlets, port, sink.interface(), [Side::Router, Side::Host])?;
        }
        let sample_words = samples.memory().map_err(|error| error.to_string())?;
        Ok(Self { outlets, samples, sample_words, received, processors, _sinks: sinks })
    }

    /// Sets the destinations of the packets to come: their first four bytes.
    pub(in crate::bench) fn set_samples(&self, mut draw: impl FnMut() -> [u8; 4]) {
        for word in self.sample_words.words() {
            let [a, b, c, d] = draw();
            // The program takes the half of the word that comes first in memory.
            let word_bytes = [a, b, c, d, 0, 0, 0, 0];
            word.store(u64::from_ne_bytes(word_bytes), Ordering::Relaxed);
        }
    }

    /// Sends packets of this form through all ports; how many of them arrive forwarded. `router` are the threads that
    /// forward.
    pub(in crate::bench) fn measure(
        &self,
        network: &Network,
        router: &Threads,
        template: &Template,
        sending: Sending,
        time: Duration,
    ) -> Result<Rate, String> {
        let variables = Map::create("source", MapShape::numbered(MapKind::Array, VARIABLES, 1))
            .map_err(|error| error.to_string())?;
        let words = [
            0,
            SAMPLES as u64 - 1,
            network.ports() as u64 - 1,
            template.identifier_at as u64,
            template.edges_at as u64,
            u64::from(u32::from_ne_bytes(template.edges)),
            sending.pace.map_or(0, |pace| (1e9 / pace).max(1.0) as u64),
            0,
            match sending.flood {
                None => 0,
                Some(Flood::New) => 1,
                Some(Flood::One) => 2,
            },
            template.flood_at as u64,
        ];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        variables.set(&0_u32.to_ne_bytes(), &bytes).map_err(|error| error.to_string())?;
        let maps = [("outlets", &self.outlets), ("samples", &self.samples), (".bss", &variables)];
        let program = load(template.program, &maps)?;
        let measured = thread::scope(|scope| {
            let work = || {
                // Before there is a source, which leaves nobody else the processor.
                self.processors.take_place(Work::Counting);
                self.count(network, router, (program, template), &variables, time)
            };
            scope.spawn(work).join()
        });
        measured.map_err(|_| "the thread that counts panicked".to_owned())?
    }

    /// Sends, and counts when all threads have settled.
    fn count(
        &self,
        network: &Network,
        router: &Threads,
        (program, template): (LoadedProgram, &Template),
        variables: &Map,
        time: Duration,
    ) -> Result<Rate, String> {
        let processors = self.processors;
        let run = network.inside(Side::Host, move || {
            let frame = template.bytes.clone();
            LiveRun::start(program, frame, move || processors.take_place(Work::Source))
                .map_err(|error| format!("the source cannot send: {error}"))
        })?;
        thread::sleep(WARM_UP);
        let before = self.counts(variables, router)?;
        thread::sleep(time);
        let after = self.counts(variables, router)?;
        run.stop().map_err(|error| format!("the source has ended: {error}"))?;
        Ok(after.since(&before))
    }

    /// What has been counted by now.
    fn counts(&self, variables: &Map, router: &Threads) -> Result<Counts, String> {
        let failed = |error: io::Error| error.to_string();
        let mut values = [0; VARIABLES as usize];
        variables.get(&0_u32.to_ne_bytes(), &mut values).map_err(failed)?;
        Ok(Counts {
            sent: values.first_chunk().map_or(0, |first| u64::from_ne_bytes(*first)),
            arrived: self.received.sum(0).map_err(failed)?,
            at: Instant::now(),
            busy: router.busy()?,
        })
    }
}

/// Sets where a program sends what leaves through a port: an interface, and the ends that frames go to and come from.
pub(super) fn set_outlet(
    outlets: &Map,
    port: usize,
    interface: u32,
    [to, from]: [Side; 2],
) -> Result<(), String> {
    let mut outlet = [0; OUTLET];
    outlet[..8].copy_from_slice(&u64::from(interface).to_ne_bytes());
    outlet[8..14].copy_from_slice(&to.mac(port));
    outlet[16..22].copy_from_slice(&from.mac(port));
    outlets.set(&(port as u32).to_ne_bytes(), &outlet).map_err(|error| error.to_string())
}

fn load(name: &str, maps: &[(&str, &Map)]) -> Result<LoadedProgram, String> {
    let object = OBJECT.map_err(|error| error.to_string())?;
    LoadedProgram::load(object, name, ProgramType::Xdp, maps).map_err(|error| error.to_string())
}
