//! What two speakers agree on when each has sent its OPEN.
//!
//! Reference: RFC 4271 §4.2, §6.2; RFC 4724 §3; RFC 4760 §8; RFC 5065 §4; RFC 5492; RFC 6286 §2.1; RFC 6793 §4.1; RFC 7911 §4; RFC
//! 8538 §2; RFC 8654 §3; RFC 8950 §4; RFC 9234 §4.2; RFC 9494 §3.1, §4.5.

use std::net::Ipv4Addr;
use std::time::Duration;

use super::settings::{PeerAs, Settings};
use crate::numbers::afi;
use crate::wire::{
    AddPath, Capability, Context, Families, Family, GracefulRestart, LongLived,
    MAX_EXTENDED_MESSAGE, MAX_MESSAGE, MessageError, Neighbour, Open, Role,
};

/// What was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negotiated {
    /// How messages are read and written.
    pub context: Context,
    /// The peer's autonomous system.
    pub peer_as: u32,
    /// The peer's identifier.
    pub peer_identifier: Ipv4Addr,
    /// For how long each side may be silent; zero: for ever.
    pub hold_time: Duration,
    /// How often KEEPALIVEs are sent, before jitter; zero: never.
    pub keepalive: Duration,
    /// The peer sends routes again when it is asked.
    pub route_refresh: bool,
    /// Both say where sending again begins and ends.
    pub enhanced_refresh: bool,
    /// What the peer is to us, if both have said it and it fits.
    pub peer_role: Option<Role>,
    /// What the peer has said of graceful restart, if we have, too. Families that are not exchanged are left out.
    pub graceful_restart: Option<GracefulRestart>,
    /// Sessions that end by NOTIFICATION or silence end gracefully (RFC 8538).
    pub graceful_notification: bool,
    /// What the peer has said of long-lived graceful restart, if we have, too. Families that are not exchanged are left out.
    pub long_lived: Option<Vec<LongLived>>,
    /// The peer's OPEN.
    pub open: Open,
}

/// What `open` and ours agree on.
///
/// # Errors
/// There can be no session with this peer.
pub(super) fn negotiate(settings: &Settings, open: Open) -> Result<Negotiated, MessageError> {
    let peer_as = open.autonomous_system();
    if !settings.peer_as.allows(peer_as, settings.local_as) {
        return Err(MessageError::PeerAs(peer_as));
    }
    let neighbour = match settings.members.contains(&peer_as) {
        _ if peer_as == settings.local_as => Neighbour::Internal,
        // It would be asked for another number of ours, and is in no other system.
        true if settings.peer_as == PeerAs::External => return Err(MessageError::PeerAs(peer_as)),
        true => Neighbour::Confederation,
        false => Neighbour::External,
    };
    // RFC 6793 §3: numbers of members are in no AS4_PATH, so that loops would not be seen.
    let is_long = u16::try_from(settings.local_as).is_err();
    if neighbour == Neighbour::Confederation && is_long && open.four_octet_as().is_none() {
        let needed = Capability::FourOctetAs(settings.local_as);
        return Err(MessageError::Capability(capabilities([needed].into_iter())));
    }
    // RFC 6286 §2.2: identifiers are unique inside an autonomous system.
    if neighbour == Neighbour::Internal && open.identifier == settings.identifier {
        return Err(MessageError::Identifier);
    }
    if open.hold_time < settings.min_hold_time {
        return Err(MessageError::HoldTime(open.hold_time));
    }
    let peer_role = role(settings, &open, neighbour)?;
    let families = Families::from_iter(open.families()) & settings.families;
    if families.is_empty() {
        return Err(MessageError::Capability(capabilities(settings.multiprotocol())));
    }
    let has = |wanted: &Capability| open.capabilities.contains(wanted);
    let is_extended = settings.extended_message && has(&Capability::ExtendedMessage);
    let seconds = Duration::from_secs(u64::from(open.hold_time.min(settings.hold_time)));
    let graceful_restart = graceful_restart(settings, &open, families);
    let context = Context {
        neighbour,
        four_octet_as: open.four_octet_as().is_some(),
        families,
        add_path_receive: add_path(settings, &open, families, |ours, peer| {
            ours.receives() && peer.sends()
        }),
        add_path_send: add_path(settings, &open, families, |ours, peer| {
            ours.sends() && peer.receives()
        }),
        extended_next_hop: extended_next_hop(&open) & settings.extended_next_hop & families,
        send_limit: if is_extended { MAX_EXTENDED_MESSAGE } else { MAX_MESSAGE },
        accept_as_sets: settings.accept_as_sets,
    };
    Ok(Negotiated {
        context,
        peer_as,
        peer_identifier: open.identifier,
        hold_time: seconds,
        keepalive: keepalive(settings, seconds),
        route_refresh: has(&Capability::RouteRefresh),
        enhanced_refresh: has(&Capability::EnhancedRefresh),
        peer_role,
        graceful_notification: graceful_restart.as_ref().is_some_and(|peer| peer.notification)
            && settings.graceful_restart.as_ref().is_some_and(|ours| ours.notification),
        long_lived: long_lived(settings, &open, families),
        graceful_restart,
        open,
    })
}

/// RFC 4271 §4.4: a third of the hold time, and not more often than once a second.
fn keepalive(settings: &Settings, hold_time: Duration) -> Duration {
    if hold_time.is_zero() {
        return Duration::ZERO;
    }
    let third = hold_time / 3;
    settings.keepalive.unwrap_or(third).min(third).max(Duration::from_secs(1))
}

/// Capabilities as an OPEN has them.
fn capabilities(all: impl Iterator<Item = Capability>) -> Vec<u8> {
    let mut bytes = Vec::new();
    all.for_each(|capability| capability.emit(&mut bytes));
    bytes
}

/// RFC 9234 §4.2.
fn role(
    settings: &Settings,
    open: &Open,
    neighbour: Neighbour,
) -> Result<Option<Role>, MessageError> {
    let Some(ours) = settings.role.filter(|_| neighbour == Neighbour::External) else {
        return Ok(None);
    };
    let mut said = open.capabilities.iter().filter_map(|capability| match capability {
        Capability::Role(role) => Some(*role),
        _ => None,
    });
    match said.next() {
        None if settings.is_role_strict => Err(MessageError::Role),
        None => Ok(None),
        // Saying it twice is no fault, saying two things is.
        Some(first) if ours.fits(first) && said.all(|role| role == first) => Ok(Some(first)),
        Some(_) => Err(MessageError::Role),
    }
}

fn add_path(
    settings: &Settings,
    open: &Open,
    families: Families,
    fits: impl Fn(AddPath, AddPath) -> bool,
) -> Families {
    let mut agreed = Families::EMPTY;
    for capability in &open.capabilities {
        let Capability::AddPath(theirs) = capability else { continue };
        for (family, direction) in theirs {
            let ours = settings.add_path.iter().find(|(one, _)| one == family);
            if ours.is_some_and(|(_, ours)| fits(*ours, *direction)) {
                agreed.insert(*family);
            }
        }
    }
    agreed & families
}

/// Families whose next hop may be of IPv6, as the peer says.
fn extended_next_hop(open: &Open) -> Families {
    let tuples = open.capabilities.iter().filter_map(|capability| match capability {
        Capability::ExtendedNextHop(tuples) => Some(tuples),
        _ => None,
    });
    tuples
        .flatten()
        .filter(|tuple| tuple.next_hop_afi == afi::IPV6)
        .filter_map(|tuple| Some(Family { afi: tuple.afi, safi: u8::try_from(tuple.safi).ok()? }))
        .collect()
}

fn graceful_restart(settings: &Settings, open: &Open, agreed: Families) -> Option<GracefulRestart> {
    settings.graceful_restart.as_ref()?;
    // RFC 4724 §3: of several the last one counts.
    let mut said = open.capabilities.iter().rev().find_map(|capability| match capability {
        Capability::GracefulRestart(restart) => Some(restart.clone()),
        _ => None,
    })?;
    said.families.retain(|(family, _)| agreed.contains(*family));
    Some(said)
}

/// RFC 9494 §4.5: without graceful restart it means nothing.
fn long_lived(settings: &Settings, open: &Open, agreed: Families) -> Option<Vec<LongLived>> {
    let restarts = open
        .capabilities
        .iter()
        .any(|capability| matches!(capability, Capability::GracefulRestart(_)));
    if !restarts || settings.graceful_restart.is_none() || settings.long_lived.is_none() {
        return None;
    }
    let mut all: Option<Vec<LongLived>> = None;
    for capability in &open.capabilities {
        let Capability::LongLived(tuples) = capability else { continue };
        let of_session = tuples.iter().filter(|tuple| agreed.contains(tuple.family));
        all.get_or_insert_default().extend(of_session);
    }
    all
}
