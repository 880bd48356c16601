//! What whoever watches the node asks of each member, and the process answers: `monitor/1.0`.
//!
//! A member's own counters are those of [`Component::counters`](weft_runtime::Component::counters);
//! beside them stand the calls of the process and what the driver has moved and dropped for it.

use std::collections::BTreeMap;

use weft_base::{Count, CounterGroup, Counters, PortId, Token};
use weft_port::PortSpec;
use weft_runtime::{Action, DriverCounts, Event};

use super::{Host, Now, members};
use crate::XrlError;
use crate::component::{CallId, Called, Encoded, Input};
use crate::monitor::{Call, CountersReply, LogReply, SetLogLevel};

/// The token of the question to the driver.
pub(super) const COUNT: Token = Token(3);

weft_base::reasons! {
    /// The calls of a process.
    pub(crate) enum CallCount {
        Received = "received", "calls that components of this process were given";
        Refused = "refused", "calls that their caller may not make, or with wrong arguments";
        Made = "made", "calls that components of this process have made";
        Failed = "failed", "calls that components of this process have made and that failed";
    }
}

/// See the module's text.
#[derive(Default)]
pub(super) struct Monitor {
    /// Who waits for what the driver has counted, and of which member.
    waiting: Vec<(usize, CallId)>,
    pub(super) calls: Counters<CallCount>,
    /// Ports that members have asked for.
    asked: BTreeMap<(usize, Token), PortSpec>,
    /// Ports that are open.
    ports: BTreeMap<PortId, String>,
}

impl Monitor {
    /// A member asks the driver for a port.
    pub(super) fn port_asked(&mut self, member: usize, action: &Action) {
        if let Action::OpenPort { token, spec } | Action::AdoptPort { token, spec, .. } = action {
            self.asked.insert((member, *token), spec.clone());
        }
    }

    /// The driver has answered, with the port if there is one.
    pub(super) fn port_opened(&mut self, member: usize, token: Token, port: Option<PortId>) {
        let spec = self.asked.remove(&(member, token));
        if let (Some(spec), Some(port)) = (spec, port) {
            self.ports.insert(port, spec.to_string());
        }
    }

    pub(super) fn port_gone(&mut self, port: PortId) {
        self.ports.remove(&port);
    }

    fn groups(&self, counted: &DriverCounts) -> Vec<CounterGroup> {
        let port = |name, help| CounterGroup::labelled(name, help, "port");
        let mut received = port("port-received-packets", "packets that a port received");
        let mut received_bytes = port("port-received-bytes", "bytes of these packets");
        let mut sent = port("port-sent-packets", "packets that a port sent");
        let mut sent_bytes = port("port-sent-bytes", "bytes of these packets");
        let mut drops = port("port-drops", "packets that a port dropped");
        for (id, statistics) in &counted.ports {
            let name = self.ports.get(id).cloned().unwrap_or_else(|| id.to_string());
            received.add(&name, statistics.received.packets);
            received_bytes.add(&name, statistics.received.bytes);
            sent.add(&name, statistics.sent.packets);
            sent_bytes.add(&name, statistics.sent.bytes);
            drops.add_all(&name, &statistics.drops);
        }
        let calls = CounterGroup::new("calls", "calls from and to the process", &self.calls);
        let mut driver = CounterGroup::labelled(
            "driver-drops",
            "what the process's driver dropped before a port or channel, or behind it",
            "",
        );
        driver.counts.extend(counted.drops.iter().map(|(reason, value)| Count {
            of: String::new(),
            reason,
            help: "",
            value: *value,
        }));
        let groups = [calls, received, received_bytes, sent, sent_bytes, drops, driver];
        groups.into_iter().filter(|group| !group.counts.is_empty()).collect()
    }
}

impl Host {
    /// Somebody calls a method of `monitor/1.0` of a member.
    pub(super) fn watched(&mut self, member: usize, mut called: Called, now: &mut Now<'_>) {
        match called.read::<Call>() {
            Ok(Call::Counters(_)) => {
                // One question to the driver answers all who have asked by then.
                if self.monitor.waiting.is_empty() {
                    now.out.push(Action::Count { token: members::own_token(COUNT) });
                }
                self.monitor.waiting.push((member, called.id));
            }
            Ok(Call::Log(request)) => match self.log.ask(called.id, &request) {
                Ok(answer) => self.answer_all(answer, now),
                Err((id, error)) => self.answer(id, Err(error), now),
            },
            Ok(Call::SetLogLevel(SetLogLevel { level })) => {
                let level = level.parse().map_err(XrlError::bad_args);
                let result = level.map(|level| now.out.push(self.log.set_level(level)));
                self.answer(called.id, result.map(|()| Encoded::default()), now);
            }
            Err(error) => self.answer(called.id, Err(error), now),
        }
    }

    /// Answers those who waited for a record of the log.
    pub(super) fn answer_log(&mut self, now: &mut Now<'_>) {
        let answers = self.log.answers();
        self.answer_all(answers, now);
    }

    fn answer_all(
        &mut self,
        answers: impl IntoIterator<Item = (CallId, LogReply)>,
        now: &mut Now<'_>,
    ) {
        for (id, reply) in answers {
            self.answer(id, Ok(Encoded::new(reply)), now);
        }
    }

    /// The driver has said what it has counted.
    pub(super) fn counted(&mut self, counted: &DriverCounts, now: &mut Now<'_>) {
        // Members count what programs have done for them, too.
        for (token, sums) in &counted.tables {
            let mut token = *token;
            if let (Some(member), token) = members::take_owner(&mut token) {
                let event = Event::TablesCounted { token, sums: sums.clone() };
                self.tell(member, Input::World(event), now);
            }
        }
        for (member, id) in std::mem::take(&mut self.monitor.waiting) {
            let own = self.members.counters(member);
            let all = own.into_iter().chain(self.monitor.groups(counted)).collect();
            self.answer(id, Ok(Encoded::new(CountersReply::of(all))), now);
        }
    }
}
