//! The XIA stack as a component of a node.
//!
//! Reference: Machado et al., "Linux XIA", §4; Handley et al. (XORP), §4 (components are configured by
//! the router manager and called by XRL).
//!
//! [`Xia`] waits for its configuration, makes a [`Node`] of it and passes it everything that happens
//! in the world. Later configurations change the running node step by step. In front of the node stand
//! two interfaces: `component` for the manager, and [`interface`] for everybody else.

mod prefixes;

use std::borrow::Cow;
use std::fmt::Write;

use prefixes::Tellers;
use weft_base::{CounterGroup, Instant, Random};
use weft_config::{Document, Errors, Located};
use weft_keys::KeyHash;
use weft_runtime::{Action, Component, Event};
use weft_xip::node::{Node, Plan, Registry, Settings, config};
use weft_xip::{Xid, XidType};
use weft_xrl::{Called, Encoded, Input, Interface, Output, XrlError, checked, configurable};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub mod interface {
    //! The stack's interface.
    include!(concat!(env!("OUT_DIR"), "/xia.rs"));
}

/// The statement of the configuration that is for the stack.
pub const STATEMENT: &str = "xia";

/// The interfaces of the stack.
#[must_use]
pub fn interfaces() -> Vec<&'static Interface> {
    vec![
        &interface::INTERFACE,
        &prefixes::interface::INTERFACE,
        &configurable::INTERFACE,
        &checked::INTERFACE,
    ]
}

/// The stack; see the crate's text.
pub struct Xia {
    settings: Settings,
    registry: Registry,
    random: Random,
    identity: Option<KeyHash>,
    running: Option<Running>,
    /// What was found good last, and the number of the question: as a rule it is what is taken next.
    checked: Option<(u64, Running)>,
    /// Who tells where prefixes lead.
    tellers: Tellers,
    /// Empty between two events; kept for its memory.
    actions: Vec<Action>,
}

struct Running {
    node: Node,
    plan: Plan,
}

impl Xia {
    /// A stack without a configuration yet. `identity` is the hash of the node's key, if it has one.
    #[must_use]
    pub fn new(
        settings: Settings,
        registry: Registry,
        random: Random,
        identity: Option<KeyHash>,
    ) -> Self {
        Self {
            settings,
            registry,
            random,
            identity,
            running: None,
            checked: None,
            tellers: Tellers::default(),
            actions: Vec::new(),
        }
    }

    /// Makes a node of a configuration, to be used or only to know that it can be made.
    fn read(&self, request: &Text<'_>) -> Result<Running, Errors> {
        let document = Document::parse(request.source, &request.placed())?;
        let mut block = document.block();
        let entry = block.required_one(STATEMENT)?;
        let plan = Plan::of(entry.statement().block().unwrap_or_default());
        let node = entry.read_block(|block| {
            // The key is read, by whoever may, when the node is started.
            block.leaf::<Located<String>>("identity")?;
            let random = self.random.fork("node");
            let settings = self.settings.clone();
            let mut node = config::read_node(block, settings, &self.registry, random)?;
            if let Some(hash) = self.identity {
                set_identity(&mut node, hash);
            }
            Ok(node)
        })?;
        block.finish()?;
        Ok(Running { node, plan })
    }

    fn check(&mut self, request: &Text<'_>, number: Option<u64>) -> Result<(), XrlError> {
        self.checked = None;
        if request.text.trim().is_empty() {
            return Ok(());
        }
        let new = self.read(request).map_err(|errors| XrlError::failed(errors.to_string()))?;
        self.checked = number.map(|number| (number, new));
        Ok(())
    }

    fn configure(
        &mut self,
        now: Instant,
        request: &Text<'_>,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        if request.text.trim().is_empty() {
            return Err(XrlError::failed("the manager ends the stack when it has no statement"));
        }
        let new = self.read(request).map_err(|errors| XrlError::failed(errors.to_string()))?;
        self.change(now, new, out)
    }

    /// Takes what was found good.
    fn take(&mut self, now: Instant, number: u64, out: &mut Vec<Output>) -> Result<(), XrlError> {
        match self.checked.take() {
            Some((checked, new)) if checked == number => self.change(now, new, out),
            _ => Err(XrlError::bad_args(format!("number {number} is not what was checked last"))),
        }
    }

    fn change(
        &mut self,
        now: Instant,
        new: Running,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        self.checked = None;
        match &mut self.running {
            Some(running) => {
                let change =
                    running.node.change_plan(now, &running.plan, &new.plan, &mut self.actions);
                out.extend(self.actions.drain(..).map(Output::World));
                change.map_err(XrlError::failed)?;
                running.plan = new.plan;
            }
            None => {
                self.running = Some(new);
                self.world(now, Event::Start, out);
            }
        }
        Ok(())
    }

    fn world(&mut self, now: Instant, event: Event, out: &mut Vec<Output>) {
        match &mut self.running {
            Some(running) => {
                running.node.handle(now, event, &mut self.actions);
                out.extend(self.actions.drain(..).map(Output::World));
            }
            None if matches!(event, Event::Stop) => {
                out.push(Output::World(Action::Exit { status: 0 }));
            }
            None => {}
        }
    }

    fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        if called.interface.name == prefixes::interface::INTERFACE.name {
            return self.told(now, called, out);
        }
        let result = match called.interface.name {
            "xia" => called.read().and_then(|call| self.operate(now, call, out)),
            "checked" => called.read().and_then(|call| match call {
                checked::Call::Take(checked::Take { number }) => {
                    self.take(now, number, out).map(|()| Encoded::default())
                }
            }),
            _ => called.read().and_then(|call| self.manage(now, call, out)),
        };
        out.push(Output::Answer { id: called.id, result });
    }

    /// Somebody tells where prefixes lead, or waits.
    fn told(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        let Some(Running { node, .. }) = &mut self.running else {
            return out.push(called.fail(without_configuration()));
        };
        match called.read() {
            Ok(prefixes::interface::Call::Tell(request)) => {
                let done = self.tellers.tell(&called, request, node, &mut self.actions);
                out.extend(self.actions.drain(..).map(Output::World));
                out.push(called.answer(done));
            }
            Ok(prefixes::interface::Call::Lost(request)) => {
                self.tellers.wait(now, called, &request, node, out);
            }
            Err(error) => out.push(called.fail(error)),
        }
    }

    fn manage(
        &mut self,
        now: Instant,
        call: configurable::Call,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        match call {
            configurable::Call::Check(configurable::Check { source, line, text, number }) => {
                self.check(&Text { source: &source, line, text: &text }, number)?;
                Ok(Encoded::default())
            }
            configurable::Call::Configure(configurable::Configure { source, line, text }) => {
                self.configure(now, &Text { source: &source, line, text: &text }, out)?;
                Ok(Encoded::default())
            }
            configurable::Call::Schema(_) => {
                Ok(Encoded::new(configurable::SchemaReply { text: String::new() }))
            }
            configurable::Call::Status(_) => {
                let (ready, detail) = match &self.running {
                    Some(_) => (true, String::new()),
                    None => (false, "waits for its configuration".to_owned()),
                };
                Ok(Encoded::new(configurable::StatusReply { ready, detail }))
            }
        }
    }

    fn operate(
        &mut self,
        now: Instant,
        call: interface::Call,
        out: &mut Vec<Output>,
    ) -> Result<Encoded, XrlError> {
        let running = self.running.as_mut().ok_or_else(without_configuration)?;
        match call {
            interface::Call::Show(interface::Show { what }) => {
                let what = what.as_deref().unwrap_or("node");
                let json = running.node.show(now, what).map_err(XrlError::failed)?.to_string();
                Ok(Encoded::new(interface::ShowReply { json }))
            }
            interface::Call::Change(interface::Change { words }) => {
                let done = running.node.operate(now, &words, &mut self.actions);
                out.extend(self.actions.drain(..).map(Output::World));
                done.map_err(XrlError::failed)?;
                Ok(Encoded::default())
            }
        }
    }
}

impl Component for Xia {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            // The node starts when it has its configuration.
            Input::World(Event::Start) => {}
            Input::World(event) => {
                let is_tick = matches!(event, Event::Tick);
                self.world(now, event, out);
                if let (true, Some(running)) = (is_tick, &mut self.running) {
                    self.tellers.tick(now, &mut running.node, &mut self.actions, out);
                    out.extend(self.actions.drain(..).map(Output::World));
                }
            }
            Input::Called(called) => self.called(now, called, out),
            Input::Left { session, removed } => self.tellers.left(now, session, removed),
            _ => {}
        }
        // Principals come and go by calls, and by commands that are events.
        if let Some(running) = &self.running {
            self.tellers.look(&running.node, out);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let node = self.running.as_ref().and_then(|running| running.node.deadline());
        node.into_iter().chain(self.tellers.deadline()).min()
    }

    fn has_background_work(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.node.has_background_work())
    }

    fn counters(&self) -> Vec<CounterGroup> {
        self.running.as_ref().map(|running| running.node.counters()).unwrap_or_default()
    }
}

fn without_configuration() -> XrlError {
    XrlError::failed("the stack has no configuration yet")
}

/// A statement of the configuration, and where it stands.
struct Text<'a> {
    source: &'a str,
    line: u32,
    text: &'a str,
}

impl Text<'_> {
    /// The text with empty lines in front, so that errors have the lines of the file.
    fn placed(&self) -> Cow<'_, str> {
        if self.line <= 1 {
            return Cow::Borrowed(self.text);
        }
        let lines = self.line.saturating_sub(1).min(1 << 20) as usize;
        let mut placed = String::with_capacity(lines + self.text.len());
        placed.extend(std::iter::repeat_n('\n', lines));
        // Writing to a string cannot fail.
        let _ = placed.write_str(self.text);
        Cow::Owned(placed)
    }
}

/// Makes the key hash a local HID of the node. Without the principal `hid` there is nothing that an
/// identity could be for.
fn set_identity(node: &mut Node, hash: KeyHash) {
    let xid = Xid::new(XidType::HID, *hash.as_bytes()).to_string();
    drop(node.change_principal(Instant::ZERO, "hid", &["local", &xid], false, &mut Vec::new()));
}
