//! Who may call a node's components, besides root and the user that runs it.
//!
//! ```text
//! operators {
//!     group netops;                   # may call everything, and so configure the node
//!     user eve {
//!         access manager/manager/1.0/processes fea/fea/1.0/interfaces;
//!     }
//! }
//! ```
//!
//! Users and groups are names or numbers. The Finder asks who is who when somebody connects, so whoever
//! joins a group needs no commit.

use weft_config::{Block, Entry, Errors, gather};
use weft_xrl::{Access, finder};

/// The statement.
pub(crate) const OPERATORS: &str = "operators";
/// The access of those who have no list.
const EVERYTHING: &str = "*";

/// Reads the statement `operators { … }` of a block, if there is one.
///
/// # Errors
/// Every mistake with its place.
pub fn read_operators(block: &mut Block<'_>) -> Result<Vec<finder::Operator>, Errors> {
    let Some(entry) = block.one(OPERATORS)? else { return Ok(Vec::new()) };
    entry.read_block(|block| {
        let users = block.many("user").into_iter().map(|entry| read(entry, false));
        let groups = block.many("group").into_iter().map(|entry| read(entry, true));
        gather(users.chain(groups).collect::<Vec<_>>())
    })
}

fn read(mut entry: Entry<'_>, group: bool) -> Result<finder::Operator, Errors> {
    let name: String = entry.argument(if group { "the group" } else { "the user" })?;
    let mut block = entry.optional_block()?;
    let access = block.list::<String>("access")?.join(" ");
    block.finish()?;
    let access = if access.is_empty() { EVERYTHING.to_owned() } else { access };
    Access::parse(&access).map_err(|note| entry.error_at(1, note))?;
    Ok(finder::Operator { name, group, access })
}

#[cfg(test)]
mod tests {
    use weft_config::Document;

    use super::*;

    fn of(text: &str) -> Result<Vec<finder::Operator>, Errors> {
        let document = Document::parse("t", &format!("version 1; {text}"))?;
        document.read(1, read_operators)
    }

    #[test]
    fn operators_are_users_and_groups_with_what_they_may_call() {
        assert_eq!(of("").unwrap(), []);
        let all = of("operators { group netops; user eve { access a/b \"c?d=1..9\"; } }").unwrap();
        let operator = |name: &str, group, access: &str| finder::Operator {
            name: name.to_owned(),
            group,
            access: access.to_owned(),
        };
        assert_eq!(all, [operator("eve", false, "a/b c?d=1..9"), operator("netops", true, "*")]);
    }

    #[test]
    fn what_is_no_operator_is_an_error_with_a_place() {
        for (text, part) in [
            ("operators { user; }", "the user"),
            ("operators { usr eve; }", "did you mean `user`?"),
            ("operators { user eve { access a//b; } }", "not of the form"),
            ("operators { user eve { axess a; } }", "unknown statement"),
            ("operators { group a b; }", "b"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
