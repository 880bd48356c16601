//! What operators ask for.
//!
//! Reference: RFC 4271 §8.1.2 (ManualStop and ManualStart); RFC 2918 (routes again without that); RFC 4486 (what the peer
//! is told); RFC 8538 §4 (what it keeps then); RFC 2439 §4.8 (what is forgotten of routes).

use std::collections::BTreeSet;
use std::net::IpAddr;

use weft_base::Instant;
use weft_routing::ip::Version;
use weft_xrl::{Encoded, Output, XrlError};

use super::Bgp;
use super::context::World;
use super::limit::Limit;
use super::peer::Peer;
use crate::fsm::Input;
use crate::interface::Clear;
use crate::numbers::cease;
use crate::wire::Notification;

/// What is done with peers.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// The session ends, and begins again.
    Reset { is_hard: bool },
    /// They are asked to announce everything again.
    In,
    /// They are told everything again.
    Out,
    /// It is forgotten how their routes have come and gone.
    Damping,
}

impl Way {
    fn of(request: &Clear) -> Result<Self, XrlError> {
        let is_hard = request.hard == Some(true);
        match request.soft.as_deref() {
            None => Ok(Self::Reset { is_hard }),
            Some(_) if is_hard => Err(XrlError::bad_args(
                "the session cannot both end by a hard reset and go on: say `soft` or `hard`",
            )),
            Some("in") => Ok(Self::In),
            Some("out") => Ok(Self::Out),
            Some("damping") => Ok(Self::Damping),
            Some(other) => Err(XrlError::bad_args(format!(
                "`{other}` is no way to clear: say in, out or damping, or nothing"
            ))),
        }
    }
}

impl Bgp {
    /// Ends sessions, or has routes exchanged again: with all peers that are named, or with none.
    pub(super) fn clear(
        &mut self,
        now: Instant,
        request: &Clear,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        let way = Way::of(request)?;
        let others = request.others.iter().flatten();
        let addresses: BTreeSet<_> = others.chain([&request.peer]).copied().collect();
        addresses.iter().try_for_each(|address| self.may_clear(*address, way))?;
        let act: &dyn Fn(&mut Peer, &mut World<'_>) = match way {
            Way::Reset { is_hard } => &move |peer, world| peer.reset(is_hard, world),
            Way::In => &Peer::ask_again,
            Way::Damping => &Peer::forget_damping,
            Way::Out => {
                self.tell_again(&addresses);
                return Ok(Encoded::default());
            }
        };
        for address in addresses {
            self.with_peer(now, address, out, act);
        }
        Ok(Encoded::default())
    }

    /// Whether this can be done with a peer.
    fn may_clear(&self, address: IpAddr, way: Way) -> Result<(), XrlError> {
        let Some(peer) = self.peers.get(&address) else {
            let note = format!("there is no peer {address}: `weft show bgp peers` lists them");
            return Err(XrlError::bad_args(note));
        };
        let is_up = peer.up.is_some();
        let why_not = match way {
            Way::In | Way::Out if !is_up => {
                format!("no routes are exchanged with {address}: clear it without `soft`")
            }
            Way::In if !peer.can_ask_again() => {
                format!("{address} sends nothing again: clear it without `soft`")
            }
            Way::Damping if self.routes.damping(peer.origin).is_none() => {
                format!("routes of {address} are not damped: the statement `damping` has them so")
            }
            _ => return Ok(()),
        };
        Err(XrlError::failed(why_not))
    }

    /// Peers are told everything again; those that are told the same, together.
    fn tell_again(&mut self, addresses: &BTreeSet<IpAddr>) {
        let peers = addresses.iter().filter_map(|address| self.peers.get(address));
        let origins: BTreeSet<_> = peers.map(|peer| peer.origin).collect();
        for version in Version::ALL {
            self.fanout.tell_again(&origins, version, false, &mut self.routes);
        }
    }
}

impl Peer {
    /// The session ends, if there is one, and begins again.
    fn reset(&mut self, is_hard: bool, world: &mut World<'_>) {
        self.limit = Limit::default();
        if self.up.is_none() {
            // Nothing of it is waited for any more.
            self.stale.end_all(world.routes);
        }
        let subcode = cease::ADMIN_RESET;
        let input = match is_hard {
            true => Input::Stop { subcode, text: "" },
            false => Input::Reset(Notification::cease(subcode)),
        };
        self.handle(input, world);
        self.start(world);
    }
}
