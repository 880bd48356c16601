//! What the engine knows, for people and programs.

use std::collections::BTreeSet;
use std::time::Duration;

use weft_base::{Counters, Instant};

use super::LinkState;
use crate::activity::Activity;
use crate::authority::Authority;
use crate::ids::{Destination, LinkId, LsaId, Metric, NodeId};
use crate::routes::Route;
use crate::tree::tree;
use crate::wire::LsaRepr;

/// How far it has come with a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighbourState {
    /// Nobody has answered yet.
    Greeted,
    /// It tells what it knows.
    Loading,
    /// Packets may go over it.
    Usable,
}

impl NeighbourState {
    /// One word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Greeted => "greeted",
            Self::Loading => "loading",
            Self::Usable => "usable",
        }
    }
}

/// A link and the neighbour on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The way to it.
    pub link: LinkId,
    /// What the link costs.
    pub metric: Metric,
    /// How far it has come.
    pub state: NeighbourState,
    /// Who it is, if there is a session.
    pub node: Option<NodeId>,
    /// Since when there is a session, or none.
    pub since: Instant,
    /// Advertisements that it is still to be told.
    pub outstanding: usize,
}

/// An advertisement in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// What it is about.
    pub id: LsaId,
    /// Counted up by the originator.
    pub sequence: u64,
    /// How long it is kept if nothing newer comes.
    pub left: Duration,
    /// What it says; `None` if it has expired.
    pub content: Option<LsaRepr>,
}

impl<A: Authority> LinkState<A> {
    /// The links, in order.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour> {
        self.links.values().map(|link| Neighbour {
            link: link.id,
            metric: link.metric,
            state: match (link.neighbour(), link.usable()) {
                (None, _) => NeighbourState::Greeted,
                (Some(_), None) => NeighbourState::Loading,
                (Some(_), Some(_)) => NeighbourState::Usable,
            },
            node: link.neighbour(),
            since: link.since,
            outstanding: link.flood.outstanding(),
        })
    }

    /// The database, in order of originators.
    pub fn database(&self, now: Instant) -> impl Iterator<Item = Advertised> {
        self.database.iter().map(move |(id, entry)| Advertised {
            id: *id,
            sequence: entry.version.sequence,
            left: entry.expires.since(now),
            content: entry.lsa().map(|lsa| LsaRepr::parse(&lsa)),
        })
    }

    /// How many advertisements there are, expired ones included.
    #[must_use]
    pub fn database_len(&self) -> usize {
        self.database.len()
    }

    /// The routes, by destination.
    pub fn routes(&self) -> impl Iterator<Item = (&Destination, &Route)> {
        self.routes.iter()
    }

    /// The route to a destination.
    #[must_use]
    pub fn route(&self, destination: &Destination) -> Option<&Route> {
        self.routes.get(destination)
    }

    /// How far another node is; `None` if it cannot be reached, or is this one.
    #[must_use]
    pub fn distance(&self, node: NodeId) -> Option<u64> {
        self.reach.get(&node).map(|reach| reach.distance)
    }

    /// The links of a tree from this node to others, each as the node where it begins and that where it ends, in order:
    /// a shortest path to each of them, and of several the one that shares most links.
    ///
    /// # Errors
    /// The first of them that cannot be reached.
    pub fn tree(&self, to: &[NodeId]) -> Result<BTreeSet<(NodeId, NodeId)>, NodeId> {
        tree(&self.database, self.node, &self.own_links(), &self.reach, to)
    }

    /// Whether the network is at rest, as RFC 8405 §5.1 says it: `quiet`, `short wait` or `long wait`.
    #[must_use]
    pub fn calm(&self, now: Instant) -> &'static str {
        self.spf.state(now).name()
    }

    /// What was counted.
    #[must_use]
    pub fn counted(&self) -> &Counters<Activity> {
        &self.counters
    }
}
