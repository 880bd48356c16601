//! The principal itself: its table, and what look-ups answer.

use serde_json::{Value, json};
use weft_base::{Instant, Random};
use weft_routing::{Prefix, PrefixTable};
use weft_xip::changes::{Change, ChangeLog};
use weft_xip::prefixes::{PrefixError, PrefixNews};
use weft_xip::principal::{Answer, Branch, Output, Principal};
use weft_xip::table::gateways::{GatewayNumber, Gateways};
use weft_xip::table::route::Way;
use weft_xip::table::{XidTable, show_routes};
use weft_xip::words::WordError;
use weft_xip::xid::ID_LEN;
use weft_xip::{Xid, XidType};

use crate::found::Found;
use crate::statement::Statement;
use crate::text::{self, ID_BITS};

/// The principal LPM; see the crate's text.
#[derive(Debug)]
pub struct Lpm {
    /// Where each prefix leads, perhaps nowhere; `None` stands for this node.
    table: PrefixTable<Option<GatewayNumber>>,
    gateways: Gateways,
    changes: ChangeLog,
    /// Routes of routing protocols, which know whole identifiers only. Nothing is stated in it.
    learned: XidTable,
    /// Routes to prefixes that somebody outside of the stack has found.
    found: Found,
}

impl Lpm {
    /// A node that knows no prefix. `random` seeds a hash.
    #[must_use]
    pub fn new(mut random: Random) -> Self {
        Self {
            table: PrefixTable::new(),
            gateways: Gateways::default(),
            changes: ChangeLog::default(),
            learned: XidTable::new(XidType::LPM, &mut random),
            found: Found::default(),
        }
    }

    /// Notes that everything that begins with `prefix` may be answered otherwise.
    fn changed(&mut self, prefix: &Prefix) {
        self.changes.note(Change::Range(xid(&prefix.first()), xid(&prefix.last())));
    }

    fn add_local(&mut self, prefix: Prefix) -> Result<(), WordError> {
        match self.table.get(&prefix) {
            Some(None) => return Ok(()),
            Some(Some(_)) => {
                let text = text::hexadecimal_text(&prefix);
                return Err(at_prefix(format!(
                    "{text} has a route; delete that before you make it local"
                )));
            }
            None => {}
        }
        self.table.insert(prefix, None);
        self.changed(&prefix);
        Ok(())
    }

    fn add_route(&mut self, prefix: Prefix, via: &[Xid]) -> Result<(), WordError> {
        let earlier = match self.table.get(&prefix) {
            Some(None) => {
                let text = text::hexadecimal_text(&prefix);
                return Err(at_prefix(format!(
                    "{text} is local here; delete that before you add a route"
                )));
            }
            Some(Some(number)) if self.gateways.get(*number) == via => return Ok(()),
            Some(earlier) => *earlier,
            None => None,
        };
        let number = self.gateways.add(via);
        self.table.insert(prefix, Some(number));
        if let Some(earlier) = earlier {
            self.gateways.release(earlier);
        }
        self.changed(&prefix);
        Ok(())
    }

    fn remove_local(&mut self, prefix: &Prefix) -> Result<(), WordError> {
        let Some(None) = self.table.get(prefix) else {
            let text = text::hexadecimal_text(prefix);
            return Err(at_prefix(format!("{text} is not local here")).absent());
        };
        self.table.remove(prefix);
        self.changed(prefix);
        Ok(())
    }

    /// Removes gateways from a route, and the route with the last of them; or the whole route.
    fn remove_route(&mut self, prefix: &Prefix, way: &Way) -> Result<(), WordError> {
        let none = || {
            let text = text::hexadecimal_text(prefix);
            at_prefix(format!("{text} has no such route")).absent()
        };
        let Some(Some(number)) = self.table.get(prefix).copied() else { return Err(none()) };
        let left = match way {
            Way::Via(via) => self.gateways.without(number, via).ok_or_else(none)?,
            Way::Unreachable if !self.gateways.get(number).is_empty() => return Err(none()),
            Way::Unreachable | Way::Any => Vec::new(),
        };
        if !left.is_empty() {
            return self.add_route(*prefix, &left);
        }
        self.gateways.release(number);
        self.table.remove(prefix);
        self.changed(prefix);
        Ok(())
    }
}

/// The XID of the first bytes.
fn xid<const N: usize>(bytes: &[u8; N]) -> Xid {
    let mut id = [0; ID_LEN];
    id.copy_from_slice(&bytes[..ID_LEN]);
    Xid::new(XidType::LPM, id)
}

/// An error about the prefix of a statement, its second word.
fn at_prefix(text: String) -> WordError {
    WordError::at(1, text)
}

impl Principal for Lpm {
    fn kind(&self) -> XidType {
        XidType::LPM
    }

    fn lookup(&self, xid: &Xid, branches: &mut Vec<Branch>) -> Answer {
        let id = Prefix::from(xid.id);
        let stated = self.table.longest(&id);
        // No prefix is longer than what was learned, but one may be as long.
        if stated.is_none_or(|(length, _)| length < ID_BITS) {
            match self.learned.answer(xid, branches, |()| Answer::Through) {
                Answer::Unknown => {}
                learned => return learned,
            }
        }
        let found = self.found.longest(&id);
        match (stated, found) {
            (stated, Some((length, lead))) if stated.is_none_or(|(stated, _)| length > stated) => {
                self.found.answer(lead, branches)
            }
            (None, _) => Answer::Unknown,
            (Some((_, None)), _) => Answer::Through,
            (Some((_, Some(number))), _) => self.gateways.answer(*number, branches),
        }
    }

    /// For each change to the table everything that begins with its prefix, and what was learned.
    fn drain_changes(&mut self, out: &mut Vec<Change>) {
        self.changes.drain(out);
        self.learned.drain_changes(out);
    }

    fn learn(&mut self, xid: Xid, via: &[Xid]) {
        self.learned.learn_route(xid, via);
    }

    fn learn_prefix(&mut self, news: PrefixNews<'_>) -> Result<(), PrefixError> {
        for prefix in self.found.take(news)? {
            self.changed(&prefix);
        }
        Ok(())
    }

    fn set(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        match Statement::read(words, false)? {
            Statement::Local(prefix) => self.add_local(prefix),
            Statement::Route(prefix, Way::Via(via)) => self.add_route(prefix, &via),
            Statement::Route(prefix, Way::Unreachable | Way::Any) => self.add_route(prefix, &[]),
        }
    }

    fn delete(&mut self, _: Instant, words: &[&str], _: &mut Vec<Output>) -> Result<(), WordError> {
        match Statement::read(words, true)? {
            Statement::Local(prefix) => self.remove_local(&prefix),
            Statement::Route(prefix, way) => self.remove_route(&prefix, &way),
        }
    }

    fn show(&self) -> Value {
        let (mut locals, mut routes) = (Vec::new(), Vec::new());
        for (prefix, entry) in self.table.iter() {
            let mut line = json!({ "prefix": text::hexadecimal_text(&prefix) });
            if let Some(ipv4) = text::ipv4(&prefix) {
                line["ipv4"] = ipv4.into();
            }
            match entry {
                None => locals.push(line),
                Some(number) => match self.gateways.get(*number) {
                    [] => {
                        line["via"] = Value::Null;
                        routes.push(line);
                    }
                    all => routes.extend(all.iter().map(|via| {
                        let mut line = line.clone();
                        line["via"] = via.to_string().into();
                        line
                    })),
                },
            }
        }
        let mut learned = show_routes(self.learned.learned());
        learned.as_array_mut().into_iter().for_each(|rows| rows.extend(self.found.show()));
        json!({ "locals": locals, "routes": routes, "learned": learned })
    }

    /// Only prefixes of all 160 bits are XIDs.
    fn locals(&self) -> Vec<Xid> {
        let whole = |(prefix, entry): (Prefix, &Option<_>)| {
            let is_local = prefix.length() == ID_BITS && entry.is_none();
            is_local.then(|| xid(&prefix.first()))
        };
        self.table.iter().filter_map(whole).collect()
    }
}
