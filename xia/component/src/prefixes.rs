//! Somebody outside of the stack tells where prefixes lead: `prefixes/1.0`.
//!
//! One caller at a time tells of a principal. What it has told stays when it is gone, for a time, so that packets go on
//! while it is started again, unless the node does not want it any more. It is asked for everything again if the principal was taken out of the stack meanwhile, and
//! put in again.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use weft_base::Instant;
use weft_runtime::Action;
use weft_xip::Xid;
use weft_xip::node::Node;
use weft_xip::prefixes::{Lead, PrefixNews};
use weft_xip::table::gateways::{MAX_GATEWAYS, in_order};
use weft_xrl::{Called, IpNet, Output, XrlError};

use self::interface::{Gateway, Lost, LostReply, Prefix, Tell};

#[allow(missing_docs, unreachable_pub, dead_code, reason = "made from the interface file")]
pub(crate) mod interface {
    include!(concat!(env!("OUT_DIR"), "/prefixes.rs"));
}

/// How long prefixes stay without whoever has told them.
const KEEP: Duration = Duration::from_secs(300);
/// The longest that an answer to `lost` is kept back.
const LONGEST_WAIT: Duration = Duration::from_secs(25);
/// The numbers of sets that mean something by themselves, and the first of others.
const NOWHERE: u32 = 0;
const HERE: u32 = 1;
const FIRST_SET: u32 = 16;

/// Who tells of which principal.
#[derive(Default)]
pub(crate) struct Tellers(BTreeMap<String, Teller>);

struct Teller {
    session: u64,
    caller: Rc<str>,
    /// The instance of the principal that it tells of.
    instance: u64,
    /// When its prefixes go, if it is gone.
    until: Option<Instant>,
    /// It wants to hear if they are lost, until then.
    waits: Option<(Called, Instant)>,
}

impl Tellers {
    /// Somebody tells prefixes.
    pub(crate) fn tell(
        &mut self,
        called: &Called,
        request: Tell,
        node: &mut Node,
        out: &mut Vec<Action>,
    ) -> Result<(), XrlError> {
        let Tell { table: principal, begin, gateways, prefixes, gone, complete } = request;
        let Some(instance) = node.principal_instance(&principal) else {
            let note = format!("the node has no principal `{}`", principal.escape_debug());
            return Err(XrlError::failed(note));
        };
        let sets = sets(gateways)?;
        match self.0.get(&principal) {
            Some(other) if other.session != called.session && other.until.is_none() => {
                let note = format!("{} tells of prefixes of {principal}", other.caller);
                return Err(XrlError::failed(note + ": end it first"));
            }
            Some(own) if own.session == called.session && own.instance == instance => {}
            _ if begin => {}
            _ => return Err(XrlError::failed("nothing is known of what was told: say `begin`")),
        }
        let told: Vec<_> = prefixes
            .iter()
            .map(|Prefix { net, set }| {
                let lead = match *set {
                    NOWHERE => Lead::Nowhere,
                    HERE => Lead::Here,
                    set => Lead::Via(sets.get(&set).ok_or_else(|| {
                        XrlError::bad_args(format!("{net} leads to the set {set}, which is empty"))
                    })?),
                };
                Ok((net, Some(lead)))
            })
            .collect::<Result<_, XrlError>>()?;
        let leads = told.into_iter().chain(gone.iter().map(|net| (net, None)));
        let bits: Vec<_> = leads.map(|(net, lead)| (bits(net), net.prefix_len(), lead)).collect();
        let news = bits.iter().map(|(bits, length, lead)| PrefixNews::Lead {
            bits,
            length: *length,
            lead: *lead,
        });
        let first = begin.then_some(PrefixNews::Begin);
        let last = complete.then_some(PrefixNews::Complete);
        node.learn_prefixes(&principal, first.into_iter().chain(news).chain(last), out)
            .map_err(XrlError::failed)?;
        let session = called.session;
        let caller = Rc::clone(&called.caller);
        let teller = self.0.entry(principal).or_insert_with(|| Teller {
            session,
            caller: Rc::clone(&caller),
            instance,
            until: None,
            waits: None,
        });
        (teller.session, teller.caller) = (session, caller);
        (teller.instance, teller.until) = (instance, None);
        Ok(())
    }

    /// Somebody wants to hear if what it has told is lost.
    pub(crate) fn wait(
        &mut self,
        now: Instant,
        called: Called,
        request: &Lost,
        node: &Node,
        out: &mut Vec<Output>,
    ) {
        let own = |teller: &&mut Teller| teller.session == called.session;
        let Some(teller) = self.0.get_mut(&request.table).filter(own) else {
            return out.push(called.answer(Ok(LostReply { again: true })));
        };
        let wait = Duration::from_millis(request.wait.into()).min(LONGEST_WAIT);
        if let Some((before, _)) = teller.waits.replace((called, now + wait)) {
            out.push(before.answer(Ok(LostReply { again: false })));
        }
        self.look(node, out);
    }

    /// Tells those whose principal is gone, or another one, that all is lost.
    pub(crate) fn look(&mut self, node: &Node, out: &mut Vec<Output>) {
        for (principal, teller) in &mut self.0 {
            if node.principal_instance(principal) != Some(teller.instance)
                && let Some((called, _)) = teller.waits.take()
            {
                out.push(called.answer(Ok(LostReply { again: true })));
            }
        }
    }

    /// A caller is gone; if the node does not want it any more, its prefixes go, too.
    pub(crate) fn left(&mut self, now: Instant, session: u64, removed: bool) {
        let keep = if removed { Duration::ZERO } else { KEEP };
        for teller in self.0.values_mut().filter(|teller| teller.session == session) {
            teller.until = Some(now + keep);
            teller.waits = None;
        }
    }

    /// When something is to be done at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let waits = |teller: &Teller| teller.waits.as_ref().map(|(_, until)| *until);
        self.0.values().flat_map(|teller| [teller.until, waits(teller)]).flatten().min()
    }

    /// Answers those who have waited long enough, and takes prefixes away whose teller has been gone for too long.
    pub(crate) fn tick(
        &mut self,
        now: Instant,
        node: &mut Node,
        actions: &mut Vec<Action>,
        out: &mut Vec<Output>,
    ) {
        for teller in self.0.values_mut() {
            if let Some((called, _)) = teller.waits.take_if(|(_, until)| *until <= now) {
                out.push(called.answer(Ok(LostReply { again: false })));
            }
        }
        let over = |_: &String, teller: &mut Teller| teller.until.is_some_and(|until| until <= now);
        for (principal, _) in self.0.extract_if(.., over) {
            // Without the principal there is nothing to take away.
            let nothing = [PrefixNews::Begin, PrefixNews::Complete];
            drop(node.learn_prefixes(&principal, nothing.into_iter(), actions));
        }
    }
}

/// The gateways of each set, in order.
fn sets(gateways: Vec<Gateway>) -> Result<BTreeMap<u32, Vec<Xid>>, XrlError> {
    let mut sets: BTreeMap<u32, Vec<Xid>> = BTreeMap::new();
    for Gateway { set, identifier } in gateways {
        let read = identifier.parse::<Xid>().ok().filter(|xid| !xid.kind.is_nat());
        let read = read.ok_or_else(|| {
            XrlError::bad_args(format!("`{}` is no XID of a gateway", identifier.escape_debug()))
        })?;
        if set < FIRST_SET {
            let note = format!("the set {set} has a meaning already: {FIRST_SET} is the first");
            return Err(XrlError::bad_args(note));
        }
        sets.entry(set).or_default().push(read);
    }
    for (number, set) in &mut sets {
        *set = in_order(set.drain(..));
        if set.len() > MAX_GATEWAYS {
            let note = format!("the set {number} has more than {MAX_GATEWAYS} gateways");
            return Err(XrlError::bad_args(note));
        }
    }
    Ok(sets)
}

/// The bits of a prefix of IP; those behind its length are zero.
fn bits(net: &IpNet) -> Vec<u8> {
    match net.trunc() {
        IpNet::V4(net) => net.addr().octets().to_vec(),
        IpNet::V6(net) => net.addr().octets().to_vec(),
    }
}
