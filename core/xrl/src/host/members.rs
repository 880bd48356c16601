//! The components of a process, and which events are whose.
//!
//! Members number their requests to the world as they like; the top four bits of a token say whose it
//! is, 15 being the host itself.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use weft_base::{CounterGroup, Instant, PortId, Token};
use weft_runtime::{Action, Component, Event};

use super::Part;
use crate::component::{Input, Output};
use crate::interface::Interface;

/// The most components of one process.
pub(super) const MOST: usize = 15;
/// Bits of a token that are a member's own.
const BITS: u32 = 28;
const OWN: u32 = 15;

/// The host's token for something.
pub(super) fn own_token(token: Token) -> Token {
    Token(OWN << BITS | token.0)
}

/// Whose token it is, `None` for the host's, and what it is to them, which is left in its place.
pub(super) fn take_owner(token: &mut Token) -> (Option<usize>, Token) {
    let owner = token.0 >> BITS;
    token.0 &= (1 << BITS) - 1;
    ((owner != OWN).then_some(owner as usize), *token)
}

/// The token of an event that answers an action.
pub(super) fn token_of(event: &mut Event) -> Option<&mut Token> {
    match event {
        Event::PortOpened { token, .. }
        | Event::PortFailed { token, .. }
        | Event::HandlesOpened { token, .. }
        | Event::ListenerOpened { token, .. }
        | Event::Listening { token, .. }
        | Event::Rejected { token, .. }
        | Event::Accepted { token, .. }
        | Event::Connected { token, .. }
        | Event::ChannelFailed { token, .. }
        | Event::Disk { token, .. }
        | Event::InterfaceConfigured { token, .. }
        | Event::ProgramAnswered { token, .. }
        | Event::EngineAnswered { token, .. }
        | Event::Tuned { token, .. }
        | Event::RoutesAnswered { token, .. }
        | Event::Scheduled { token, .. }
        | Event::Stream { token, .. }
        | Event::TablesAdopted { token, .. }
        | Event::TablesFailed { token, .. }
        | Event::TablesFull { token, .. }
        | Event::TablesCounted { token, .. }
        | Event::Counted { token, .. } => Some(token),
        _ => None,
    }
}

/// Makes the token of a member's action tell whose it is.
pub(super) fn tag_token(member: usize, action: &mut Action) {
    match action {
        Action::OpenPort { token, .. }
        | Action::OpenHandles { token, .. }
        | Action::AdoptPort { token, .. }
        | Action::OpenListener { token, .. }
        | Action::AdoptListener { token, .. }
        | Action::Listen { token, .. }
        | Action::CloseListener { token }
        | Action::Connect { token, .. }
        | Action::Disk { token, .. }
        | Action::ConfigureInterface { token, .. }
        | Action::Program { token, .. }
        | Action::Engine { token, .. }
        | Action::Tune { token, .. }
        | Action::Routes { token, .. }
        | Action::Schedule { token, .. }
        | Action::Stream { token, .. }
        | Action::AdoptTables { token, .. }
        | Action::WriteTables { token, .. }
        | Action::CountTables { token }
        | Action::Count { token } => {
            token.0 = (member as u32) << BITS | token.0 & ((1 << BITS) - 1);
        }
        _ => {}
    }
}

pub(super) struct Member {
    pub(super) class: String,
    pub(super) instance: Rc<str>,
    pub(super) sole: bool,
    pub(super) interfaces: Rc<[&'static Interface]>,
    component: Box<dyn Component<Input = Input, Output = Output>>,
}

pub(super) struct Members {
    all: Vec<Member>,
    ports: BTreeMap<PortId, usize>,
    /// Who gets the next slice of background work.
    turn: usize,
}

impl Members {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        let member = |mut part: Part| {
            // What can be called can be watched.
            if !part.class.is_empty() {
                part.interfaces.push(&crate::monitor::INTERFACE);
            }
            Member {
                class: part.class,
                instance: part.instance.into(),
                sole: part.sole,
                interfaces: part.interfaces.into(),
                component: part.component,
            }
        };
        let all: Vec<_> = parts.into_iter().map(member).collect();
        assert!(all.len() <= MOST, "a process has at most {MOST} components");
        Self { all, ports: BTreeMap::new(), turn: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.all.iter().enumerate()
    }

    /// The member that a name stands for: an instance, or a class.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let named = |member: &Member| &*member.instance == name || member.class == name;
        self.all.iter().position(|member| !member.class.is_empty() && named(member))
    }

    pub(super) fn interfaces(&self, index: usize) -> Rc<[&'static Interface]> {
        Rc::clone(&self.all[index].interfaces)
    }

    pub(super) fn instance(&self, index: usize) -> Rc<str> {
        Rc::clone(&self.all[index].instance)
    }

    pub(super) fn handle(
        &mut self,
        index: usize,
        time: Instant,
        input: Input,
        outputs: &mut Vec<Output>,
    ) {
        if let Some(member) = self.all.get_mut(index) {
            member.component.handle(time, input, outputs);
        }
    }

    pub(super) fn owns_port(&mut self, member: usize, port: PortId) {
        self.ports.insert(port, member);
    }

    /// Tells an event to whom it concerns: the owner of a port.
    pub(super) fn tell_owner(&mut self, event: Event, inputs: &mut VecDeque<(usize, Input)>) {
        let owner = match &event {
            Event::Packets { port, .. } => self.ports.get(port).copied(),
            Event::PortLost { port, .. } => self.ports.remove(port),
            _ => None,
        };
        if let Some(owner) = owner {
            inputs.push_back((owner, Input::World(event)));
        }
    }

    pub(super) fn tell_all(
        &self,
        inputs: &mut VecDeque<(usize, Input)>,
        event: impl Fn() -> Event,
    ) {
        inputs.extend((0..self.all.len()).map(|index| (index, Input::World(event()))));
    }

    /// Ticks those whose deadline has come.
    pub(super) fn tell_due(&self, time: Instant, inputs: &mut VecDeque<(usize, Input)>) {
        for (index, member) in self.iter() {
            if member.component.deadline().is_some_and(|deadline| deadline <= time) {
                inputs.push_back((index, Input::World(Event::Tick)));
            }
        }
    }

    /// Gives a slice of background work to one of those who have some, in turn.
    pub(super) fn tell_busy(&mut self, inputs: &mut VecDeque<(usize, Input)>) {
        let count = self.all.len();
        let mut others = (0..count).map(|step| (self.turn + step) % count);
        let busy = others.find(|index| self.all[*index].component.has_background_work());
        if let Some(index) = busy {
            self.turn = index + 1;
            inputs.push_back((index, Input::World(Event::Slice)));
        }
    }

    pub(super) fn counters(&self, index: usize) -> Vec<CounterGroup> {
        self.all[index].component.counters()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.all.iter().filter_map(|member| member.component.deadline()).min()
    }

    pub(super) fn are_busy(&self) -> bool {
        self.all.iter().any(|member| member.component.has_background_work())
    }
}
