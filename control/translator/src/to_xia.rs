//! The XIA stack is told where prefixes lead.
//!
//! What has changed several times before it was told is told once, as it is then. The stack keeps what it was told when
//! this process goes; whoever comes back says that it begins, tells everything, and says that this is complete.

use std::collections::{BTreeMap, BTreeSet};

use ipnet::IpNet;
use weft_base::Instant;
use weft_protocol::{Client, Dialogue};
use weft_xrl::{Output, Reply, XrlError};

use crate::xia;

/// The principal whose identifiers begin with addresses of IP.
const TABLE: &str = "lpm";
/// Changes in one call.
const BATCH: usize = 4096;
/// Calls with changes under way.
const CALLS: usize = 3;
/// How long the stack may have nothing to say, in milliseconds.
const QUIET: u32 = 20_000;
/// The numbers of sets that mean something by themselves, and the first of others.
const NOWHERE: u32 = 0;
const HERE: u32 = 1;
const FIRST_SET: u32 = 16;

/// Where a prefix leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Nowhere, and no shorter prefix counts: the next edge of the address does.
    Nowhere,
    /// It is here: what stands behind in the address counts.
    Here,
    /// To one of these XIDs: in order, each once, at least one.
    Via(Vec<String>),
}

/// What a call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    Tell,
    /// Whether the stack has lost what it was told.
    Lost,
}

/// The way to the stack.
#[derive(Debug)]
pub(crate) struct ToXia {
    dialogue: Dialogue<About>,
    /// Everything is to be told: whoever knows it has not said yet what that is.
    begins: bool,
    has_begun: bool,
    has_ended: bool,
    changed: BTreeSet<IpNet>,
    /// Calls with changes under way.
    under_way: usize,
}

impl ToXia {
    /// The way to the stack, with the number of its [`Dialogue`].
    pub(crate) fn new(number: u8) -> Self {
        Self {
            dialogue: Dialogue::new(xia::CLASS, number),
            begins: false,
            has_begun: false,
            has_ended: false,
            changed: BTreeSet::new(),
            under_way: 0,
        }
    }

    /// Everything will be told.
    fn begin(&mut self) {
        (self.begins, self.has_begun, self.has_ended) = (true, false, false);
        self.under_way = 0;
    }

    fn watch(&mut self, out: &mut Vec<Output>) {
        let request = xia::Lost { table: TABLE.to_owned(), wait: QUIET };
        self.dialogue.call(About::Lost, request, out);
    }

    /// Whether everything is to be told, and this was not asked since.
    pub(crate) fn take_begins(&mut self) -> bool {
        std::mem::take(&mut self.begins)
    }

    /// These lead elsewhere now.
    pub(crate) fn changed(&mut self, nets: BTreeSet<IpNet>) {
        match self.changed.is_empty() {
            true => self.changed = nets,
            false => self.changed.extend(nets),
        }
    }

    /// Tells the stack what it has not heard. `may_end` says whether all is known that there is: then goes what is not
    /// told.
    pub(crate) fn tell(
        &mut self,
        may_end: bool,
        lead: impl Fn(&IpNet) -> Option<Lead>,
        out: &mut Vec<Output>,
    ) {
        if !self.dialogue.is_there() {
            // Everything will be told to whoever comes.
            self.changed.clear();
            return;
        }
        while self.under_way < CALLS
            && (!self.changed.is_empty() || !self.has_begun || may_end && !self.has_ended)
        {
            let is_first = !std::mem::replace(&mut self.has_begun, true);
            let mut batch = Batch::new(is_first);
            for _ in 0..BATCH {
                let Some(net) = self.changed.pop_first() else { break };
                batch.add(net, lead(&net));
            }
            let ends = may_end && !self.has_ended && self.changed.is_empty();
            self.has_ended |= ends;
            self.under_way += 1;
            let request = xia::Tell { complete: ends, ..batch.request };
            self.dialogue.call(About::Tell, request, out);
            if is_first {
                self.watch(out);
            }
        }
    }

    /// Whether the stack is there.
    pub(crate) fn is_there(&self) -> bool {
        self.dialogue.is_there()
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline()
    }
}

impl Client<About> for ToXia {
    fn dialogue(&mut self) -> &mut Dialogue<About> {
        &mut self.dialogue
    }

    fn began(&mut self, _: &mut Vec<Output>) {
        self.begin();
    }

    fn answered(
        &mut self,
        about: &About,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match about {
            About::Tell => self.under_way = self.under_way.saturating_sub(1),
            About::Lost => match reply.read::<xia::Lost>()?.again {
                true => self.begin(),
                false => self.watch(out),
            },
        }
        Ok(())
    }
}

/// A call in the making.
struct Batch {
    request: xia::Tell,
    /// The numbers of sets of gateways.
    sets: BTreeMap<Vec<String>, u32>,
}

impl Batch {
    fn new(begin: bool) -> Self {
        let (gateways, prefixes, gone) = (Vec::new(), Vec::new(), Vec::new());
        let (table, complete) = (TABLE.to_owned(), false);
        let request = xia::Tell { table, begin, gateways, prefixes, gone, complete };
        Self { request, sets: BTreeMap::new() }
    }

    fn add(&mut self, net: IpNet, lead: Option<Lead>) {
        let set = match lead {
            None => return self.request.gone.push(net),
            Some(Lead::Nowhere) => NOWHERE,
            Some(Lead::Here) => HERE,
            Some(Lead::Via(gateways)) => self.set_of(gateways),
        };
        self.request.prefixes.push(xia::Prefix { net, set });
    }

    fn set_of(&mut self, gateways: Vec<String>) -> u32 {
        if let Some(set) = self.sets.get(&gateways) {
            return *set;
        }
        // There are no more than routes in a call.
        let set = self.sets.len() as u32 + FIRST_SET;
        let gateway = |xid: &String| xia::Gateway { set, identifier: xid.clone() };
        self.request.gateways.extend(gateways.iter().map(gateway));
        self.sets.insert(gateways, set);
        set
    }
}
