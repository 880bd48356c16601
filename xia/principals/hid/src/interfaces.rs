//! The interfaces that carry XIP packets, and the port beside each that carries NWP.

use std::collections::BTreeMap;
use std::time::Duration;

use weft_base::{Instant, PortId, Token};
use weft_port::{PortInfo, PortSpec};
use weft_wire::MacAddr;
use weft_xip::numbers::ETHERTYPE_NWP;
use weft_xip::principal::Output;

/// First wait before a port that failed is asked for again; doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Longest such wait.
const LAST_RETRY: Duration = Duration::from_secs(60);

/// An interface that carries XIP packets.
#[derive(Debug)]
pub(crate) struct Interface {
    /// The port of its XIP packets.
    pub(crate) port: PortId,
    pub(crate) mac: MacAddr,
    pub(crate) mtu: usize,
    pub(crate) nwp: NwpPort,
    /// How often in a row its NWP port could not be opened or was lost.
    failures: u32,
}

/// The port that carries NWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NwpPort {
    Off,
    Opening(Token),
    Open(PortId),
    /// It failed; ask again at this time.
    Failed(Instant),
}

impl Interface {
    pub(crate) fn new(port: PortId, info: &PortInfo) -> Self {
        let mac = MacAddr(info.mac);
        Self { port, mac, mtu: info.mtu, nwp: NwpPort::Off, failures: 0 }
    }

    /// Loopback and links without hardware addresses have nobody to discover.
    pub(crate) fn can_discover(&self) -> bool {
        self.mac != MacAddr::UNSPECIFIED
    }

    /// The NWP port if it is open.
    pub(crate) fn open_port(&self) -> Option<PortId> {
        match self.nwp {
            NwpPort::Open(port) => Some(port),
            _ => None,
        }
    }

    /// Asks for the NWP port.
    pub(crate) fn open(&mut self, name: &str, token: Token, out: &mut Vec<Output>) {
        self.nwp = NwpPort::Opening(token);
        let spec = PortSpec::Ethernet { interface: name.to_owned(), ethertype: ETHERTYPE_NWP };
        out.push(Output::OpenPort { token, spec });
    }

    /// Closes the NWP port. One that is just being opened is closed when it is there.
    pub(crate) fn close(&mut self, out: &mut Vec<Output>) {
        if let NwpPort::Open(port) = self.nwp {
            out.push(Output::ClosePort { port });
        }
        self.nwp = NwpPort::Off;
        self.failures = 0;
    }

    /// The NWP port is there; true if it failed before.
    pub(crate) fn opened(&mut self, port: PortId) -> bool {
        self.nwp = NwpPort::Open(port);
        std::mem::take(&mut self.failures) > 0
    }

    /// The NWP port is not there; true if this is the first failure in a row.
    pub(crate) fn failed(&mut self, now: Instant) -> bool {
        let doublings = self.failures.min(6);
        self.nwp = NwpPort::Failed(now + (FIRST_RETRY * (1 << doublings)).min(LAST_RETRY));
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }
}

/// The interfaces by name.
pub(crate) type Interfaces = BTreeMap<String, Interface>;

/// The earliest time at which a failed port is to be asked for again.
pub(crate) fn next_retry(interfaces: &Interfaces) -> Option<Instant> {
    let retry = |interface: &Interface| match interface.nwp {
        NwpPort::Failed(at) => Some(at),
        _ => None,
    };
    interfaces.values().filter_map(retry).min()
}
