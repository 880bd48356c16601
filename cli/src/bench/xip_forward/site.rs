//! A place to measure: a network with so many cables, and everything that forwards in it.

use std::time::Duration;

use weft_xip::Xid;
use weft_xip::forward::Limits;

use super::super::xip_engine::world;
use super::cases::{Place, Point};
use super::changes;
use super::engine::Engine;
use super::frames::{Form, Template};
use super::linux::Linux;
use super::network::Network;
use super::portable::{Portable, Sockets};
use super::prefixes::{self, Prefix};
use super::redirect;
use super::router::Router;
use super::threads::Processors;
use super::traffic::{Rate, Sending, Traffic};

/// Bytes for a cache: more than all destinations need.
const CACHE: usize = 3 << 30;
/// That of a node whose kernel engine has room for all of them.
const OF_NODE: usize = 512 << 20;

/// See the module's text.
pub(super) struct Site {
    /// A router whose kernel engine forwards.
    kernel: Router,
    /// One whose engine looks each edge up by itself, if any case is about it.
    each_edge: Option<Router>,
    /// One that has no engine but its own.
    portable: Portable,
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
    pub(super) fn new(
        place: Place,
        prefixes: &[Prefix],
        forms: &[Form],
        each_edge: bool,
        processors: Processors,
    ) -> Result<Self, String> {
        let names = prefixes::names(prefixes, place.ports);
        let forwarder = || {
            let limits = Limits { slow_path: None, cache: CACHE, ..Limits::default() };
            world::router_with(&names, limits).map_err(|error| error.to_string())
        };
        let router = |engine| Router::new(forwarder()?, &names, forms, engine);
        let network = Network::new(place)?;
        let linux = Linux::new(&network, prefixes, &names.ports())?;
        let each_edge = match each_edge {
            true => {
                let engine = Engine::of_each_edge(OF_NODE)?;
                Some(Router::of_each_edge(forwarder()?, &names, engine)?)
            }
            false => None,
        };
        Ok(Self {
            kernel: router(Some(Engine::new(OF_NODE)?))?,
            each_edge,
            portable: Portable::new(router(None)?),
            linux,
            traffic: Traffic::new(&network, processors)?,
            local: names.local_domain,
            processors,
            network,
        })
    }

    /// Sets the destinations of the packets to come.
    pub(super) fn set_samples(&self, draw: impl FnMut() -> [u8; 4]) {
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
        let router = match &mut self.each_edge {
            Some(router) if each_edge => router,
            _ => kernel,
        };
        let _attached = router.attach(network)?;
        let threads = processors.place_receivers(network)?;
        let template = Template::new(point.form, *local, point.len);
        let work = || traffic.measure(network, &threads, &template, Sending::default(), time);
        let change = |count| router.change(count);
        let (rate, updates) = changes::beside(point.updates, *processors, change, work)?;
        Ok(Measured { rate, updates })
    }

    /// Nothing that decides: frames that are only moved.
    pub(super) fn redirect(&self, point: &Point, time: Duration) -> Result<Measured, String> {
        let Self { traffic, network, .. } = self;
        let template = Template::new(point.form, self.local, point.len);
        let _attached = redirect::attach(network, &template)?;
        let threads = self.processors.place_receivers(network)?;
        let rate = traffic.measure(network, &threads, &template, Sending::default(), time)?;
        Ok(Measured { rate, updates: 0.0 })
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
        let running = self.portable.run(network, self.processors, sockets, None, point.updates)?;
        let threads = self.processors.place_receivers(network)?.and(running.id);
        let template = Template::new(point.form, self.local, point.len);
        let sending = Sending { pace, flood: None };
        let rate = traffic.measure(network, &threads, &template, sending, time)?;
        Ok(Measured { rate, updates: running.end()? })
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
