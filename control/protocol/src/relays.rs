//! Datagrams of groups on links, by the FEA: it has the sockets, and relays what comes in and goes out.
//!
//! Reference: Handley et al. (XORP), §7: protocols send and receive through the FEA, which may be on another machine.
//!
//! A protocol says on which links it wants a port. What cannot be opened, or is lost, is opened again until it is not
//! wanted any more.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::Event;
use weft_xrl::{Binary, Input, Output, Reply, XrlError, fea};

use crate::dialogue::{Client, Dialogue};

/// The FEA's class.
const FEA: &str = "fea";
/// When a port that could not be opened is opened again.
const AGAIN: Duration = Duration::from_secs(1);
/// How many packets one answer has at most, and how long there may be none, in milliseconds.
const AT_MOST: u32 = 64;
const QUIET: u32 = 20_000;

/// What has happened to the port of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RelayNews {
    /// It is open.
    Opened {
        /// Of which link.
        link: u32,
        /// The longest datagram that is not cut into fragments, in bytes.
        mtu: usize,
    },
    /// It could not be opened, or is lost, and is opened again.
    Closed {
        /// Of which link.
        link: u32,
        /// Why, in one sentence; none if the FEA is gone, which the manager says.
        error: Option<String>,
    },
    /// A datagram came in.
    Packet {
        /// On which link.
        link: u32,
        /// Who sent it.
        from: SocketAddr,
        /// What it holds.
        bytes: Vec<u8>,
    },
}

/// What a call was about. Links are named with the life of their port, so that nothing is taken for what came after it.
#[derive(Debug)]
enum About {
    Open(u32, u64),
    Receive(u32, u64),
    Send,
    Close,
}

/// A link on which there is to be a port.
#[derive(Debug)]
struct Relay {
    spec: String,
    life: u64,
    /// Its number to the FEA.
    number: Option<u32>,
    /// When it is opened again.
    again: Option<Instant>,
}

/// The ports of all links.
#[derive(Debug)]
pub(crate) struct Relays {
    dialogue: Dialogue<About>,
    links: BTreeMap<u32, Relay>,
    lives: u64,
    news: Vec<RelayNews>,
}

impl Relays {
    /// No ports, and the number of its [`Dialogue`].
    pub(crate) fn new(number: u8) -> Self {
        let dialogue = Dialogue::new(FEA, number);
        Self { dialogue, links: BTreeMap::new(), lives: 0, news: Vec::new() }
    }

    /// There is to be this port on a link, such as `group:eth0:224.0.0.9:520`.
    pub(crate) fn open(&mut self, link: u32, spec: &str, out: &mut Vec<Output>) {
        if self.links.get(&link).is_some_and(|relay| relay.spec == spec) {
            return;
        }
        self.close(link, out);
        self.lives += 1;
        let (spec, life) = (spec.to_owned(), self.lives);
        self.links.insert(link, Relay { spec, life, number: None, again: None });
        self.ask(link, out);
    }

    /// There is to be no port on a link.
    pub(crate) fn close(&mut self, link: u32, out: &mut Vec<Output>) {
        let number = self.links.remove(&link).and_then(|relay| relay.number);
        if let Some(relay) = number.filter(|_| self.dialogue.is_there()) {
            self.dialogue.call(About::Close, fea::CloseRelay { relay }, out);
        }
    }

    /// Sends a datagram, if the port is open.
    pub(crate) fn send(
        &mut self,
        link: u32,
        to: SocketAddr,
        bytes: Vec<u8>,
        out: &mut Vec<Output>,
    ) {
        let number = self.links.get(&link).and_then(|relay| relay.number);
        let Some(relay) = number.filter(|_| self.dialogue.is_there()) else { return };
        let packets = vec![fea::Packet { bytes: Binary(bytes), peer: to.to_string() }];
        self.dialogue.call(About::Send, fea::SendPackets { relay, packets }, out);
    }

    /// What has happened since this was asked last.
    pub(crate) fn take_news(&mut self) -> Vec<RelayNews> {
        std::mem::take(&mut self.news)
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let again = self.links.values().filter_map(|relay| relay.again);
        again.chain(self.dialogue.deadline()).min()
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        input: Input,
        out: &mut Vec<Output>,
    ) -> Option<Input> {
        let is_tick = matches!(input, Input::World(Event::Tick));
        let input = Client::hear(self, now, input, out);
        if is_tick {
            let is_due = |relay: &Relay| relay.again.is_some_and(|again| again <= now);
            let due: Vec<_> = self
                .links
                .iter_mut()
                .filter(|(_, relay)| is_due(relay))
                .map(|(link, relay)| {
                    relay.again = None;
                    *link
                })
                .collect();
            due.into_iter().for_each(|link| self.ask(link, out));
        }
        input
    }

    fn ask(&mut self, link: u32, out: &mut Vec<Output>) {
        let Some(relay) = self.links.get(&link).filter(|_| self.dialogue.is_there()) else {
            return;
        };
        let (life, spec) = (relay.life, relay.spec.clone());
        self.dialogue.call(About::Open(link, life), fea::OpenRelay { spec }, out);
    }

    fn of(&mut self, link: u32, life: u64) -> Option<&mut Relay> {
        self.links.get_mut(&link).filter(|relay| relay.life == life)
    }

    fn receive(&mut self, link: u32, life: u64, relay: u32, out: &mut Vec<Output>) {
        let request = fea::ReceivePackets { relay, at_most: AT_MOST, wait: QUIET };
        self.dialogue.call(About::Receive(link, life), request, out);
    }

    /// The FEA is gone, and its sockets with it.
    fn lose_all(&mut self) {
        for (link, relay) in &mut self.links {
            relay.again = None;
            if relay.number.take().is_some() {
                self.news.push(RelayNews::Closed { link: *link, error: None });
            }
        }
    }
}

impl Client<About> for Relays {
    fn dialogue(&mut self) -> &mut Dialogue<About> {
        &mut self.dialogue
    }

    fn began(&mut self, out: &mut Vec<Output>) {
        let links: Vec<_> = self.links.keys().copied().collect();
        links.into_iter().for_each(|link| self.ask(link, out));
    }

    fn ended(&mut self) {
        self.lose_all();
    }

    fn answered(
        &mut self,
        about: &About,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match *about {
            About::Open(link, life) => {
                let reply = reply.read::<fea::OpenRelay>()?;
                let Some(relay) = self.of(link, life) else {
                    // It was closed meanwhile.
                    let request = fea::CloseRelay { relay: reply.relay };
                    self.dialogue.call(About::Close, request, out);
                    return Ok(());
                };
                relay.number = Some(reply.relay);
                self.news.push(RelayNews::Opened { link, mtu: reply.mtu as usize });
                self.receive(link, life, reply.relay, out);
            }
            About::Receive(link, life) => {
                let reply = reply.read::<fea::ReceivePackets>()?;
                let Some(number) = self.of(link, life).and_then(|relay| relay.number) else {
                    return Ok(());
                };
                for fea::Packet { bytes, peer } in reply.packets {
                    // The FEA writes addresses as they are read.
                    if let Ok(from) = peer.parse() {
                        self.news.push(RelayNews::Packet { link, from, bytes: bytes.0 });
                    }
                }
                self.receive(link, life, number, out);
            }
            About::Send | About::Close => {}
        }
        Ok(())
    }

    /// Only this port is lost, unless the FEA is gone.
    fn refused(&mut self, now: Instant, about: &About, error: XrlError, out: &mut Vec<Output>) {
        if error.is_gone() {
            self.dialogue.failed(now, &error, out);
            return self.lose_all();
        }
        let (About::Open(link, life) | About::Receive(link, life)) = *about else { return };
        let lives = self.lives + 1;
        let Some(relay) = self.of(link, life) else { return };
        (relay.number, relay.again, relay.life) = (None, Some(now + AGAIN), lives);
        self.lives = lives;
        self.news.push(RelayNews::Closed { link, error: Some(error.note) });
    }
}
