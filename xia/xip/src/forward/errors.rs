//! Which sources are told of packets that the forwarder drops, and how often.
//!
//! The forwarder only takes down what there is to tell, and drops as ever; the node makes packets of it
//! ([`crate::error_message`]). Without a limit in [`Limits`](super::Limits) nothing is looked at.

use weft_base::{Counters, PortId};

use super::slow_path::{SlowPath, SlowPathLimit};
use super::{DropReason, Trip};
use crate::Address;
use crate::error_message::{ErrorKind, source_to_tell};
use crate::header::XipPacket;

weft_base::reasons! {
    /// What became of error messages.
    pub enum ErrorActivity {
        Sent = "sent", "error messages to sources of packets that were dropped here";
        OverLimit = "over-limit", "messages not sent, because the packet's port has caused too many lately";
        NobodyToTell = "nobody-to-tell", "drops without a message: multicast, errors, and packets without a source";
        Received = "received", "error messages passed on to an application of this node";
        Refused = "refused", "error messages that are malformed, or about what the application did not send";
    }
}

/// A packet of which the source is to be told that it was dropped.
#[derive(Debug)]
pub(crate) struct Dropped {
    pub(crate) kind: ErrorKind,
    /// Of the link that it would have left by, in bytes; 0 if that is not why.
    pub(crate) mtu: usize,
    pub(crate) source: Address,
    /// The port that it came in on.
    pub(crate) port: PortId,
    /// The whole packet, with its XIP header.
    pub(crate) packet: Vec<u8>,
}

/// What there is to tell.
pub(crate) struct Errors {
    /// How many each input port may cause; `None`: nobody is told of anything.
    limit: Option<SlowPath>,
    dropped: Vec<Dropped>,
    pub(crate) activity: Counters<ErrorActivity>,
}

impl Errors {
    pub(super) fn new(limit: Option<SlowPathLimit>) -> Self {
        let limit = limit.map(|limit| SlowPath::new(Some(limit)));
        Self { limit, dropped: Vec::new(), activity: Counters::new() }
    }

    /// Another limit of each input port, from now on.
    pub(super) fn set_limit(&mut self, limit: Option<SlowPathLimit>) {
        self.limit = limit.map(|limit| SlowPath::new(Some(limit)));
    }

    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.limit.is_some()
    }

    /// What has come together, which is to be told now.
    pub(crate) fn take(&mut self) -> Vec<Dropped> {
        std::mem::take(&mut self.dropped)
    }

    /// Takes a drop down, if somebody is told of drops like this.
    #[cold]
    pub(super) fn note<T: AsRef<[u8]>>(
        &mut self,
        packet: &XipPacket<T>,
        reason: DropReason,
        trip: &Trip,
        mtu: usize,
    ) {
        let (Some(limit), Some(kind)) = (&mut self.limit, ErrorKind::of(reason)) else { return };
        // Applications of this node are told by their channels.
        if !trip.received {
            return;
        }
        let source = source_to_tell(packet).filter(|_| !trip.is_branched);
        let Some(source) = source else {
            self.activity.add(ErrorActivity::NobodyToTell, 1);
            return;
        };
        if !limit.admits(trip.time, trip.from) {
            self.activity.add(ErrorActivity::OverLimit, 1);
            return;
        }
        let packet = packet.as_bytes().to_vec();
        self.dropped.push(Dropped { kind, mtu, source, port: trip.from, packet });
    }

    pub(super) fn remove_port(&mut self, port: PortId) {
        if let Some(limit) = &mut self.limit {
            limit.remove_port(port);
        }
    }
}
