//! Packet ports that somebody else opens.
//!
//! Reference: Handley et al. (XORP), §7: processes without privileges use the network through the
//! FEA. A member asks the world for a port as ever; where the process may open none, the FEA is called,
//! and what it hands over becomes the port. The member sees no difference.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use weft_base::{Handle, Instant, Token};
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{Action, Event};

use super::{Caller, Host, Now, members};
use crate::component::{Call, Reply};
use crate::{ErrorCode, XrlError, fea};

/// The member number of the host itself in calls that it makes.
pub(super) const OWN: usize = usize::MAX;

/// The FEA's class.
const FEA: &str = "fea";
/// When an FEA that is not there is asked again: it is being started.
const AGAIN: Duration = Duration::from_millis(20);
/// How long an FEA is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ports that were asked for.
#[derive(Default)]
pub(super) struct Ports {
    asked: BTreeMap<u64, Asked>,
    last: u64,
    /// Those for which there was no FEA.
    again: VecDeque<(Instant, Asked)>,
}

struct Asked {
    member: usize,
    token: Token,
    spec: PortSpec,
    /// When it is given up.
    deadline: Instant,
}

impl Ports {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.again.front().map(|(at, _)| *at)
    }
}

impl Host {
    /// Has a port opened for a member.
    pub(super) fn open_port(
        &mut self,
        member: usize,
        token: Token,
        spec: PortSpec,
        now: &mut Now<'_>,
    ) {
        let deadline = now.time + PATIENCE;
        self.ask_for_port(Asked { member, token, spec, deadline }, now);
    }

    fn ask_for_port(&mut self, asked: Asked, now: &mut Now<'_>) {
        self.ports.last += 1;
        let number = self.ports.last;
        let call = Call::new(number, FEA, fea::OpenPort { spec: asked.spec.to_string() });
        self.ports.asked.insert(number, asked);
        self.call(OWN, call, now);
    }

    /// Asks again for ports for which there was no FEA.
    pub(super) fn ask_again(&mut self, now: &mut Now<'_>) {
        while let Some((_, asked)) = self.ports.again.pop_front_if(|(at, _)| *at <= now.time) {
            self.ask_for_port(asked, now);
        }
    }

    /// The FEA has answered.
    pub(super) fn port_answered(
        &mut self,
        number: u64,
        result: Result<Reply, XrlError>,
        now: &mut Now<'_>,
    ) {
        let Some(asked) = self.ports.asked.remove(&number) else { return };
        let is_away = result.as_ref().is_err_and(|error| {
            matches!(
                error.code,
                ErrorCode::ResolveFailed | ErrorCode::SendFailed | ErrorCode::SendFailedTransient
            )
        });
        if is_away && now.time < asked.deadline {
            self.ports.again.push_back((now.time + AGAIN, asked));
            return;
        }
        let Asked { member, token, spec, .. } = asked;
        match result.and_then(|reply| reply.read::<fea::OpenPort>()).and_then(port) {
            Ok((handle, info)) => {
                let mut action = Action::AdoptPort { token, spec, handle, info };
                self.monitor.port_asked(member, &action);
                members::tag_token(member, &mut action);
                now.out.push(action);
            }
            Err(error) => {
                let event = Event::PortFailed { token, error: error.note };
                self.inputs.push_back((member, crate::Input::World(event)));
            }
        }
    }
}

fn port(reply: fea::OpenPortReply) -> Result<(Handle, PortInfo), XrlError> {
    let local = |text: String| {
        let wrong = || XrlError::bad_args(format!("`{text}` is no address of a port"));
        text.parse::<SocketAddr>().map_err(|_| wrong())
    };
    let info = PortInfo {
        mac: reply.mac.0,
        mtu: reply.mtu as usize,
        local: reply.local.map(local).transpose()?,
    };
    Ok((reply.port, info))
}

/// What a call's `Caller` is to the host.
pub(super) fn is_own(caller: Caller) -> bool {
    caller.member == OWN
}
