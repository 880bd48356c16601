//! The interfaces that carry XIP packets, and the port beside each that carries NWP.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::{Bucket, Instant, PortId};
use weft_port::{PortInfo, PortSpec};
use weft_wire::MacAddr;
use weft_xip::kept_port::KeptPort;

use crate::nwp::EPOCH_LEN;

/// An interface that carries XIP packets.
#[derive(Debug)]
pub(crate) struct Interface {
    /// The port of its XIP packets.
    pub(crate) port: PortId,
    pub(crate) mac: MacAddr,
    pub(crate) mtu: usize,
    /// The port that carries NWP; closed where that is switched off.
    pub(crate) nwp: KeptPort,
    /// When this node announced itself to all there last.
    pub(crate) spoke: Option<Instant>,
    /// A withdrawal counts for those who know it by a proof.
    pub(crate) epoch: [u8; EPOCH_LEN],
    pub(crate) budgets: Budgets,
}

impl Interface {
    pub(crate) fn new(
        name: &str,
        port: PortId,
        info: &PortInfo,
        ethertype: u16,
        epoch: [u8; EPOCH_LEN],
    ) -> Self {
        let spec = PortSpec::Ethernet { interface: name.to_owned(), ethertype };
        let budgets = Budgets::default();
        let nwp = KeptPort::new(spec);
        Self { port, mac: MacAddr(info.mac), mtu: info.mtu, nwp, spoke: None, epoch, budgets }
    }

    /// Loopback and links without hardware addresses have nobody to discover.
    pub(crate) fn can_discover(&self) -> bool {
        self.mac != MacAddr::UNSPECIFIED
    }
}

/// Who has something done. Budgets are apart, so that strangers take nothing from neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// At its hardware address a HID is proven; for questions, a neighbour that was learned.
    Known,
    Stranger,
}

/// What is left of an interface's budgets, for the known and for strangers.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    questions: [Bucket; 2],
    answers: Bucket,
    signatures: [Bucket; 2],
    checks: [Bucket; 2],
}

/// What costs little: so many at once, and then one in this time.
const FRAMES: (Duration, u32) = (Duration::from_millis(2), 128);
/// What costs a signature, made or checked: some tens of microseconds.
const SIGNATURES: (Duration, u32) = (Duration::from_millis(10), 32);

impl Budgets {
    /// Whether a neighbour may be asked something now; if so, it is charged.
    pub(crate) fn ask(&mut self, now: Instant, whom: Asker) -> bool {
        take(&mut self.questions[whom as usize], now, FRAMES)
    }

    /// Whether a probe may be answered now.
    pub(crate) fn answer(&mut self, now: Instant) -> bool {
        take(&mut self.answers, now, FRAMES)
    }

    /// Whether a signature may be made now.
    pub(crate) fn sign(&mut self, now: Instant, whom: Asker) -> bool {
        take(&mut self.signatures[whom as usize], now, SIGNATURES)
    }

    /// Whether a signature may be checked now.
    pub(crate) fn check(&mut self, now: Instant, whom: Asker) -> bool {
        take(&mut self.checks[whom as usize], now, SIGNATURES)
    }
}

fn take(bucket: &mut Bucket, now: Instant, (interval, burst): (Duration, u32)) -> bool {
    bucket.take(now, interval, burst)
}

/// The interfaces by name.
pub(crate) type Interfaces = BTreeMap<String, Interface>;

/// The earliest time at which a failed port is to be asked for again.
pub(crate) fn next_retry(interfaces: &Interfaces) -> Option<Instant> {
    interfaces.values().filter_map(|interface| interface.nwp.retry_at()).min()
}
