//! The interfaces that carry XIP packets, and the port beside each that carries NWP.

use std::collections::BTreeMap;

use weft_base::{Bucket, Instant, PortId};
use weft_port::{PortInfo, PortSpec};
use weft_wire::MacAddr;
use weft_xip::kept_port::KeptPort;
use weft_xip::numbers::ETHERTYPE_NWP;

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
    /// What is left of the budgets.
    pub(crate) questions: Bucket,
    pub(crate) answers: Bucket,
}

impl Interface {
    pub(crate) fn new(name: &str, port: PortId, info: &PortInfo) -> Self {
        let spec = PortSpec::Ethernet { interface: name.to_owned(), ethertype: ETHERTYPE_NWP };
        Self {
            port,
            mac: MacAddr(info.mac),
            mtu: info.mtu,
            nwp: KeptPort::new(spec),
            spoke: None,
            questions: Bucket::default(),
            answers: Bucket::default(),
        }
    }

    /// Loopback and links without hardware addresses have nobody to discover.
    pub(crate) fn can_discover(&self) -> bool {
        self.mac != MacAddr::UNSPECIFIED
    }
}

/// The interfaces by name.
pub(crate) type Interfaces = BTreeMap<String, Interface>;

/// The earliest time at which a failed port is to be asked for again.
pub(crate) fn next_retry(interfaces: &Interfaces) -> Option<Instant> {
    interfaces.values().filter_map(|interface| interface.nwp.retry_at()).min()
}
