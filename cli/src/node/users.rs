//! The users and groups of this machine, as its files say.
//!
//! Reference: passwd(5), group(5). Users of other sources, such as LDAP, can be named by number.

use std::fs;

use weft_finder::Users;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Reads the files whenever it is asked, so that changes count at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files;

impl Users for Files {
    fn user(&self, name: &str) -> Option<u32> {
        user(&fs::read_to_string(PASSWD).ok()?, name)
    }

    fn belongs(&self, uid: u32, group: &str) -> bool {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        belongs(&read(PASSWD), &read(GROUP), uid, group)
    }
}

/// The fields of all lines of a file.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

fn user(passwd: &str, name: &str) -> Option<u32> {
    lines(passwd).find_map(|line| match line[..] {
        [found, _, uid, ..] if found == name => uid.parse().ok(),
        _ => None,
    })
}

fn belongs(passwd: &str, groups: &str, uid: u32, wanted: &str) -> bool {
    let users: Vec<_> = lines(passwd)
        .filter_map(|line| match line[..] {
            [name, _, number, gid, ..] if number.parse() == Ok(uid) => Some((name, gid)),
            _ => None,
        })
        .collect();
    lines(groups).any(|line| {
        let [name, _, gid, members] = line[..] else { return false };
        let named = match wanted.parse::<u32>() {
            Ok(number) => gid.parse() == Ok(number),
            Err(_) => name == wanted,
        };
        let holds = |(user, own): &(&str, &str)| {
            *own == gid || members.split(',').any(|member| member == *user)
        };
        named && users.iter().any(holds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:100::/:\nbob:x:1001:1001::/:\nbroken\n";
    const GROUP: &str = "root:x:0:\nusers:x:100:\nnetops:x:2000:bob,carol\nbroken:x\n";

    #[test]
    fn users_have_numbers() {
        assert_eq!(user(PASSWD, "alice"), Some(1000));
        assert_eq!(user(PASSWD, "carol"), None);
        assert_eq!(user(PASSWD, ""), None);
    }

    #[test]
    fn groups_hold_their_members_and_those_whose_first_group_they_are() {
        for (uid, group, expected) in [
            (1000, "users", true),
            (1000, "100", true),
            (1000, "netops", false),
            (1001, "netops", true),
            (1001, "2000", true),
            (1001, "users", false),
            // A member without an entry is nobody.
            (1002, "netops", false),
            (0, "root", true),
            (1000, "broken", false),
        ] {
            assert_eq!(belongs(PASSWD, GROUP, uid, group), expected, "{uid} {group}");
        }
    }
}
