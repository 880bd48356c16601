//! The names under which the launcher keeps what holds a program.
//!
//! ```text
//! loss-3-in-c-link       program, number of the interface, direction, owner, which of the two
//! loss-3-in-c-map
//! ```

use std::collections::BTreeMap;

use weft_runtime::{Direction, Handle, PROGRAMS};

use super::{Key, Owner};

/// What holds a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Link,
    Map,
}

impl Part {
    /// Both. A link without its map is of no use, so the map comes first.
    pub(super) const ALL: [Self; 2] = [Self::Map, Self::Link];
}

/// What was kept of a program.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) key: Key,
    pub(super) owner: Owner,
    pub(super) link: Option<Handle>,
    pub(super) map: Handle,
}

/// The name of a part.
pub(super) fn name(key: &Key, owner: Owner, part: Part) -> String {
    let Key { interface, direction, program } = key;
    let direction = match direction {
        Direction::Ingress => "in",
        Direction::Egress => "out",
    };
    let owner = match owner {
        Owner::Configuration => "c",
        Owner::Call => "x",
    };
    let part = match part {
        Part::Link => "link",
        Part::Map => "map",
    };
    format!("{program}-{interface}-{direction}-{owner}-{part}")
}

fn parse(text: &str) -> Option<(Key, Owner, Part)> {
    let mut words = text.rsplitn(5, '-');
    let part = match words.next()? {
        "link" => Part::Link,
        "map" => Part::Map,
        _ => return None,
    };
    let owner = match words.next()? {
        "c" => Owner::Configuration,
        "x" => Owner::Call,
        _ => return None,
    };
    let direction = match words.next()? {
        "in" => Direction::Ingress,
        "out" => Direction::Egress,
        _ => return None,
    };
    let interface = words.next()?.parse().ok()?;
    let program = words.next()?;
    let program = PROGRAMS.iter().find(|kind| kind.name == program)?.name;
    Some((Key { interface, direction, program }, owner, part))
}

/// What the launcher has kept.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What can be taken over.
    pub(super) whole: Vec<Kept>,
    /// Links without their maps, which are of no use.
    pub(super) links: Vec<(Key, Owner)>,
    /// Names of what is none of it.
    pub(super) strange: Vec<String>,
}

/// Puts together what was kept.
pub(super) fn read(kept: BTreeMap<String, Handle>) -> Found {
    let mut found = Found::default();
    let mut links = BTreeMap::new();
    let mut maps = BTreeMap::new();
    for (name, handle) in kept {
        // What the launcher calls it begins with the name of this process.
        let own = name.rsplit_once("--").map_or(name.as_str(), |(_, own)| own);
        match parse(own) {
            Some((key, owner, Part::Link)) => drop(links.insert((key, owner), handle)),
            Some((key, owner, Part::Map)) => drop(maps.insert((key, owner), handle)),
            None => found.strange.push(name),
        }
    }
    for ((key, owner), map) in maps {
        let link = links.remove(&(key, owner));
        found.whole.push(Kept { key, owner, link, map });
    }
    found.links = links.into_keys().collect();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The longest name that the launcher takes, and what the manager puts before ours.
    const LONGEST: usize = 32;
    const PREFIX: &str = "fea--";

    #[test]
    fn what_was_kept_is_put_together() {
        let handles = ["fea--loss-3-in-c-link", "fea--loss-3-in-c-map", "fea--loss-4-out-x-map"];
        let others = ["fea--gain-3-in-c-map", "fea--loss-5-in-c-link", "port"];
        let kept = handles.into_iter().chain(others).zip(1..);
        let kept = kept.map(|(name, number)| (name.to_owned(), Handle::from_number(number)));
        let found = read(kept.collect());
        let told: Vec<_> = found
            .whole
            .iter()
            .map(|one| {
                let link = one.link.as_ref().and_then(Handle::number);
                (one.key.interface, one.key.direction, one.owner, link, one.map.number())
            })
            .collect();
        assert_eq!(
            told,
            [
                (3, Direction::Ingress, Owner::Configuration, Some(1), Some(2)),
                (4, Direction::Egress, Owner::Call, None, Some(3)),
            ]
        );
        assert_eq!(found.strange, ["fea--gain-3-in-c-map", "port"]);
        let link = |(key, owner): &(Key, Owner)| name(key, *owner, Part::Link);
        assert_eq!(found.links.iter().map(link).collect::<Vec<_>>(), ["loss-5-in-c-link"]);
    }

    proptest! {
        #[test]
        fn names_are_read_as_they_were_written(
            interface in 1..=i32::MAX.cast_unsigned(),
            egress: bool,
            call: bool,
            map: bool,
        ) {
            let direction = if egress { Direction::Egress } else { Direction::Ingress };
            let owner = if call { Owner::Call } else { Owner::Configuration };
            let part = if map { Part::Map } else { Part::Link };
            for kind in PROGRAMS {
                let key = Key { interface, direction, program: kind.name };
                let text = name(&key, owner, part);
                prop_assert!(PREFIX.len() + text.len() <= LONGEST, "{text}");
                prop_assert_eq!(parse(&text), Some((key, owner, part)));
            }
        }

        #[test]
        fn any_name_is_read_or_not(text: String) {
            let _ = parse(&text);
        }
    }
}
