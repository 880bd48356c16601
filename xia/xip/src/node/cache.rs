//! What operators see of the routing cache, and what they can do to it.
//!
//! Reference: Machado et al., "Linux XIA", §4.2.2 (DST table, dependency forest).

use serde_json::{Value, json};
use weft_config::{ByteSize, FromWord};

use super::Node;
use crate::Xid;
use crate::forward::{CachedDecision, Decision};
use crate::principal::{Answer, Branch};

/// The most entries that are shown unless all are asked for.
const SHOWN: usize = 100;

impl Node {
    /// Carries out `dst flush`, `dst check` or `dst limit SIZE|off`.
    ///
    /// # Errors
    /// A sentence that says which word is wrong, or what a check has found.
    pub(super) fn change_cache(&mut self, words: &[&str]) -> Result<Value, String> {
        match words {
            ["flush"] => Ok(json!({ "flushed": self.forwarder.flush_cache() })),
            ["check"] => {
                let entries = self.forwarder.cache_size().entries;
                let wrong = self.forwarder.audit_cache();
                let wrong: Vec<_> = wrong.iter().map(|entry| self.show_cached(entry)).collect();
                Ok(json!({ "checked": entries, "wrong": wrong }))
            }
            ["limit", "off"] => {
                self.forwarder.set_cache_limit(0);
                Ok(json!({ "limit": 0 }))
            }
            ["limit", size] => {
                let size =
                    ByteSize::from_word(size).map_err(|error| format!("`{size}`: {error}"))?;
                self.forwarder.set_cache_limit(size.bytes() as usize);
                Ok(json!({ "limit": size.bytes() }))
            }
            _ => {
                Err("write `dst flush`, `dst check`, `dst limit SIZE` or `dst limit off`"
                    .to_owned())
            }
        }
    }

    /// The size of the cache and its entries, the most used first: a hundred, or all of them.
    pub(super) fn show_dst(&self, all: bool) -> Value {
        let size = self.forwarder.cache_size();
        let mut entries: Vec<_> = self.forwarder.cached().collect();
        // Those that were used as often stand in the order of their XIDs, for tests and diffs.
        entries.sort_unstable_by(|a, b| {
            let rest = |entry: &CachedDecision| (entry.edges.clone(), entry.received);
            b.hits.cmp(&a.hits).then_with(|| rest(a).cmp(&rest(b)))
        });
        let shown = if all { entries.len() } else { SHOWN };
        let shares = size
            .shares
            .iter()
            .map(|(port, bytes)| json!({ "from": self.port_name(*port), "bytes": bytes }));
        json!({
            "entries": size.entries,
            "bytes": size.bytes,
            "spare": size.spare,
            "limit": size.limit,
            "anchors": size.anchors,
            "leaves": size.leaves,
            "next_hops": size.hops,
            "shares": shares.collect::<Vec<_>>(),
            "counters": super::show::counts(self.forwarder.cache_activity()),
            "decisions": entries.iter().take(shown).map(|entry| self.show_cached(entry)).collect::<Vec<_>>(),
        })
    }

    /// What decisions rest on, that with the most decisions first: a hundred, or all.
    pub(super) fn show_anchors(&self, all: bool) -> Value {
        let mut anchors: Vec<_> = self.forwarder.anchors().collect();
        anchors.sort_unstable_by(|(a, _, many), (b, _, more)| more.cmp(many).then(a.cmp(b)));
        let shown = if all { anchors.len() } else { SHOWN };
        let show = |(xid, answer, decisions): &(Xid, Answer, usize)| {
            let (name, detail) = self.show_answer(answer);
            let detail = detail.or_else(|| self.show_gateways(xid, answer));
            json!({
                "xid": xid.to_string(), "answer": name, "detail": detail, "decisions": decisions,
            })
        };
        json!({
            "anchors": anchors.len(),
            "shown": anchors.iter().take(shown).map(show).collect::<Vec<_>>(),
        })
    }

    /// The gateways of an XID that has several.
    fn show_gateways(&self, xid: &Xid, answer: &Answer) -> Option<String> {
        let Answer::AnyOf(_) = answer else { return None };
        let mut branches = Vec::new();
        self.forwarder.principal(xid.kind)?.lookup(xid, &mut branches);
        let all = branches.iter().filter_map(Branch::target).map(|via| via.to_string());
        Some(all.collect::<Vec<_>>().join(" "))
    }

    fn show_cached(&self, entry: &CachedDecision) -> Value {
        let (decision, detail) = match entry.decision {
            Decision::Through => ("local", None),
            Decision::Deliver(socket) => ("socket", Some(self.socket_name(socket))),
            Decision::Forward(hop) => {
                let (name, detail) = self.show_answer(&Answer::Forward(hop));
                (name, detail)
            }
            Decision::Several => ("several", None),
            Decision::Drop(reason) => ("drop", Some(reason.to_string())),
        };
        json!({
            "edges": entry.edges.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "received": entry.received,
            "edge": entry.slot,
            "decision": decision,
            "detail": detail,
            "hits": entry.hits,
        })
    }
}
