//! A place to measure: a network with so many cables, and everything that forwards in it.

use std::time::Duration;

use weft_base::Random;
use weft_xip::Xid;
use weft_xip::forward::{Limits, SlowPathLimit};

use super::super::xip_engine::world::{self, Names};
use super::cases::{FRAME_LEN, Place, Point, Sides};
use super::changes;
use super::frames::{Form, Template};
use super::kernel::{self, Kernel};
use super::linux::Linux;
use super::network::Network;
use super::portable::{Portable, Sockets};
use super::prefixes::Prefix;
use super::threads::Processors;
use super::traffic::{Rate, Sending, Traffic};

/// See the module's text.
pub(in crate::bench) struct Site {
    kernel: Kernel,
    /// If any case is about it.
    each_edge: Option<Kernel>,
    /// By how much each port may cause to be decided; the first one has no limit.
    portable: Vec<(Option<SlowPathLimit>, Portable)>,
    linux: Linux,
    traffic: Traffic,
    local: Xid,
    processors: Processors,
    // Last: what hangs in it goes first.
    network: Network,
}

/// What came out of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) rate: Rate,
    /// Changes of routes each second.
    pub(super) updates: f64,
}

impl Site {
    /// A network for this place, in which everything knows these prefixes, and what packets of `forms` need.
    pub(in crate::bench) fn new(
        place: Place,
        prefixes: &[Prefix],
        forms: &[Form],
        sides: &Sides,
        processors: Processors,
    ) -> Result<Self, String> {
        let mut random = Random::from_seed(1);
        let domains = prefixes.iter().map(|prefix| prefix.domain()).collect();
        let names = Names::behind(place.ports, domains, &mut random);
        let port = |gateway| names.neighbours.iter().position(|host| *host == gateway);
        let behind: Vec<_> =
            names.gateways.iter().map(|gateway| port(*gateway).unwrap_or_default()).collect();
        let limited = |slow_path| {
            let limits = Limits { slow_path, ..Limits::default() };
            world::router_with(&names, limits).map_err(|error| error.to_string())
        };
        let router = || limited(None);
        let network = Network::new(place)?;
        let linux = Linux::new(&network, prefixes, &behind)?;
        let portable = |limit| -> Result<_, String> {
            let mut forwarder = limited(limit)?;
            kernel::learn(&mut forwarder, &names, forms)?;
            Ok((limit, Portable::new(forwarder, &names, &behind)))
        };
        let limits = [None].into_iter().chain(sides.limited.iter().copied().map(Some));
        let each_edge = match sides.each_edge {
            true => Some(Kernel::of_each_edge(router()?, &names, &behind)?),
            false => None,
        };
        Ok(Self {
            kernel: Kernel::new(router()?, &names, &behind, forms)?,
            each_edge,
            portable: limits.map(portable).collect::<Result<_, _>>()?,
            linux,
            traffic: Traffic::new(&network, processors)?,
            local: names.local_domain,
            processors,
            network,
        })
    }

    /// Sets the destinations of the packets to come.
    pub(in crate::bench) fn set_samples(&self, draw: impl FnMut() -> [u8; 4]) {
        self.traffic.set_samples(draw);
    }

    /// The kernel engine; with one look-up for each edge if `each_edge`.
    pub(super) fn kernel(
        &mut self,
        point: &Point,
        each_edge: bool,
        time: Duration,
    ) -> Result<Measured, String> {
        let Self { kernel, traffic, network, processors, local, .. } = self;
        let engine = match &mut self.each_edge {
            Some(engine) if each_edge => engine,
            _ => kernel,
        };
        let _attached = engine.attach(network)?;
        let threads = processors.place_receivers(network)?;
        let template = Template::new(point.form, *local, point.len);
        let work = || traffic.measure(network, &threads, &template, Sending::default(), time);
        let change = |count| engine.change(count);
        let (rate, updates) = changes::beside(point.updates, *processors, change, work)?;
        Ok(Measured { rate, updates })
    }

    /// The portable engine, with packets at a pace of so many a second or as fast as possible.
    pub(super) fn portable(
        &self,
        point: &Point,
        sockets: Sockets,
        pace: Option<f64>,
        time: Duration,
    ) -> Result<Measured, String> {
        let Self { traffic, network, .. } = self;
        let running =
            self.portable[0].1.run(network, self.processors, sockets, None, point.updates)?;
        let threads = self.processors.place_receivers(network)?.and(running.id);
        let template = Template::new(point.form, self.local, point.len);
        let sending = Sending { pace, flood: None };
        let rate = traffic.measure(network, &threads, &template, sending, time)?;
        Ok(Measured { rate, updates: running.updates() })
    }

    /// A router whose ports may cause no more than `limit` to be decided, which is one of those that this was made
    /// with, or none: the portable engine, and with `kernel` that of the kernel before it.
    pub(in crate::bench) fn flooded(
        &mut self,
        form: Form,
        kernel: bool,
        limit: Option<SlowPathLimit>,
        sending: Sending,
        time: Duration,
    ) -> Result<Rate, String> {
        let Self { kernel: engine, portable, traffic, network, processors, .. } = self;
        let portable = portable.iter().find(|(of, _)| *of == limit).map(|(_, portable)| portable);
        let portable = portable.ok_or_else(|| format!("no engine was made for {limit:?}"))?;
        engine.limit(limit.map(|limit| limit.share(network.ports())))?;
        let attached = if kernel { Some(engine.attach(network)?) } else { None };
        let running = portable.run(network, *processors, Sockets::Xdp, attached.as_ref(), 0)?;
        let threads = processors.place_receivers(network)?.and(running.id);
        let template = Template::new(form, self.local, FRAME_LEN);
        traffic.measure(network, &threads, &template, sending, time)
    }

    /// The kernel's forwarding of IPv4.
    pub(super) fn linux(&mut self, point: &Point, time: Duration) -> Result<Measured, String> {
        let Self { linux, traffic, network, processors, .. } = self;
        let threads = processors.place_receivers(network)?;
        let template = Template::new(Form::Ip, self.local, point.len);
        let work = || traffic.measure(network, &threads, &template, Sending::default(), time);
        let change = |count| linux.change(count);
        let (rate, updates) = changes::beside(point.updates, *processors, change, work)?;
        Ok(Measured { rate, updates })
    }
}
