//! Users of this machine who may call components, besides root and the user that runs the node, and
//! operators on other machines.
//!
//! Who connects without a secret is known by the user id that the kernel tells, and who comes by the gateway
//! by the key that the gateway has seen proved. The manager says which users, groups and keys may call
//! what, from the node's configuration.

use std::collections::BTreeMap;
use std::fmt;

use weft_keys::KeyHash;
use weft_xrl::{Access, XrlError, finder};

/// Knows the users and groups of the machine.
pub trait Users: fmt::Debug + Send {
    /// The number of a user.
    fn user(&self, name: &str) -> Option<u32>;

    /// Whether a user belongs to a group, given by name or number.
    fn belongs(&self, uid: u32, group: &str) -> bool;
}

/// For machines on which nobody has a name.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Users for Nobody {
    fn user(&self, _: &str) -> Option<u32> {
        None
    }

    fn belongs(&self, _: u32, _: &str) -> bool {
        false
    }
}

/// The users and groups that were named, in the order in which they decide.
#[derive(Debug, Default)]
pub(crate) struct Operators {
    all: Vec<Operator>,
    remote: BTreeMap<KeyHash, Access>,
}

#[derive(Debug)]
struct Operator {
    name: String,
    group: bool,
    access: Access,
}

impl Operators {
    /// Reads what the manager says.
    pub(crate) fn new(
        told: Vec<finder::Operator>,
        remote: Vec<finder::RemoteOperator>,
    ) -> Result<Self, XrlError> {
        let read = |finder::Operator { name, group, access }| {
            let access = Access::parse(&access)
                .map_err(|note| XrlError::bad_args(format!("{name}: {note}")))?;
            Ok(Operator { name, group, access })
        };
        let read_remote = |finder::RemoteOperator { key, access }| {
            let hash = key
                .parse()
                .map_err(|error| XrlError::bad_args(format!("the key `{key}`: {error}")))?;
            let access = Access::parse(&access)
                .map_err(|note| XrlError::bad_args(format!("the key {key}: {note}")))?;
            Ok((hash, access))
        };
        Ok(Self {
            all: told.into_iter().map(read).collect::<Result<_, XrlError>>()?,
            remote: remote.into_iter().map(read_remote).collect::<Result<_, XrlError>>()?,
        })
    }

    /// What who has a key may call. `None` is nothing.
    pub(crate) fn remote(&self, key: &KeyHash) -> Option<&Access> {
        self.remote.get(key)
    }

    /// What a user may call: what the first entry says that names the user or, if none does, a group of
    /// the user's. `None` is nothing.
    pub(crate) fn access(&self, uid: u32, users: &dyn Users) -> Option<&Access> {
        let is = |one: &&Operator| match one.name.parse::<u32>() {
            Ok(number) => number == uid,
            Err(_) => users.user(&one.name) == Some(uid),
        };
        let user = self.all.iter().filter(|one| !one.group).find(is);
        let mut groups = self.all.iter().filter(|one| one.group);
        let found = user.or_else(|| groups.find(|one| users.belongs(uid, &one.name)));
        found.map(|one| &one.access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Users alice (1000) and bob (1001); the group wheel (10) holds both, the group ops (11) bob.
    #[derive(Debug)]
    struct Two;

    impl Users for Two {
        fn user(&self, name: &str) -> Option<u32> {
            [("alice", 1000), ("bob", 1001)].iter().find(|one| one.0 == name).map(|one| one.1)
        }

        fn belongs(&self, uid: u32, group: &str) -> bool {
            match group {
                "wheel" | "10" => [1000, 1001].contains(&uid),
                "ops" | "11" => uid == 1001,
                _ => false,
            }
        }
    }

    fn operators(all: &[(&str, bool, &str)]) -> Operators {
        let told = all.iter().map(|(name, group, access)| finder::Operator {
            name: (*name).to_owned(),
            group: *group,
            access: (*access).to_owned(),
        });
        Operators::new(told.collect(), Vec::new()).unwrap()
    }

    #[test]
    fn users_decide_before_groups_and_the_first_group_before_the_next() {
        let all = operators(&[("wheel", true, "a"), ("ops", true, "b"), ("alice", false, "c")]);
        let access = |uid| all.access(uid, &Two).cloned();
        assert_eq!(access(1000), Access::parse("c").ok());
        assert_eq!(access(1001), Access::parse("a").ok());
        assert_eq!(access(1002), None);
    }

    #[test]
    fn numbers_are_as_good_as_names() {
        let all = operators(&[("11", true, "a"), ("1000", false, "b")]);
        assert_eq!(all.access(1001, &Two).cloned(), Access::parse("a").ok());
        assert_eq!(all.access(1000, &Two).cloned(), Access::parse("b").ok());
        assert!(
            operators(&[("nobody", false, "*"), ("none", true, "*")]).access(1000, &Two).is_none()
        );
    }
}
