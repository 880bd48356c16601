//! What takes privileges and the FEA does for members: packet ports, packet engines of the kernel, priorities,
//! connections (`streams`).
//!
//! Reference: Handley et al. (XORP), §7: processes without privileges use the network through the
//! FEA. A member asks the world for a port or an engine as ever; where the process may open none, the FEA is
//! called, and what it hands over comes to the member as if the world had. The member sees no difference. So it is with
//! what the FEA tells of the machine's IP (`ip`).

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::time::Duration;

use weft_base::{Handle, Instant, Token};
use weft_port::{PortInfo, PortSpec};
use weft_runtime::{
    Action, EngineReply, EngineRequest, Event, PeerKey, Scheduling, Slot, StreamEvent,
    StreamListenerSpec, StreamSpec, XdpMode,
};

use super::ip::Watching;
use super::{Caller, Host, Now, interfaces, members, streams};
use crate::component::{Call, Reply};
use crate::{ErrorCode, Mac, XrlError, fea};

/// The member number of the host itself in calls that it makes.
pub(super) const OWN: usize = usize::MAX;

/// The FEA's class.
pub(super) const FEA: &str = "fea";
/// When an FEA that is not there is asked again: it is being started.
const AGAIN: Duration = Duration::from_millis(20);
/// How long an FEA is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the FEA was asked for.
#[derive(Default)]
pub(super) struct FromFea {
    asked: BTreeMap<u64, Asked>,
    last: u64,
    /// That for which there was no FEA.
    again: VecDeque<(Instant, Asked)>,
}

pub(super) struct Asked {
    pub(super) member: usize,
    pub(super) token: Token,
    pub(super) wanted: Wanted,
    /// When it is given up.
    pub(super) deadline: Instant,
}

pub(super) enum Wanted {
    Port(PortSpec),
    Engine(EngineRequest),
    /// Another share of the processors.
    Scheduling(Scheduling),
    /// What is different about the machine's IP.
    Ip(Watching),
    Neighbour {
        interface: u32,
        ip: IpAddr,
    },
    /// What is different about the machine's interfaces, or everything from the beginning.
    Interfaces {
        begin: bool,
    },
    /// A connection of TCP, by what it is called to the FEA.
    Stream {
        number: u32,
        spec: StreamSpec,
    },
    /// A connection that nobody wants any more.
    StreamAbandoned,
    StreamOver {
        number: u32,
    },
    /// A socket that listens.
    StreamListener {
        number: u32,
        spec: StreamListenerSpec,
    },
    StreamKeys {
        number: u32,
        keys: Vec<PeerKey>,
    },
    StreamListenerOver {
        number: u32,
    },
}

impl FromFea {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.again.front().map(|(at, _)| *at)
    }

    /// What comes of a connection that a member has asked for is of no interest any more; what it is called to the
    /// FEA, if it is being made.
    pub(super) fn abandon_stream(&mut self, member: usize, token: Token) -> Option<u32> {
        let number = |asked: &Asked| match asked.wanted {
            Wanted::Stream { number, .. } if (asked.member, asked.token) == (member, token) => {
                Some(number)
            }
            _ => None,
        };
        if let Some(place) = self.again.iter().position(|(_, asked)| number(asked).is_some()) {
            let (_, asked) = self.again.remove(place)?;
            return number(&asked);
        }
        let mut asked = self.asked.values_mut();
        let (number, asked) = asked.find_map(|asked| Some((number(asked)?, asked)))?;
        asked.wanted = Wanted::StreamAbandoned;
        Some(number)
    }
}

impl Host {
    /// Has something done for a member.
    pub(super) fn have_done(
        &mut self,
        member: usize,
        token: Token,
        wanted: Wanted,
        now: &mut Now<'_>,
    ) {
        let deadline = now.time + PATIENCE;
        self.ask_fea(Asked { member, token, wanted, deadline }, now);
    }

    pub(super) fn ask_fea(&mut self, asked: Asked, now: &mut Now<'_>) {
        self.from_fea.last += 1;
        let number = self.from_fea.last;
        match asked.wanted.call(number) {
            Some(call) => {
                self.from_fea.asked.insert(number, asked);
                self.call(OWN, call, now);
            }
            None => {
                let error = "only who has opened an engine can take it over".to_owned();
                self.tell_failure(asked, error);
            }
        }
    }

    /// Asks when there may be an FEA.
    pub(super) fn ask_later(&mut self, asked: Asked, now: &Now<'_>) {
        self.from_fea.again.push_back((now.time + AGAIN, asked));
    }

    /// Asks again for that for which there was no FEA.
    pub(super) fn ask_again(&mut self, now: &mut Now<'_>) {
        while let Some((_, asked)) = self.from_fea.again.pop_front_if(|(at, _)| *at <= now.time) {
            self.ask_fea(asked, now);
        }
    }

    /// The FEA has answered.
    pub(super) fn fea_answered(
        &mut self,
        number: u64,
        result: Result<Reply, XrlError>,
        now: &mut Now<'_>,
    ) {
        let Some(asked) = self.from_fea.asked.remove(&number) else { return };
        let is_away = result.as_ref().is_err_and(|error| {
            matches!(
                error.code,
                ErrorCode::ResolveFailed | ErrorCode::SendFailed | ErrorCode::SendFailedTransient
            )
        });
        if let Wanted::Ip(watching) = asked.wanted {
            return self.ip_answered(watching, is_away, result, now);
        }
        if let Wanted::Interfaces { .. } = asked.wanted {
            return self.interfaces_answered(is_away, result, now);
        }
        let is_over = matches!(asked.wanted, Wanted::StreamAbandoned);
        if is_away && now.time < asked.deadline && !is_over {
            self.ask_later(asked, now);
            return;
        }
        let result = match &asked.wanted {
            Wanted::Port(_) => {
                result.and_then(|reply| reply.read::<fea::OpenPort>()).and_then(port)
            }
            Wanted::Scheduling(_) => {
                let result = result.and_then(|reply| reply.read::<fea::Schedule>());
                let result = result.and_then(scheduled).map_err(|error| error.note);
                let event = Event::Scheduled { token: asked.token, result };
                self.inputs.push_back((asked.member, crate::Input::World(event)));
                return;
            }
            // Nobody is told; who needs the neighbour asks again.
            Wanted::Ip(_) | Wanted::Neighbour { .. } | Wanted::Interfaces { .. } => return,
            Wanted::Stream { .. }
            | Wanted::StreamAbandoned
            | Wanted::StreamOver { .. }
            | Wanted::StreamListener { .. }
            | Wanted::StreamKeys { .. }
            | Wanted::StreamListenerOver { .. } => return self.stream_answered(asked, result, now),
            Wanted::Engine(request) => {
                let (member, token) = (asked.member, asked.token);
                let result = result.and_then(|reply| engine(request, reply));
                let result = result.map_err(|error| error.note);
                let event = Event::EngineAnswered { token, result };
                self.inputs.push_back((member, crate::Input::World(event)));
                return;
            }
        };
        match (asked, result) {
            (Asked { member, token, wanted: Wanted::Port(spec), .. }, Ok((handles, info))) => {
                let mut action = Action::AdoptPort { token, spec, handles, info };
                self.monitor.port_asked(member, &action);
                members::tag_token(member, &mut action);
                now.out.push(action);
            }
            (_, Ok(_)) => {}
            (asked, Err(error)) => self.tell_failure(asked, error.note),
        }
    }

    pub(super) fn tell_failure(&mut self, asked: Asked, error: String) {
        let Asked { member, token, wanted, .. } = asked;
        let event = match wanted {
            Wanted::Port(_) => Event::PortFailed { token, error },
            Wanted::Engine(_) => Event::EngineAnswered { token, result: Err(error) },
            Wanted::Scheduling(_) => Event::Scheduled { token, result: Err(error) },
            Wanted::Stream { .. } | Wanted::StreamListener { .. } => {
                Event::Stream { token, event: StreamEvent::Failed { error } }
            }
            Wanted::StreamKeys { .. } => {
                Event::Stream { token, event: StreamEvent::KeysSet { result: Err(error) } }
            }
            Wanted::Ip(_)
            | Wanted::Neighbour { .. }
            | Wanted::Interfaces { .. }
            | Wanted::StreamAbandoned
            | Wanted::StreamOver { .. }
            | Wanted::StreamListenerOver { .. } => return,
        };
        self.inputs.push_back((member, crate::Input::World(event)));
    }
}

impl Wanted {
    /// How the FEA is asked for it; `None` if it does nothing like that for others.
    fn call(&self, number: u64) -> Option<Call> {
        Some(match self {
            Self::Port(spec) => Call::new(number, FEA, fea::OpenPort { spec: spec.to_string() }),
            Self::Engine(EngineRequest::Open { engine, most }) => {
                let (engine, most) = (engine.clone(), Some(most.clone()));
                Call::new(number, FEA, fea::OpenEngine { engine, most })
            }
            Self::Engine(EngineRequest::Attach { engine, interface, mac, mtu, mode }) => {
                let (engine, interface) = (engine.clone(), interface.clone());
                let (mac, mode) = (Mac(*mac), mode.name().to_owned());
                let request = fea::AttachEngine { engine, interface, mac, mtu: *mtu, mode };
                Call::new(number, FEA, request)
            }
            Self::Engine(EngineRequest::Detach { engine, interface }) => {
                let (engine, interface) = (engine.clone(), interface.clone());
                Call::new(number, FEA, fea::DetachEngine { engine, interface })
            }
            Self::Engine(EngineRequest::Adopt { .. }) => return None,
            Self::Scheduling(Scheduling { priority, processors }) => {
                let priority = priority.map(|priority| priority.to_string());
                let processors = processors.iter().copied().map(u32::from).collect();
                Call::new(number, FEA, fea::Schedule { priority, processors })
            }
            Self::Ip(watching) => Call::new(number, FEA, watching.request()),
            Self::Neighbour { interface, ip } => {
                Call::new(number, FEA, fea::FindNeighbour { interface: *interface, address: *ip })
            }
            Self::Interfaces { begin } => Call::new(number, FEA, interfaces::question(*begin)),
            Self::Stream { number: stream, spec } => streams::open(number, *stream, spec),
            Self::StreamAbandoned => return None,
            Self::StreamOver { number: stream } => {
                Call::new(number, FEA, fea::CancelStream { number: *stream })
            }
            Self::StreamListener { number: listener, spec } => {
                streams::listen(number, *listener, spec)
            }
            Self::StreamKeys { number: listener, keys } => {
                let keys = streams::told(keys);
                Call::new(number, FEA, fea::SetStreamKeys { number: *listener, keys })
            }
            Self::StreamListenerOver { number: listener } => {
                Call::new(number, FEA, fea::CloseStreamListener { number: *listener })
            }
        })
    }
}

fn port(reply: fea::OpenPortReply) -> Result<(Vec<Handle>, PortInfo), XrlError> {
    let local = |text: String| {
        let wrong = || XrlError::bad_args(format!("`{text}` is no address of a port"));
        text.parse::<SocketAddr>().map_err(|_| wrong())
    };
    let info = PortInfo {
        mac: reply.mac.0,
        mtu: reply.mtu as usize,
        local: reply.local.map(local).transpose()?,
    };
    let handles = std::iter::once(reply.port).chain(reply.parts).collect();
    Ok((handles, info))
}

fn scheduled(reply: fea::ScheduleReply) -> Result<(Scheduling, Vec<String>), XrlError> {
    // What is none of weft's priorities is told as another word.
    let priority = reply.priority.parse().ok();
    let processors = reply.processors.into_iter().map(u16::try_from).collect::<Result<_, _>>();
    let wrong = |_| XrlError::bad_args("the FEA has answered with a processor that there is not");
    Ok((Scheduling { priority, processors: processors.map_err(wrong)? }, reply.refused))
}

fn engine(request: &EngineRequest, reply: Reply) -> Result<EngineReply, XrlError> {
    let wrong = |what: &str| XrlError::bad_args(format!("the FEA has answered with {what}"));
    match request {
        EngineRequest::Open { .. } => {
            let tables = reply.read::<fea::OpenEngine>()?.tables;
            Ok(EngineReply::Opened { tables, keep: Vec::new(), release: Vec::new() })
        }
        EngineRequest::Attach { .. } => {
            let reply = reply.read::<fea::AttachEngine>()?;
            let slot = u16::try_from(reply.slot).ok().and_then(NonZeroU16::new);
            let slot = Slot(slot.ok_or_else(|| wrong("a port that no engine has"))?);
            let mut modes = [XdpMode::Driver, XdpMode::Generic, XdpMode::Hardware].into_iter();
            let mode = modes.find(|mode| mode.name() == reply.mode);
            let mode = mode.ok_or_else(|| wrong("a mode that there is not"))?;
            let (fallback, keep, release) = (reply.fallback, Vec::new(), Vec::new());
            Ok(EngineReply::Attached { slot, mode, fallback, keep, release })
        }
        EngineRequest::Detach { .. } | EngineRequest::Adopt { .. } => {
            Ok(EngineReply::Done { release: Vec::new() })
        }
    }
}

/// What a call's `Caller` is to the host.
pub(super) fn is_own(caller: Caller) -> bool {
    caller.member == OWN
}
