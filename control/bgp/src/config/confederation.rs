//! What the configuration says of the confederation that this router's system is a member of.
//!
//! ```text
//! as 65001;
//! confederation {
//!     id 65000;
//!     members 65002 65003;
//! }
//! ```
//!
//! Reference: RFC 5065 §2 and §3.

use std::collections::BTreeSet;

use weft_config::{Block, Errors, Located};

use super::AS_NUMBERS;
use crate::fsm::PeerAs;
use crate::home::Home;
use crate::wire::Neighbour;

/// The systems that belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Systems {
    pub(super) home: Home,
    /// All members of the confederation, this one, too; none if there is no confederation.
    pub(super) members: BTreeSet<u32>,
}

impl Systems {
    /// Reads the number of this router's system, and what it is a member of.
    pub(super) fn read(block: &mut Block<'_>) -> Result<Self, Errors> {
        let number = block.required_in("as", AS_NUMBERS)?;
        let alone = Self { home: Home { number, confederation: None }, members: BTreeSet::new() };
        let Some(entry) = block.one("confederation")? else { return Ok(alone) };
        entry.read_block(|block| {
            let id = block.required_in("id", AS_NUMBERS)?;
            let mut members = BTreeSet::from([number]);
            let all: Vec<Located<u32>> = block.list("members")?;
            for Located { value, location } in all {
                if !AS_NUMBERS.contains(&value) {
                    let sentence = format!("{value} is the number of no autonomous system");
                    return Err(location.error(sentence).into());
                }
                if value == number {
                    let sentence = format!(
                        "{value} is this router's own system (`as`), which is a member already: name the other members"
                    );
                    return Err(location.error(sentence).into());
                }
                members.insert(value);
            }
            Ok(Self { home: Home { number, confederation: Some(id) }, members })
        })
    }

    /// Where a peer of such a system is; none if no peer can be there.
    pub(super) fn place(&self, remote_as: PeerAs) -> Option<Neighbour> {
        let PeerAs::Exactly(number) = remote_as else { return Some(Neighbour::External) };
        if number == self.home.number {
            return Some(Neighbour::Internal);
        }
        if self.members.contains(&number) {
            return Some(Neighbour::Confederation);
        }
        (self.home.confederation != Some(number)).then_some(Neighbour::External)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::super::{Config, read};
    use super::*;
    use crate::policy::Filter;

    fn config(confederation: &str, peers: &str) -> Result<Config, String> {
        let text = format!(
            "bgp {{ as 65001; router-id 192.0.2.1;\n confederation {{ {confederation} }}\n {peers} }}"
        );
        read("t", &text).map(Option::unwrap).map_err(|errors| errors.to_string())
    }

    #[test]
    fn members_are_neighbours_of_their_own_kind() {
        let config = config(
            "id 100; members 65002 65003;",
            "peer 192.0.2.2 { as 65001; } peer 192.0.2.3 { as 65003; } peer 192.0.2.4 { as 65004; } \
             range 10.0.0.0/8 { as external; }",
        )
        .unwrap();
        assert_eq!(config.home, Home { number: 65001, confederation: Some(100) });
        let seen = |last: u8| {
            let peer = &config.peers[&IpAddr::from([192, 0, 2, last])];
            (peer.neighbour, peer.import == Filter::All)
        };
        assert_eq!(seen(2), (Neighbour::Internal, true));
        assert_eq!(seen(3), (Neighbour::Confederation, true), "RFC 8212 is about other systems");
        assert_eq!(seen(4), (Neighbour::External, false));
        assert_eq!(config.ranges[0].peer.neighbour, Neighbour::External);
    }

    #[test]
    fn what_cannot_be_is_refused_where_it_stands() {
        for (confederation, peers, wrong) in [
            ("members 65002;", "", "t:2:"),
            ("id 100; members 0;", "", "t:2:34: 0 is the number of no"),
            ("id 100; members 65002 65001;", "", "65001 is this router's own system"),
            ("id 100;", "peer 192.0.2.2 { as 100; }", "100 is the number of the confederation"),
            (
                "id 100; members 65002;",
                "peer 192.0.2.2 { as 65002; local-role peer; }",
                "has no role",
            ),
            (
                "id 100; members 65002;",
                "peer 192.0.2.2 { as 65002; route-reflector-client on; }",
                "only a peer in this autonomous system",
            ),
            (
                "id 100; members 65002;",
                "peer 192.0.2.2 { as 65002; route-server-client on; }",
                "only a peer outside of this autonomous system",
            ),
            (
                "id 100; members 65002;",
                "damping; peer 192.0.2.2 { as 65002; damping on; }",
                "only routes of other systems",
            ),
        ] {
            let said = config(confederation, peers).unwrap_err();
            assert!(said.contains(wrong), "{said}");
        }
    }
}
