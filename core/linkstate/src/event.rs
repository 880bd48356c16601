//! What the carrier tells the engine, and what the engine asks of it.

use std::collections::BTreeMap;

use crate::ids::{Destination, LinkId, Metric, NodeId};
use crate::routes::Route;

/// What happens in the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// The deadline has come.
    Tick,
    /// A neighbour may be reached on this link from now on. If the link is there already, it begins anew.
    LinkUp {
        /// Which.
        link: LinkId,
        /// What it costs, 1 to [`MAX_METRIC`](crate::MAX_METRIC); others are brought into this range.
        metric: Metric,
        /// The only node that is taken for the neighbour; `None`: whoever proves who he is.
        neighbour: Option<NodeId>,
    },
    /// Nothing can be sent on this link any more: its neighbour is lost at once.
    LinkDown {
        /// Which.
        link: LinkId,
    },
    /// The link costs something else.
    Metric {
        /// Which.
        link: LinkId,
        /// As in [`Input::LinkUp`].
        metric: Metric,
    },
    /// A message came on a link; it may be padded.
    Received {
        /// Which.
        link: LinkId,
        /// The message.
        message: Vec<u8>,
    },
    /// These destinations, and no others, are reached on this node, and so much it costs from here.
    Advertise {
        /// All of them; metrics above [`MAX_METRIC`](crate::MAX_METRIC) are brought down to it.
        destinations: BTreeMap<Destination, Metric>,
    },
    /// This node goes: it withdraws what it advertised and takes leave. Nothing happens after that.
    Stop,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message on a link. Messages may be lost, doubled and come in another order.
    Send {
        /// Which.
        link: LinkId,
        /// Of [`Settings::message_size`](crate::Settings) bytes at most.
        message: Vec<u8>,
    },
    /// A neighbour has told all it knows; packets may go over it.
    NeighbourUp {
        /// The way to it.
        link: LinkId,
        /// Who it is.
        node: NodeId,
    },
    /// A neighbour that was up is lost.
    NeighbourDown {
        /// The way to it.
        link: LinkId,
        /// Who it was.
        node: NodeId,
        /// Why.
        reason: Loss,
    },
    /// Packets to a destination go another way from now on.
    Route {
        /// Where to.
        destination: Destination,
        /// The way; `None` if there is none any more.
        route: Option<Route>,
    },
}

/// Why a neighbour is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The carrier said that the link is down.
    LinkDown,
    /// Nothing was heard for the hold time.
    Silent,
    /// It was started again.
    Restarted,
    /// It took leave.
    Farewell,
}

impl Loss {
    /// What happened, as the rest of a sentence that begins with the neighbour.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::LinkDown => "is lost with its link",
            Self::Silent => "has fallen silent",
            Self::Restarted => "was started again",
            Self::Farewell => "took leave",
        }
    }
}
