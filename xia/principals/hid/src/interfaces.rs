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

/// Who is asked something. Budgets are apart, so that who is easily invented takes nothing from others; those come last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// Who announces itself, and is challenged.
    Newcomer,
    /// A neighbour that has not spoken again since it was learned.
    Unheard,
    /// A neighbour that has, but has never answered a question, as those of Linux XIA.
    Plain,
    /// A neighbour that has answered a question.
    Known,
}

/// What is left of an interface's budgets.
#[derive(Debug, Default)]
pub(crate) struct Budgets {
    questions: [Bucket; 4],
    answers: Bucket,
    strangers: Signatures,
    /// Of all hardware addresses at which a HID is proven, each of which has a share of its own, too.
    proven: Signatures,
    withdrawals: Bucket,
}

/// What is left of a budget for signatures that are made, and that are checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signatures {
    made: Bucket,
    checked: Bucket,
}

/// What is to be done with a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    Make,
    Check,
}

/// So many at once, and then one in this time.
type Rate = (Duration, u32);

/// What costs little.
const FRAMES: Rate = (Duration::from_millis(2), 128);
/// Questions to all neighbours that may be invented.
const UNHEARD: Rate = (Duration::from_millis(10), 32);
/// What costs a signature for strangers, made or checked: some tens of microseconds.
const STRANGERS: Rate = (Duration::from_millis(10), 32);
/// The same for one hardware address at which a HID is proven: it asks, and is asked, once a second at most.
const PROVEN: Rate = (Duration::from_millis(500), 4);
/// The same for all of these: a full table that expires after five seconds needs no more.
const ALL_PROVEN: Rate = (Duration::from_millis(1), 256);

impl Budgets {
    /// Whether somebody may be asked something now; if so, it is charged.
    pub(crate) fn ask(&mut self, now: Instant, whom: Asked) -> bool {
        let rate = if whom == Asked::Unheard { UNHEARD } else { FRAMES };
        take(&mut self.questions[whom as usize], now, rate)
    }

    /// Whether a probe may be answered now.
    pub(crate) fn answer(&mut self, now: Instant) -> bool {
        take(&mut self.answers, now, FRAMES)
    }

    /// Whether a signature may be made or checked now for a hardware address. Where a HID is proven there it has a
    /// share of its `own`: anybody can send frames in its name, which takes nothing from others then.
    pub(crate) fn sign(&mut self, now: Instant, what: Sign, own: Option<&mut Signatures>) -> bool {
        match own {
            Some(own) => own.take(now, what, PROVEN) && self.proven.take(now, what, ALL_PROVEN),
            None => self.strangers.take(now, what, STRANGERS),
        }
    }

    /// Whether the signature of a withdrawal may be checked now. Anybody can send these with the address and the
    /// epoch of a neighbour, so they take nothing from proofs.
    pub(crate) fn withdrawal(&mut self, now: Instant) -> bool {
        take(&mut self.withdrawals, now, STRANGERS)
    }
}

impl Signatures {
    fn take(&mut self, now: Instant, what: Sign, rate: Rate) -> bool {
        let bucket = match what {
            Sign::Make => &mut self.made,
            Sign::Check => &mut self.checked,
        };
        take(bucket, now, rate)
    }
}

fn take(bucket: &mut Bucket, now: Instant, (interval, burst): Rate) -> bool {
    bucket.take(now, interval, burst)
}

/// The interfaces by name.
pub(crate) type Interfaces = BTreeMap<String, Interface>;

/// The earliest time at which a failed port is to be asked for again.
pub(crate) fn next_retry(interfaces: &Interfaces) -> Option<Instant> {
    interfaces.values().filter_map(|interface| interface.nwp.retry_at()).min()
}
