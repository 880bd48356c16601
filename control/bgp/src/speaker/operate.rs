//! What operators ask for.
//!
//! Reference: RFC 4271 §8.1.2 (ManualStop and ManualStart); RFC 2918 (routes again without that); RFC 4486 (what the peer
//! is told); RFC 8538 §4 (what it keeps then); RFC 2439 §4.8 (what is forgotten of routes).

use weft_base::Instant;
use weft_xrl::{Encoded, Output, XrlError};

use super::Bgp;
use super::limit::Limit;
use crate::fsm::Input;
use crate::interface::Clear;
use crate::numbers::cease;
use crate::wire::Notification;

impl Bgp {
    /// Ends a session, or has routes exchanged again.
    pub(super) fn clear(
        &mut self,
        now: Instant,
        request: &Clear,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        let address = request.peer;
        let Some(peer) = self.peers.get(&address) else {
            let note = format!("there is no peer {address}: `weft show bgp peers` lists them");
            return Err(XrlError::bad_args(note));
        };
        if request.soft.as_deref() == Some("damping") {
            let mut is_damped = false;
            self.with_peer(now, address, out, |peer, world| {
                is_damped = peer.forget_damping(world);
            });
            let note = || {
                format!("routes of {address} are not damped: the statement `damping` has them so")
            };
            return is_damped.then(Encoded::default).ok_or_else(|| XrlError::failed(note()));
        }
        let soft = match request.soft.as_deref() {
            None => None,
            Some("in") => Some(true),
            Some("out") => Some(false),
            Some(other) => {
                let note =
                    format!("`{other}` is no way to clear: say in, out or damping, or nothing");
                return Err(XrlError::bad_args(note));
            }
        };
        let hard = request.hard == Some(true);
        if hard && request.soft.is_some() {
            let note =
                "the session cannot both end by a hard reset and go on: say `soft` or `hard`";
            return Err(XrlError::bad_args(note));
        }
        if soft.is_some() && peer.up.is_none() {
            let note = format!("no routes are exchanged with {address}: clear it without `soft`");
            return Err(XrlError::failed(note));
        }
        let mut knows = true;
        self.with_peer(now, address, out, |peer, world| match soft {
            None => {
                peer.limit = Limit::default();
                if peer.up.is_none() {
                    // Nothing of it is waited for any more.
                    peer.stale.end_all(world.routes);
                }
                let subcode = cease::ADMIN_RESET;
                peer.handle(
                    match hard {
                        true => Input::Stop { subcode, text: "" },
                        false => Input::Reset(Notification::cease(subcode)),
                    },
                    world,
                );
                peer.start(world);
            }
            Some(true) => knows = peer.ask_again(world),
            Some(false) => peer.tell_again(world),
        });
        match knows {
            true => Ok(Encoded::default()),
            false => {
                let note = format!("{address} sends nothing again: clear it without `soft`");
                Err(XrlError::failed(note))
            }
        }
    }
}
