//! What peers of BGP say, for monitoring stations: the router's side of BMP.
//!
//! Reference: RFC 7854.
//!
//! A station is a program that gathers what routers hear, such as pmbmpd or OpenBMP. This process has the connections to stations, and
//! asks BGP for what is to be told (`bgp/1.6/monitor`): for each station as fast as that takes it. So a station disturbs BGP no more than
//! somebody who asks, whatever it does. Nothing that comes from stations is read.

#![forbid(unsafe_code)]

mod config;
mod messages;
mod show;
mod station;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use weft_base::{CounterGroup, Instant, Token};
use weft_config::Errors;
use weft_protocol::{Client, Dialogue, Manage, serve};
use weft_runtime::{Action, Component, Event, StreamEvent};
use weft_xrl::{Input, Interface, Output, Reply, XrlError, configurable};

use config::{Config, MOST_STATIONS};
pub use config::{SCHEMA, STATEMENT};
use station::{Connection, Station};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
mod interface {
    //! BGP's interface.
    include!(concat!(env!("OUT_DIR"), "/bgp.rs"));
}

/// The interfaces of the component.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![&weft_protocol::interface::INTERFACE, &configurable::INTERFACE]
}

/// BGP's class.
const BGP: &str = "bgp";

/// What a call is about: a reader, and the connection for which it reads.
#[derive(Clone, Copy, Debug)]
struct About {
    reader: u8,
    connection: Connection,
}

/// The router's side of BMP; see the crate's text.
#[derive(Debug)]
pub struct Bmp {
    is_configured: bool,
    config: Config,
    /// By their names.
    stations: BTreeMap<String, Station>,
    dialogue: Dialogue<About>,
    last_token: u32,
    connections: Connection,
    now: Instant,
}

impl Default for Bmp {
    fn default() -> Self {
        Self {
            is_configured: false,
            config: Config::default(),
            stations: BTreeMap::new(),
            dialogue: Dialogue::new(BGP, 0),
            last_token: 0,
            connections: 0,
            now: Instant::ZERO,
        }
    }
}

impl Bmp {
    /// One without a configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn world_event(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        let mut stations = self.stations.values_mut();
        match event {
            Event::Stream { token, event } => {
                let station = stations.find(|one| one.is_attempt(token));
                match (event, station) {
                    (StreamEvent::Opened { channel, .. }, Some(one)) => {
                        self.connections += 1;
                        one.opened(channel, self.connections, out);
                    }
                    // Of a station that is not there any more.
                    (StreamEvent::Opened { channel, .. }, None) => {
                        out.push(Output::World(Action::Close { channel }));
                    }
                    (StreamEvent::Failed { error }, Some(one)) => {
                        one.lost(now, &format!("it cannot be connected to: {error}"), out);
                    }
                    _ => {}
                }
            }
            Event::Closed { channel } => {
                if let Some(one) = stations.find(|one| one.is_on(channel)) {
                    one.lost(now, "it has closed the connection", out);
                }
            }
            Event::Congested { channel } | Event::Drained { channel } => {
                let is_congested = matches!(event, Event::Congested { .. });
                if let Some(one) = stations.find(|one| one.is_on(channel)) {
                    one.congested(now, is_congested);
                }
            }
            Event::Stop => {
                stations.for_each(|one| one.close(now, out));
                self.stations.clear();
                out.push(Output::World(Action::Exit { status: 0 }));
            }
            _ => {}
        }
    }

    /// Does what is due with all stations: while BGP is away there is nothing to be told.
    fn go_on(&mut self, now: Instant, out: &mut Vec<Output>) {
        for station in self.stations.values_mut() {
            if !self.dialogue.is_there() {
                station.renew(now, "BGP is away", out);
                continue;
            }
            station.expire(now, out);
            if station.connects().is_some_and(|then| then <= now) {
                self.last_token = self.last_token.wrapping_add(1);
                station.connect(now, Token(self.last_token), out);
            }
            if let Some((connection, request)) = station.wants() {
                let about = About { reader: station.reader, connection };
                self.dialogue.call(about, request, out);
            }
        }
    }
}

impl Client<About> for Bmp {
    fn dialogue(&mut self) -> &mut Dialogue<About> {
        &mut self.dialogue
    }

    fn began(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        self.stations.values_mut().for_each(|one| one.renew(now, "BGP has begun anew", out));
    }

    fn answered(
        &mut self,
        about: &About,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        let reply = reply.read::<interface::Monitor>()?;
        let station = self.stations.values_mut().find(|one| one.reader == about.reader);
        if let Some(station) = station {
            station.answered(self.now, about.connection, reply, out);
        }
        Ok(())
    }

    /// It ends with one station, and goes on with others.
    fn refused(&mut self, now: Instant, about: &About, error: XrlError, out: &mut Vec<Output>) {
        let station = self.stations.values_mut().find(|one| one.is_about(about.connection));
        if let Some(station) = station {
            station.fail(now, &format!("BGP refuses to tell: {error}"), out);
        }
    }
}

impl Manage for Bmp {
    type Config = Config;

    fn schema(&self) -> &'static str {
        SCHEMA
    }

    fn read(&self, source: &str, text: &str) -> Result<Config, Errors> {
        config::read(source, text)
    }

    fn configure(&mut self, now: Instant, config: Config, out: &mut Vec<Output>) {
        // Whoever is told another name is told everything anew.
        let is_renamed = config.name != self.config.name;
        let stays = |name: &String, station: &Station| {
            !is_renamed && config.stations.get(name) == Some(&station.config)
        };
        self.stations.retain(|name, station| {
            let stays = stays(name, station);
            if !stays {
                station.close(now, out);
            }
            stays
        });
        for (name, wanted) in &config.stations {
            let mut readers = 0..MOST_STATIONS as u8;
            let is_free = |reader: &u8| self.stations.values().all(|one| one.reader != *reader);
            // There are no more stations than readers.
            if let (false, Some(reader)) = (self.stations.contains_key(name), readers.find(is_free))
            {
                let names = (name.as_str(), config.name.as_str());
                self.stations
                    .insert(name.clone(), Station::new(now, names, reader, wanted.clone()));
            }
        }
        (self.config, self.is_configured) = (config, true);
    }

    fn status(&self) -> (bool, String) {
        let up = self.stations.values().filter(|one| one.is_up()).count();
        (self.is_configured, format!("{up} of {} stations are connected", self.stations.len()))
    }
}

impl Component for Bmp {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        self.now = now;
        if let Some(input) = self.hear(now, input, out)
            && let Some(Input::World(event)) = serve(self, now, input, out)
        {
            self.world_event(now, event, out);
        }
        self.go_on(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        let connects = self.stations.values().filter_map(Station::connects);
        let connects = connects.filter(|_| self.dialogue.is_there());
        let stalls = self.stations.values().filter_map(Station::stalls);
        connects.chain(stalls).chain(self.dialogue.deadline()).min()
    }

    fn counters(&self) -> Vec<CounterGroup> {
        Vec::new()
    }
}
