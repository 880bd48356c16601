//! What this process may do to its children, found out once.
//!
//! Reference: capabilities(7), user_namespaces(7).

use std::fs;

use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs};

use crate::missing::Missing;

/// What it takes to start and end processes of other users, and to give them files.
const NEEDED: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::DAC_OVERRIDE);

/// What the launcher can do here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Powers {
    /// Give children users of their own, and files to these users.
    pub(crate) users: bool,
    /// Take away the groups of the launcher's own user.
    pub(crate) groups: bool,
    /// Take capabilities out of the bounding set and set securebits.
    pub(crate) bounding: bool,
}

impl Powers {
    /// What this process can do with uids from `first` on, `count` of them.
    pub(crate) fn find(first: u32, count: u32) -> Self {
        let has = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        let map = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let mapped = |name: &str| covers(&map(name), first, count);
        Self {
            users: has.contains(NEEDED) && mapped("uid_map") && mapped("gid_map"),
            groups: has.contains(CapabilitySet::SETGID) && map("setgroups").trim() != "deny",
            bounding: has.contains(CapabilitySet::SETPCAP),
        }
    }

    /// Gives up the capabilities of this process that neither it nor a child needs.
    pub(crate) fn shed(passed_on: CapabilitySet) -> rustix::io::Result<()> {
        let mut sets = capabilities(None)?;
        // The last two for limits and niceness of children that are better than those of this process.
        let own =
            NEEDED | CapabilitySet::SETPCAP | CapabilitySet::SYS_RESOURCE | CapabilitySet::SYS_NICE;
        sets.permitted &= own | passed_on;
        sets.effective = sets.permitted;
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets)?;
        set_no_new_privs(true)
    }

    /// What is missing.
    pub(crate) fn missing(self) -> Vec<Missing> {
        if self.users {
            return Vec::new();
        }
        let what = "no process has a user of its own, so what they own is not kept apart by users";
        vec![Missing::new(what, "run the node as root")]
    }
}

/// Whether a uid_map or gid_map has all of `first` to `first + count - 1`.
fn covers(map: &str, first: u32, count: u32) -> bool {
    let (first, end) = (u64::from(first), u64::from(first) + u64::from(count));
    map.lines().any(|line| {
        let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
        let (Some(Ok(inside)), _, Some(Ok(length))) =
            (numbers.next(), numbers.next(), numbers.next())
        else {
            return false;
        };
        inside <= first && end <= inside + length
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_covers_what_lies_in_one_of_its_lines() {
        assert!(covers("         0          0 4294967295\n", 1_900_000_000, 256));
        assert!(!covers("         0       1000          1\n", 1_900_000_000, 256));
        assert!(covers("0 1000 1\n1 100000 65536\n", 1, 65536));
        assert!(!covers("0 1000 1\n1 100000 65536\n", 2, 65536));
        assert!(!covers("", 0, 1));
    }
}
