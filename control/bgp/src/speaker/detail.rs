//! All that is known of one session, for operators.
//!
//! Reference: RFC 4271 §8 (the session), §4.2 (what is agreed on); RFC 5492 (capabilities).

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weft_base::Instant;
use weft_routing::ip::Version;

use super::Bgp;
use super::capabilities::{self, name, names};
use super::limit::Held;
use super::peer::Peer;
use crate::config::Excess;
use crate::fsm::PeerAs;
use crate::incoming::family;
use crate::policy::Filter;
use crate::wire::{MAX_EXTENDED_MESSAGE, MessageCounts, MessageType, Neighbour};

impl Bgp {
    /// A session, with what [`Bgp::show`] has of each and everything else.
    pub(super) fn detail(&self, now: Instant, peer: &Peer) -> Value {
        let mut shown = self.peer(now, peer);
        let (own, session) = (self.config.as_ref(), &peer.config.session);
        let [told_last, heard_last] = peer.history.told(now);
        let configured_as = match peer.config.remote_as {
            PeerAs::Exactly(number) => number.into(),
            PeerAs::External => "external".into(),
            PeerAs::Any => "any".into(),
        };
        for (name, value) in [
            ("state-for", peer.history.seconds(now).into()),
            ("own-as", json!(own.map(|own| own.home.seen_by(peer.config.neighbour)))),
            ("own-router-id", json!(own.map(|own| own.router_id.to_string()))),
            ("configured-as", configured_as),
            ("is-internal", (peer.config.neighbour == Neighbour::Internal).into()),
            ("is-confederation", (peer.config.neighbour == Neighbour::Confederation).into()),
            ("connection", connection(peer)),
            ("agreed", agreed(peer)),
            ("open", open(peer)),
            ("messages", messages(peer)),
            ("prefixes", self.prefixes(peer)),
            ("limit", limit(peer, now)),
            ("import", filter(&peer.config.import)),
            ("export", filter(&peer.config.export)),
            (
                "protection",
                json!({
                    "md5": session.key.is_some(), "ttl-security": session.ttl_security,
                    "multihop": session.multihop,
                }),
            ),
            ("options", options(peer)),
            ("last-sent", told_last),
            ("last-received", heard_last),
        ] {
            shown[name] = value;
        }
        shown
    }

    /// How many paths of each family the peer has announced, how many of them are accepted, and how many it was told. Only of
    /// families that are configured, or have any.
    fn prefixes(&self, peer: &Peer) -> Value {
        let of = |version| {
            let received = self.routes.table.routes_of(version, peer.origin);
            let is_wanted = peer.config.families.contains(family(version));
            let shown = json!({
                "received": received, "accepted": self.routes.accepted_of(version, peer.origin),
                "advertised": self.fanout.told_to(peer.origin, version),
            });
            (is_wanted || received > 0).then(|| (version.name().to_owned(), shown))
        };
        Value::Object(Map::from_iter(Version::ALL.into_iter().filter_map(of)))
    }
}

/// The addresses and ports of the connection on which routes are exchanged, or of the first one that there is.
fn connection(peer: &Peer) -> Value {
    let Some([own, other]) = peer.connection() else { return Value::Null };
    let end = |end: SocketAddr| json!({ "address": end.ip().to_canonical().to_string(), "port": end.port() });
    json!({ "own": end(own), "peer": end(other) })
}

/// What both sides have agreed on, while routes are exchanged.
fn agreed(peer: &Peer) -> Value {
    let Some(negotiated) = peer.session.negotiated() else { return Value::Null };
    // Families whose routes could not be read are not in it any more (RFC 7606 §7.11).
    let context = peer.up.as_ref().map_or(negotiated.context, |up| up.announcer.context);
    json!({
        "router-id": negotiated.peer_identifier.to_string(),
        "hold-time": seconds(negotiated.hold_time), "keepalive": seconds(negotiated.keepalive),
        "families": names(context.families), "four-octet-as": context.four_octet_as,
        "route-refresh": negotiated.route_refresh,
        "enhanced-route-refresh": negotiated.enhanced_refresh,
        "extended-message": context.send_limit == MAX_EXTENDED_MESSAGE,
        "add-path": { "receive": names(context.add_path_receive), "send": names(context.add_path_send) },
        "extended-next-hop": names(context.extended_next_hop),
        "peer-role": negotiated.peer_role.map(|role| role.to_string()),
        "graceful-restart": negotiated.graceful_restart.is_some(),
        "graceful-notification": negotiated.graceful_notification,
        "long-lived": negotiated.long_lived.is_some(),
    })
}

/// Both OPENs, while routes are exchanged.
fn open(peer: &Peer) -> Value {
    let Some((own, other)) = peer.session.opens() else { return Value::Null };
    json!({ "sent": capabilities::shown(own), "received": capabilities::shown(other) })
}

/// How many messages were sent and received since the peer is known.
fn messages(peer: &Peer) -> Value {
    let of = |counts: &MessageCounts| {
        let one = |kind: MessageType| (kind.to_string(), counts.of(kind).into());
        Value::Object(Map::from_iter(MessageType::ALL.map(one)))
    };
    json!({ "sent": of(&peer.tally.sent), "received": of(peer.session.received_messages()) })
}

/// How many prefixes it may announce, if there is a limit.
fn limit(peer: &Peer, now: Instant) -> Value {
    let Some(limit) = peer.config.session.prefix_limit else { return Value::Null };
    let action = match limit.excess {
        Excess::Warn => "warn",
        Excess::End => "end",
    };
    let waits = match peer.limit.held {
        Held::Until(until) => Some(until.since(now).as_secs()),
        Held::No | Held::Always => None,
    };
    json!({
        "most": limit.most, "action": action, "restart-after": limit.restart_after.map(seconds),
        "restarts-in": waits,
    })
}

/// `all`, `none`, or the names of policies.
fn filter(filter: &Filter) -> Value {
    match filter {
        Filter::All => "all".into(),
        Filter::None => "none".into(),
        Filter::Policies(program) => program.names().collect(),
    }
}

/// What the configuration says of it besides, as far as it is shown nowhere else.
fn options(peer: &Peer) -> Value {
    let (config, session) = (&peer.config, &peer.config.session);
    json!({
        "passive": config.passive, "hold-time": seconds(config.hold_time),
        "connect-retry": seconds(session.connect_retry),
        "delay-open": seconds(session.delay_open),
        "advertisement-interval": seconds(session.advertisement_interval),
        "families": Vec::from_iter(config.families.iter().map(name)),
        "local-role": session.role.map(|role| role.to_string()), "role-strict": session.role_strict,
        "client": config.is_client, "next-hop-self": config.next_hop_self,
        "enforce-first-as": session.enforce_first_as, "accept-as-sets": session.accept_as_sets,
        "blackhole": session.blackhole, "graceful-shutdown": session.graceful_shutdown,
    })
}

/// A number of seconds, whole if it is.
fn seconds(time: Duration) -> Value {
    if time.subsec_nanos() == 0 { time.as_secs().into() } else { time.as_secs_f64().into() }
}
