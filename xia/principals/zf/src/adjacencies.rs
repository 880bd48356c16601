//! Links that nobody states: those to the neighbours of the topology, and the trees that are made of them.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009, §3.1 (whoever knows the
//! topology makes the filters of trees); Machado et al., "Linux XIA", §5.3.
//!
//! A link from one host to the next is called by both, `hid-…>hid-…`; what leads into a host is called by that
//! host, `hid-…`. So it is whichever version of HID the hosts have. Identifiers follow from names alone, so whoever knows
//! the topology knows the filter of every tree in it, and no node asks another.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use weft_xip::{Xid, XidType};

use crate::filter::{best_filter, false_positive_rate, fill};
use crate::links::Target;
use crate::statement::{Link, Naming};

/// The neighbours, as a routing protocol tells them.
#[derive(Debug, Default)]
pub(crate) struct Adjacencies {
    on: bool,
    /// This node and a neighbour. They are remembered even if nothing is made of them.
    pairs: BTreeSet<(Xid, Xid)>,
}

/// A link that there is now, or is not any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Adjacent {
    pub(crate) link: Link,
    pub(crate) target: Target,
    pub(crate) up: bool,
}

impl Adjacencies {
    pub(crate) fn are_on(&self) -> bool {
        self.on
    }

    /// Makes links of neighbours from now on, or does not; says which come or go.
    pub(crate) fn turn(&mut self, on: bool) -> Vec<Adjacent> {
        if std::mem::replace(&mut self.on, on) == on {
            return Vec::new();
        }
        links(&self.pairs).map(|(link, target)| Adjacent { link, target, up: on }).collect()
    }

    /// A neighbour is there, or is not any more; says which links come or go.
    pub(crate) fn tell(&mut self, own: Xid, neighbour: Xid, up: bool) -> Vec<Adjacent> {
        let before: BTreeSet<_> = self.links().collect();
        match up {
            true => self.pairs.insert((own, neighbour)),
            false => self.pairs.remove(&(own, neighbour)),
        };
        let after: BTreeSet<_> = self.links().collect();
        let changed = |(link, target): &(Link, Target), up| Adjacent {
            link: link.clone(),
            target: *target,
            up,
        };
        let gone = before.difference(&after).map(|link| changed(link, false));
        gone.chain(after.difference(&before).map(|link| changed(link, true))).collect()
    }

    /// The links that there are.
    pub(crate) fn links(&self) -> impl Iterator<Item = (Link, Target)> {
        links(&self.pairs).filter(|_| self.on)
    }

    /// `null` if nothing is made of neighbours, otherwise the links.
    pub(crate) fn show(&self) -> Value {
        if !self.on {
            return Value::Null;
        }
        let line = |(link, target): (Link, Target)| {
            let Link::Name(name) = link else { return Value::Null };
            json!({ "link": name, "via": target.map(|via| via.to_string()) })
        };
        self.links().map(line).collect()
    }
}

/// The links of these neighbours, and those into this node, of which each is once.
fn links(pairs: &BTreeSet<(Xid, Xid)>) -> impl Iterator<Item = (Link, Target)> {
    let own: BTreeSet<Xid> = pairs.iter().map(|(own, _)| *own).collect();
    let into = own.into_iter().map(|own| (Link::Name(host_name(own)), None));
    into.chain(pairs.iter().map(|(own, to)| (Link::Name(link_name(*own, *to)), Some(*to))))
}

fn link_name(from: Xid, to: Xid) -> String {
    format!("{}>{}", host_name(from), host_name(to))
}

/// The name of a host, which is that of what leads into it, by whichever version of HID it is known.
fn host_name(host: Xid) -> String {
    Xid::new(XidType::HID, host.id).to_string()
}

/// The filter of a tree with these links that leads into the hosts `ends`: its XID, its one bits, its tag, and how many links
/// of a million are in it by mistake.
///
/// # Errors
/// Nodes would refuse it, because it has too many one bits.
pub(crate) fn tree(
    naming: Naming,
    fill_limit: u32,
    links: &[(Xid, Xid)],
    ends: &[Xid],
) -> Result<Value, String> {
    let over = links.iter().map(|(from, to)| link_name(*from, *to));
    let names: Vec<String> = over.chain(ends.iter().map(|host| host_name(*host))).collect();
    let (tag, xid) = best_filter(names.iter().map(String::as_str), naming.bits, naming.tags);
    let bits = fill(&xid);
    if bits > fill_limit {
        return Err(format!(
            "a filter of {} links has {bits} one bits, and nodes refuse more than {fill_limit} (`fill-limit`); send to \
             fewer hosts at once, or make `tags` 8 or `bits` less on all nodes",
            names.len()
        ));
    }
    let of_a_million = 1e6 * false_positive_rate(&xid, naming.bits);
    Ok(json!({
        "xid": xid.to_string(),
        "bits": bits,
        "tag": tag,
        "false_positives_per_million": of_a_million.round(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Bits, link_identifier};

    const NAMING: Naming = Naming { bits: 5, tags: 1 };

    fn host(number: u8) -> Xid {
        Xid::new(XidType::HID, [number; 20])
    }

    fn named(name: &str) -> Link {
        Link::Name(name.to_owned())
    }

    #[test]
    fn neighbours_are_links_while_it_is_said() {
        let mut all = Adjacencies::default();
        assert_eq!(all.tell(host(1), host(2), true), []);
        assert_eq!((all.links().count(), all.show()), (0, Value::Null));
        let into = Adjacent { link: named(&host(1).to_string()), target: None, up: true };
        let to = |number: u8, up| Adjacent {
            link: named(&format!("{}>{}", host(1), host(number))),
            target: Some(host(number)),
            up,
        };
        assert_eq!(all.turn(true), [into.clone(), to(2, true)]);
        assert_eq!(all.turn(true), []);
        assert_eq!(all.tell(host(1), host(3), true), [to(3, true)]);
        assert_eq!(all.tell(host(1), host(3), true), []);
        assert_eq!(all.show()[2]["via"], host(3).to_string());
        assert_eq!(all.tell(host(1), host(2), false), [to(2, false)]);
        let gone = [Adjacent { up: false, ..into }, to(3, false)];
        assert_eq!(all.tell(host(1), host(3), false), gone);
        all.tell(host(1), host(2), true);
        // The same link, by another version of HID.
        let second = Xid::new(XidType::HID2, host(2).id);
        let to_second = |up| Adjacent { target: Some(second), ..to(2, up) };
        assert_eq!(all.tell(host(1), second, true), [to_second(true)]);
        assert_eq!(all.tell(host(1), host(2), false), [to(2, false)]);
        assert_eq!(all.turn(false).len(), 2);
        assert_eq!(all.links().count(), 0);
    }

    #[test]
    fn a_tree_holds_its_links_and_its_ends() {
        let links = [(host(1), host(2)), (host(2), host(3))];
        let tree = tree(NAMING, 80, &links, &[host(3)]).unwrap();
        let xid: Xid = tree["xid"].as_str().unwrap().parse().unwrap();
        let holds = |name: &str| Bits::of(&xid).holds(Bits::of(&link_identifier(name, 5)));
        let between = |from, to| format!("{}>{}", host(from), host(to));
        assert!(holds(&between(1, 2)) && holds(&between(2, 3)) && holds(&host(3).to_string()));
        assert!(!holds(&between(2, 1)) && !holds(&between(3, 2)) && !holds(&host(2).to_string()));
        assert_eq!(tree["bits"], fill(&xid));
    }

    #[test]
    fn a_tree_that_nodes_would_refuse_is_not_made() {
        let links: Vec<_> = (1..60).map(|number| (host(number), host(number + 1))).collect();
        let error = tree(NAMING, 80, &links, &[host(60)]).unwrap_err();
        assert!(error.starts_with("a filter of 60 links has"), "{error}");
        assert!(tree(NAMING, 160, &links, &[host(60)]).is_ok());
    }
}
