//! Routes of IP become routes of XIA's principal LPM, at run time: a bridge between two architectures that do not know
//! each other.
//!
//! Reference: Machado et al., "Linux XIA", §5.1 (a principal whose identifiers are prefixes can be routed by what BGP
//! knows); Handley et al. (XORP), §3 (route redistribution).
//!
//! An LPM identifier is an address of IP with zeros behind, so every route of IP is one of LPM, too: to the same prefix, over
//! the same next router. Nobody states it a second time: the translator hears from the RIB which routes are used
//! ([`FromRib`]), or from the FEA what the kernel's table says if somebody else fills that (`kernel`), and tells the XIA stack
//! (`to_xia`) by `prefixes/1.0`. What the next router is called there it finds out by itself (`gateways`): by its
//! address of IP, as an X4ID, or in a tunnel, unless the configuration says how a neighbour is called.
//!
//! A network that a link of this router has is *here*: LPM passes packets to it, and what stands behind in their
//! addresses, such as a host, is looked up next.
//!
//! All three may die and come back. What was told serves on meanwhile; whoever comes back is told everything, and what was
//! not told by then goes.

#![forbid(unsafe_code)]

mod config;
mod gateways;
mod kernel;
#[cfg(test)]
mod tests;
mod to_xia;

use std::collections::BTreeSet;

use config::{Config, From};
pub use config::{SCHEMA, STATEMENT};
use ipnet::IpNet;
use kernel::Kernel;
use serde_json::{Value, json};
use to_xia::{Lead, ToXia};
use weft_base::Instant;
use weft_config::Errors;
use weft_protocol::{Client as _, FromRib, Manage, Show, Table, Used, serve};
use weft_runtime::{Action, Component, Event};
use weft_xrl::{Input, Interface, Output, XrlError, configurable};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
mod xia {
    //! What the XIA stack takes.
    include!(concat!(env!("OUT_DIR"), "/prefixes.rs"));

    /// Its class.
    pub const CLASS: &str = "xia";
}

/// The protocol of the RIB for the networks of links.
const CONNECTED: &str = "connected";

/// The interfaces of the component.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&weft_protocol::interface::INTERFACE, &configurable::INTERFACE]
}

/// The translator; see the crate's text.
pub struct Translator {
    routes: Routes,
    to_xia: ToXia,
}

/// What is known of IP, and what becomes of it.
struct Routes {
    config: Option<Config>,
    from_rib: FromRib,
    kernel: Kernel,
}

impl Default for Translator {
    fn default() -> Self {
        Self::new()
    }
}

impl Translator {
    /// One without a configuration.
    #[must_use]
    pub fn new() -> Self {
        let (config, from_rib, kernel) = (None, FromRib::new(1), Kernel::default());
        Self { routes: Routes { config, from_rib, kernel }, to_xia: ToXia::new(2) }
    }
}

impl Routes {
    fn from(&self) -> Option<&From> {
        self.config.as_ref().map(|config| &config.from)
    }

    /// Where a prefix leads, as LPM is told; none if it is told nothing of it.
    fn lead(&self, net: &IpNet) -> Option<Lead> {
        let config = self.config.as_ref().filter(|config| config.takes(net))?;
        match config.from {
            From::Kernel => self.kernel.get(net).map(|way| config.lead_of_way(*way)),
            From::Protocols(_) => self.from_rib.get(net).map(|used| lead_of(used, config)),
        }
    }

    /// All prefixes of which something is known.
    fn nets(&self) -> BTreeSet<IpNet> {
        match self.from() {
            Some(From::Kernel) => self.kernel.nets().copied().collect(),
            Some(From::Protocols(_)) => self.from_rib.nets().copied().collect(),
            None => BTreeSet::new(),
        }
    }

    /// How many that are.
    fn count(&self) -> usize {
        match self.from() {
            Some(From::Kernel) => self.kernel.nets().len(),
            Some(From::Protocols(_)) => self.from_rib.nets().len(),
            None => 0,
        }
    }

    /// Those behind one, or all, in order.
    fn nets_behind(&self, net: Option<IpNet>) -> Box<dyn Iterator<Item = &IpNet> + '_> {
        match self.from() {
            Some(From::Kernel) => Box::new(self.kernel.nets_behind(net)),
            Some(From::Protocols(_)) => Box::new(self.from_rib.nets_behind(net)),
            None => Box::new(std::iter::empty()),
        }
    }

    /// Whether everything is known that there is.
    fn is_complete(&self) -> bool {
        match self.from() {
            Some(From::Kernel) => self.kernel.is_complete(),
            Some(From::Protocols(_)) => self.from_rib.is_complete(),
            None => false,
        }
    }

    /// The prefixes whose routes are others since this was asked last.
    fn take_changed(&mut self) -> BTreeSet<IpNet> {
        match self.from() {
            Some(From::Kernel) => self.kernel.take_changed(),
            Some(From::Protocols(_)) => self.from_rib.take_changed(),
            None => BTreeSet::new(),
        }
    }

    fn row(&self, net: &IpNet) -> Value {
        let from = match self.from_rib.get(net) {
            Some(used) => used.protocol.as_str(),
            None => "kernel",
        };
        let to = match self.lead(net) {
            None => "-".to_owned(),
            Some(Lead::Nowhere) => "nowhere".to_owned(),
            Some(Lead::Here) => "here".to_owned(),
            Some(Lead::Via(gateways)) => gateways.join(" "),
        };
        json!({ "prefix": net.to_string(), "from": from, "to": to })
    }
}

/// Where a route of the RIB leads.
fn lead_of(used: &Used, config: &Config) -> Lead {
    match (used.protocol.as_str(), used.gateway, used.interface) {
        (CONNECTED, ..) | (_, None, Some(_)) => Lead::Here,
        (_, Some(gateway), _) => config.lead_over([gateway]),
        (_, None, None) => config.lead_over(used.ways.iter().filter_map(|way| way.gateway)),
    }
}

impl Manage for Translator {
    type Config = Option<Config>;

    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn read(&self, source: &str, text: &str) -> Result<Option<Config>, Errors> {
        config::read(source, text)
    }

    fn configure(&mut self, _: Instant, config: Option<Config>, out: &mut Vec<Output>) {
        // Gateways may be called otherwise, and another source knows other prefixes.
        let before = self.routes.nets();
        self.routes.config = config;
        let (protocols, from_kernel) = match self.routes.from() {
            Some(From::Protocols(protocols)) => (protocols.clone(), false),
            Some(From::Kernel) => (BTreeSet::new(), true),
            None => (BTreeSet::new(), false),
        };
        self.routes.from_rib.want(protocols, BTreeSet::new(), out);
        if from_kernel {
            self.routes.kernel.watch(out);
        }
        self.to_xia.changed(before);
        self.to_xia.changed(self.routes.nets());
    }

    fn status(&self) -> (bool, String) {
        let xia = if self.to_xia.is_there() { "" } else { "; waits for XIA" };
        let known = if self.routes.is_complete() { "" } else { "; waits for routes" };
        let count = self.routes.count();
        (self.routes.config.is_some(), format!("{count} prefixes{known}{xia}"))
    }
}

impl Show for Translator {
    const VIEWS: &'static [(&'static str, &'static str)] =
        &[("routes", "what becomes of each route in XIA")];

    fn table(
        &self,
        _: Instant,
        _: &str,
        from: Option<&str>,
        at_most: usize,
    ) -> Result<Table, XrlError> {
        let wrong = |_| XrlError::bad_args("the page before says behind which prefix to go on");
        let from: Option<IpNet> = from.map(str::parse).transpose().map_err(wrong)?;
        let rows = self.routes.nets_behind(from).map(|net| (*net, ()));
        Ok(Table::page(&["prefix", "from", "to"], rows, at_most, |net, ()| self.routes.row(net)))
    }
}

impl Component for Translator {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        let input = self.routes.from_rib.hear(now, input, out);
        let input = input.and_then(|input| self.to_xia.hear(now, input, out));
        match input.and_then(|input| serve(self, now, input, out)) {
            Some(Input::World(Event::Ip { changes })) => self.routes.kernel.heard(changes),
            Some(Input::World(Event::Stop)) => out.push(Output::World(Action::Exit { status: 0 })),
            _ => {}
        }
        if self.to_xia.take_begins() {
            self.to_xia.changed(self.routes.nets());
        }
        self.to_xia.changed(self.routes.take_changed());
        let routes = &self.routes;
        self.to_xia.tell(routes.is_complete(), |net| routes.lead(net), out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.routes.from_rib.deadline().into_iter().chain(self.to_xia.deadline()).min()
    }
}
