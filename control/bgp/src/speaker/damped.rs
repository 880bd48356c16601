//! Routes of peers that come and go, while time passes and when operators ask.
//!
//! Reference: RFC 2439 §4.8.7 (what is used again when its time has come).

use serde_json::{Value, json};
use weft_base::Instant;
use weft_routing::OriginId;
use weft_xrl::Output;

use super::Bgp;
use super::context::World;
use super::peer::Peer;

impl Bgp {
    /// Uses routes again that have been still.
    pub(super) fn use_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        for origin in self.routes.damping_due() {
            let Some(address) = self.by_origin.get(&origin).copied() else { continue };
            self.with_peer(now, address, out, |peer, world| {
                let announcer = peer.up.as_ref().map(|up| &up.announcer);
                world.routes.use_again(origin, announcer);
            });
        }
    }

    /// What is known of a peer's routes that come and go; none if they are not damped.
    pub(super) fn damping(&self, origin: OriginId) -> Value {
        let damping = self.routes.damping(origin);
        damping.map_or(Value::Null, |damping| {
            json!({ "damped": damping.damped(), "known": damping.len(), "missed": damping.missed() })
        })
    }
}

impl Peer {
    /// Forgets how its routes have come and gone: those that are damped are used again.
    pub(super) fn forget_damping(&mut self, world: &mut World<'_>) {
        let is_damped = world.routes.forget_damping(self.origin);
        if let Some(up) = self.up.as_ref().filter(|_| is_damped) {
            world.routes.refilter(up.announcer.clone());
        }
    }
}
