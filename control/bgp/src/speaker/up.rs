//! What is agreed on with a peer, and what of it becomes what: how a session is to be, who announces, who is told.
//!
//! Reference: RFC 4271 §8 (sessions), §9.1 and §9.2 (what is taken, and what is told).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::rc::Rc;

use weft_base::{ChannelId, Instant};
use weft_routing::ip::Version;

use super::context::World;
use super::faults::Faults;
use super::peer::Peer;
use super::stale::Said;
use crate::config::{Config, PeerConfig, Standing};
use crate::fsm::{Negotiated, Settings};
use crate::incoming::Announcer;
use crate::policy::Party;
use crate::routes::decision::Source;
use crate::routes::export::Audience;
use crate::wire::{Attributes, Families, GracefulRestart, LongLived, Neighbour};

/// Routes are exchanged.
#[derive(Debug)]
pub(super) struct Up {
    pub(super) channel: ChannelId,
    pub(super) announcer: Announcer,
    pub(super) audience: Audience,
    pub(super) since: Instant,
    /// Families of which the peer has announced all that it had.
    pub(super) complete: BTreeSet<Version>,
    /// Families of which it sends everything again (RFC 7313).
    pub(super) refreshing: BTreeSet<Version>,
    /// Families that it has sent again in this session, or that were disabled in it.
    pub(super) renewed: BTreeSet<Version>,
    /// What those hear of the session who monitor peers: that it is there.
    pub(super) introduction: Rc<[u8]>,
    /// What it has said of graceful restart.
    pub(super) graceful: Option<GracefulRestart>,
    /// And of routes that live long.
    pub(super) long_lived: Vec<LongLived>,
    /// It knows where sending again begins and ends (RFC 7313).
    pub(super) is_enhanced: bool,
    /// It cannot take more.
    pub(super) is_congested: bool,
    /// What the log has said of its faults.
    pub(super) faults: Faults,
}

impl Up {
    /// Whether it may be told of a route, whatever policy says.
    pub(super) fn may_hear(&self, attributes: &Attributes, source: &Source) -> bool {
        self.audience.may_hear(attributes, source)
    }

    /// Whether the peer may say now that it sends everything of a family again: RFC 7313 §4, not before one that knows of
    /// graceful restart has announced everything for the first time.
    pub(super) fn may_refresh(&self, version: Version) -> bool {
        self.graceful.is_none() || self.complete.contains(&version)
    }

    /// What it has said of graceful restart, if it has.
    pub(super) fn said(&self) -> Option<Said<'_>> {
        let graceful = self.graceful.as_ref()?;
        Some(Said { graceful, long_lived: &self.long_lived })
    }
}

impl Peer {
    /// Who it is, if policy asks for that on export.
    pub(super) fn asked_for(&self, system: u32) -> Option<Party> {
        let is_external = self.config.neighbour == Neighbour::External;
        let party = Party { address: self.address, system, is_external };
        self.config.export.asks_for_peer().then_some(party)
    }

    /// What announces its routes.
    pub(super) fn announcer(
        &self,
        negotiated: &Negotiated,
        local_address: IpAddr,
        own: &Config,
    ) -> Announcer {
        Announcer {
            origin: self.origin,
            context: negotiated.context,
            remote_as: negotiated.peer_as,
            home: own.home,
            router_id: own.router_id,
            cluster_id: own.cluster_id,
            role: self.config.session.role,
            enforce_first_as: self.config.session.enforce_first_as,
            local_address,
            import: self.config.import.clone(),
        }
    }

    /// What is told routes.
    pub(super) fn audience(
        &self,
        negotiated: &Negotiated,
        local_address: IpAddr,
        world: &World<'_>,
    ) -> Audience {
        let own = world.config;
        Audience {
            neighbour: negotiated.context.neighbour,
            is_client: self.config.is_client,
            home: own.home,
            cluster_id: own.cluster_id,
            next_hop_self: self.config.next_hop_self,
            local_address,
            address_beside: world.links.beside(local_address),
            role: self.config.session.role,
            is_closing: self.config.session.graceful_shutdown,
            knows_long_lived: negotiated.long_lived.is_some(),
            is_partial: own.graceful.long_lived_partial,
            export: self.config.export.clone(),
            interval: self.config.session.advertisement_interval,
            peer: self.asked_for(negotiated.peer_as),
        }
    }
}

/// What a session with such a peer is to be like.
pub(super) fn settings(config: &PeerConfig, own: &Config, standing: Standing) -> Settings {
    let mut settings = Settings {
        families: config.families,
        // The configuration allows no more than fits.
        hold_time: u16::try_from(config.hold_time.as_secs()).unwrap_or(u16::MAX),
        is_passive: config.passive,
        add_path: match config.add_path {
            Some(add_path) => config.families.iter().map(|family| (family, add_path)).collect(),
            None => Vec::new(),
        },
        connect_retry: config.session.connect_retry,
        delay_open: Some(config.session.delay_open).filter(|delay| !delay.is_zero()),
        accept_as_sets: config.session.accept_as_sets,
        extended_next_hop: match config.session.extended_next_hop {
            true => config.families,
            false => Families::EMPTY,
        },
        role: config.session.role,
        is_role_strict: config.session.role_strict,
        members: own.members.clone(),
        transport: config.session.transport(),
        ..Settings::new(own.home.seen_by(config.neighbour), own.router_id, config.remote_as)
    };
    settings.graceful_restart = own.graceful.capability(config.graceful, &settings, standing);
    settings.long_lived = own.graceful.long_lived(config.graceful, &settings, standing);
    settings
}
