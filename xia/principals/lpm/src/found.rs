//! Prefixes that somebody outside of the stack has found: a table beside that of the statements.
//!
//! Whoever tells of them may tell everything anew; what was told before serves until then. Each prefix has the number of
//! the round in which it was told last, so that in the end those go that were not told again.

use serde_json::{Value, json};
use weft_routing::{Prefix, PrefixTable};
use weft_xip::Xid;
use weft_xip::prefixes::{Lead, PrefixError, PrefixNews};
use weft_xip::principal::{Answer, Branch};
use weft_xip::table::gateways::{GatewayNumber, Gateways};

use crate::text::{self, ID_BITS};

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Found {
    table: PrefixTable<Entry>,
    gateways: Gateways,
    round: u32,
    /// How many prefixes were told in this round.
    of_round: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    to: To,
    round: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum To {
    #[default]
    Nowhere,
    Here,
    Via(GatewayNumber),
}

impl Found {
    /// Takes news; returns the prefixes that may be answered otherwise now.
    pub(crate) fn take(&mut self, news: PrefixNews<'_>) -> Result<Vec<Prefix>, PrefixError> {
        match news {
            PrefixNews::Begin => {
                self.round = self.round.wrapping_add(1);
                self.of_round = 0;
                Ok(Vec::new())
            }
            PrefixNews::Lead { bits, length, lead } => {
                let fits = |prefix: &Prefix| prefix.length() <= ID_BITS;
                let prefix = Prefix::new(bits, length).ok().filter(fits);
                let prefix = prefix.ok_or(PrefixError::NoPrefix)?;
                let is_other = match lead {
                    Some(lead) => self.set(prefix, lead),
                    None => self.remove(&prefix),
                };
                Ok(if is_other { vec![prefix] } else { Vec::new() })
            }
            PrefixNews::Complete => Ok(self.sweep()),
        }
    }

    /// Sets where a prefix leads; returns whether that is elsewhere now.
    fn set(&mut self, prefix: Prefix, lead: Lead<'_>) -> bool {
        let round = self.round;
        if let Some(entry) = self.table.get_mut(&prefix) {
            self.of_round += usize::from(entry.round != round);
            entry.round = round;
            let is_same = match (entry.to, lead) {
                (To::Nowhere, Lead::Nowhere) | (To::Here, Lead::Here) => true,
                (To::Via(number), Lead::Via(via)) => self.gateways.get(number) == via,
                _ => false,
            };
            if is_same {
                return false;
            }
        } else {
            self.of_round += 1;
        }
        let to = match lead {
            Lead::Nowhere => To::Nowhere,
            Lead::Here => To::Here,
            Lead::Via(via) => To::Via(self.gateways.add(via)),
        };
        if let Some(Entry { to: To::Via(before), .. }) =
            self.table.insert(prefix, Entry { to, round })
        {
            self.gateways.release(before);
        }
        true
    }

    /// Nothing is known of a prefix any more; returns whether something was.
    fn remove(&mut self, prefix: &Prefix) -> bool {
        let Some(Entry { to, round }) = self.table.remove(prefix) else { return false };
        self.of_round -= usize::from(round == self.round);
        if let To::Via(number) = to {
            self.gateways.release(number);
        }
        true
    }

    /// Forgets what was not told in this round. As a rule that is nothing, which is known without looking.
    fn sweep(&mut self) -> Vec<Prefix> {
        if self.of_round == self.table.len() {
            return Vec::new();
        }
        let old = self.table.iter().filter(|(_, entry)| entry.round != self.round);
        let old: Vec<_> = old.map(|(prefix, _)| prefix).collect();
        for prefix in &old {
            self.remove(prefix);
        }
        old
    }

    /// The longest prefix that an identifier begins with: its length, and what stands for where it leads.
    #[inline]
    pub(crate) fn longest(&self, id: &Prefix) -> Option<(u8, FoundLead)> {
        if self.table.is_empty() {
            return None;
        }
        self.table.longest(id).map(|(length, entry)| (length, FoundLead(entry.to)))
    }

    /// What is answered where that prefix decides.
    #[inline]
    pub(crate) fn answer(&self, lead: FoundLead, branches: &mut Vec<Branch>) -> Answer {
        match lead.0 {
            To::Nowhere => Answer::Unknown,
            To::Here => Answer::Through,
            To::Via(number) => self.gateways.answer(number, branches),
        }
    }

    /// A row for each prefix and gateway.
    pub(crate) fn show(&self) -> Vec<Value> {
        let row = |prefix: &Prefix, via: Value| {
            let mut row = json!({
                "prefix": text::hexadecimal_text(prefix), "via": via, "origin": "translated",
            });
            if let Some(ipv4) = text::ipv4(prefix) {
                row["ipv4"] = ipv4.into();
            }
            row
        };
        let text = |xid: &Xid| xid.to_string().into();
        let rows = self.table.iter().flat_map(|(prefix, entry)| match entry.to {
            To::Nowhere => vec![row(&prefix, "nowhere".into())],
            To::Here => vec![row(&prefix, "here".into())],
            To::Via(number) => {
                self.gateways.get(number).iter().map(|xid| row(&prefix, text(xid))).collect()
            }
        });
        rows.collect()
    }
}

/// Stands for where a prefix leads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundLead(To);
