//! What the process of the RPKI says: all of it once, and then what changes.
//!
//! What was told counts on while that process is away, as long as the configuration has it: it comes back within seconds, and not
//! for ever, for what caches say grows old.

use std::collections::BTreeSet;
use std::time::Duration;

use ipnet::IpNet;
use weft_base::Instant;
use weft_protocol::{Client, Dialogue};
use weft_xrl::{Input, Output, Reply, XrlError};

use super::Validation;
use crate::rpki;

/// The number of the dialogue; lower ones are those with the RIB.
const DIALOGUE: u8 = 4;
/// Payloads in one answer, and how long there may be nothing to tell, in milliseconds.
const AT_MOST: u32 = 4096;
const QUIET: u32 = 20_000;
/// How long what was told counts while nobody is there: what caches say as a rule (RFC 8210 §6).
const KEPT: Duration = Duration::from_secs(7200);
/// The most payloads: there are less than a million.
const MOST: usize = 4 << 20;
/// With more prefixes than these it is as well to look at all routes.
const MANY: usize = 4096;

/// Of which routes it is to be found anew whether their origins are valid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    All,
    /// Of those to these prefixes, and within them.
    Within(BTreeSet<IpNet>),
}

impl Changed {
    /// Takes more together with it.
    fn add(&mut self, nets: impl IntoIterator<Item = IpNet>) {
        let Self::Within(all) = self else { return };
        all.extend(nets);
        if all.len() > MANY {
            *self = Self::All;
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Within(nets) if nets.is_empty())
    }
}

impl Default for Changed {
    fn default() -> Self {
        Self::Within(BTreeSet::new())
    }
}

/// Whether so many more can be taken: who says more than was asked for, or there can be, is not believed.
fn bounded(more: usize, validation: &Validation) -> Result<(), XrlError> {
    match more <= AT_MOST as usize && validation.len() <= MOST {
        true => Ok(()),
        false => Err(XrlError::failed("these are more payloads than are taken")),
    }
}

/// What a call is about.
#[derive(Debug)]
pub(crate) enum About {
    /// A page of the list.
    List,
    Changes,
}

/// The way from that process. What it says is kept by who asks.
#[derive(Debug)]
pub(crate) struct FromRpki {
    dialogue: Dialogue<About>,
    /// Whether the configuration has that process.
    is_wanted: bool,
    /// The last payload of the page before; there are pages to come.
    behind: Option<rpki::Payload>,
    /// The edition that changes are asked for after: that of the first page.
    edition: Option<u64>,
    /// Whether what is known is what that process says, as far as it has said it.
    is_current: bool,
    /// Until when what was told counts.
    until: Option<Instant>,
    changed: Changed,
}

impl FromRpki {
    pub(crate) fn new() -> Self {
        Self {
            dialogue: Dialogue::new(rpki::CLASS, DIALOGUE),
            is_wanted: false,
            behind: None,
            edition: None,
            is_current: false,
            until: None,
            changed: Changed::default(),
        }
    }

    /// Whether the configuration has that process. If it has not, what was told counts for as long as it is there.
    pub(crate) fn want(&mut self, is_wanted: bool, validation: &mut Validation) {
        self.is_wanted = is_wanted;
        if !is_wanted && !self.dialogue.is_there() {
            self.forget(validation);
        }
    }

    fn forget(&mut self, validation: &mut Validation) {
        if validation.len() > 0 {
            (*validation, self.changed) = (Validation::default(), Changed::All);
        }
        self.until = None;
    }

    /// Takes what has changed, if anything has; nothing while pages are to come.
    pub(crate) fn take_changed(&mut self) -> Option<Changed> {
        if self.behind.is_some() {
            return None;
        }
        let changed = std::mem::take(&mut self.changed);
        (!changed.is_nothing()).then_some(changed)
    }

    /// Hears an input; gives it back if it is not for this alone.
    pub(crate) fn hear(
        &mut self,
        now: Instant,
        input: Input,
        validation: &mut Validation,
        out: &mut Vec<Output>,
    ) -> Option<Input> {
        let input = Both { from_rpki: self, validation }.hear(now, input, out);
        let is_over = !self.is_wanted && !self.dialogue.is_there();
        if self.is_current || validation.len() == 0 {
            self.until = None;
        } else if *self.until.get_or_insert(now + KEPT) <= now || is_over {
            self.forget(validation);
        }
        input
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.dialogue.deadline().into_iter().chain(self.until).min()
    }

    fn list(&mut self, from: Option<String>, out: &mut Vec<Output>) {
        let request = rpki::List { from, at_most: AT_MOST, wait: QUIET };
        self.dialogue.call(About::List, request, out);
    }

    fn begin(&mut self, out: &mut Vec<Output>) {
        (self.behind, self.edition, self.is_current) = (None, None, false);
        self.list(None, out);
    }

    fn ask(&mut self, out: &mut Vec<Output>) {
        let Some(after) = self.edition else { return self.begin(out) };
        let request = rpki::Changes { after, at_most: AT_MOST, wait: QUIET };
        self.dialogue.call(About::Changes, request, out);
    }

    fn listed(
        &mut self,
        reply: rpki::ListReply,
        validation: &mut Validation,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        bounded(reply.payloads.len(), validation)?;
        if !reply.ready {
            // What was told in an earlier life counts until then.
            self.begin(out);
            return Ok(());
        }
        self.edition.get_or_insert(reply.edition);
        let (mut page, is_last) = (reply.payloads, reply.next.is_none());
        let taken = validation.take_page(self.behind.as_ref(), &page, is_last);
        self.changed.add(taken.map_err(|error| XrlError::failed(error.to_string()))?);
        self.is_current = is_last;
        self.behind = page.pop().or(self.behind.take()).filter(|_| !is_last);
        match is_last {
            true => self.ask(out),
            false => self.list(reply.next, out),
        }
        Ok(())
    }

    fn heard_changes(
        &mut self,
        reply: rpki::ChangesReply,
        validation: &mut Validation,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        bounded(reply.announced.len(), validation)?;
        if reply.again {
            self.begin(out);
            return Ok(());
        }
        self.edition = Some(reply.edition);
        let comes = reply.announced.iter().map(|payload| (payload, true));
        let goes = reply.withdrawn.iter().map(|payload| (payload, false));
        for (payload, is_there) in comes.chain(goes) {
            if validation.set(payload, is_there) {
                self.changed.add([payload.net]);
            }
        }
        self.ask(out);
        Ok(())
    }
}

/// The way, and what is known.
struct Both<'a> {
    from_rpki: &'a mut FromRpki,
    validation: &'a mut Validation,
}

impl Client<About> for Both<'_> {
    fn dialogue(&mut self) -> &mut Dialogue<About> {
        &mut self.from_rpki.dialogue
    }

    fn began(&mut self, out: &mut Vec<Output>) {
        self.from_rpki.begin(out);
    }

    fn ended(&mut self) {
        (self.from_rpki.behind, self.from_rpki.is_current) = (None, false);
    }

    fn answered(
        &mut self,
        about: &About,
        reply: Reply,
        out: &mut Vec<Output>,
    ) -> Result<(), XrlError> {
        match about {
            About::List => {
                let reply = reply.read::<rpki::List>()?;
                self.from_rpki.listed(reply, self.validation, out)
            }
            About::Changes => {
                let reply = reply.read::<rpki::Changes>()?;
                self.from_rpki.heard_changes(reply, self.validation, out)
            }
        }
    }
}
