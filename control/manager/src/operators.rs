//! Who may call a node's components, besides root and the user that runs it.
//!
//! ```text
//! operators {
//!     group netops;                   # may call everything, and so configure the node
//!     user eve {
//!         access manager/manager/1.0/processes fea/fea/1.0/interfaces;
//!     }
//!     key 3f2a7c90d4e1b85566aa0f1e2d3c4b5a69788796 {   # somebody on another machine, by the gateway
//!         access manager/manager/1.0/processes;
//!     }
//! }
//! ```
//!
//! Users and groups are names or numbers, keys the hashes of public keys. The Finder asks who is who when somebody connects, so whoever
//! joins a group needs no commit.

use weft_config::{Block, Entry, Errors, gather};
use weft_keys::KeyHash;
use weft_xrl::{Access, finder};

/// The statement.
pub(crate) const OPERATORS: &str = "operators";
/// The access of those who have no list.
const EVERYTHING: &str = "*";

/// Reads the statement `operators { … }` of a block, if there is one.
///
/// # Errors
/// Every mistake with its place.
pub fn read_operators(block: &mut Block<'_>) -> Result<finder::SetOperators, Errors> {
    let Some(entry) = block.one(OPERATORS)? else { return Ok(nobody()) };
    entry.read_block(|block| {
        let users = block.many("user").into_iter().map(|entry| read(entry, false));
        let groups = block.many("group").into_iter().map(|entry| read(entry, true));
        let here = gather(users.chain(groups).collect::<Vec<_>>());
        let remote = gather(block.many("key").into_iter().map(read_key).collect::<Vec<_>>());
        let operators = here?;
        Ok(finder::SetOperators { operators, remote: Some(remote?) })
    })
}

/// No operators.
pub(crate) fn nobody() -> finder::SetOperators {
    finder::SetOperators { operators: Vec::new(), remote: None }
}

fn read(mut entry: Entry<'_>, group: bool) -> Result<finder::Operator, Errors> {
    let name: String = entry.argument(if group { "the group" } else { "the user" })?;
    let access = read_access(&mut entry)?;
    Ok(finder::Operator { name, group, access })
}

fn read_key(mut entry: Entry<'_>) -> Result<finder::RemoteOperator, Errors> {
    let key: String = entry.argument("the hash of the public key, 40 hexadecimal digits")?;
    let hash: KeyHash = key.parse().map_err(|error| {
        entry.error_at(1, format!("{error}; `weft xia id show` prints it for a key file"))
    })?;
    let access = read_access(&mut entry)?;
    Ok(finder::RemoteOperator { key: hash.to_string(), access })
}

fn read_access(entry: &mut Entry<'_>) -> Result<String, Errors> {
    let mut block = entry.optional_block()?;
    let access = block.list::<String>("access")?.join(" ");
    block.finish()?;
    let access = if access.is_empty() { EVERYTHING.to_owned() } else { access };
    Access::parse(&access).map_err(|note| entry.error_at(1, note))?;
    Ok(access)
}

#[cfg(test)]
mod tests {
    use weft_config::Document;

    use super::*;

    fn of(text: &str) -> Result<finder::SetOperators, Errors> {
        let document = Document::parse("t", &format!("version 1; {text}"))?;
        document.read(1, read_operators)
    }

    #[test]
    fn operators_are_users_and_groups_with_what_they_may_call() {
        assert_eq!(of("").unwrap().operators, []);
        let all = of("operators { group netops; user eve { access a/b \"c?d=1..9\"; } }").unwrap();
        let operator = |name: &str, group, access: &str| finder::Operator {
            name: name.to_owned(),
            group,
            access: access.to_owned(),
        };
        assert_eq!(
            all.operators,
            [operator("eve", false, "a/b c?d=1..9"), operator("netops", true, "*")]
        );
    }

    #[test]
    fn operators_on_other_machines_are_keys() {
        let text = "operators { key 00112233445566778899AABBCCDDEEFF00112233 { access a/b; } }";
        let remote = of(text).unwrap().remote.unwrap();
        let key = "00112233445566778899aabbccddeeff00112233".to_owned();
        assert_eq!(remote, [finder::RemoteOperator { key, access: "a/b".to_owned() }]);
    }

    #[test]
    fn what_is_no_operator_is_an_error_with_a_place() {
        for (text, part) in [
            ("operators { user; }", "the user"),
            ("operators { usr eve; }", "did you mean `user`?"),
            ("operators { user eve { access a//b; } }", "not of the form"),
            ("operators { user eve { axess a; } }", "unknown statement"),
            ("operators { group a b; }", "b"),
            ("operators { key 3f2a; }", "40 hexadecimal digits"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
