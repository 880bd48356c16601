//! What is being edited, on disk: it outlives the process that holds the configuration.
//!
//! ```text
//! # weft candidate
//! # session 4711                       who edits
//! # user alice
//! # uid 1000
//! # since 1795300200000000000          nanoseconds since 1970
//! # edited                             only if it is not what runs
//! # sha256 9f86d081884c7d65…
//! version 1;
//! …
//! ```
//!
//! The file is written as revisions are (`file`), so that a crash at any point leaves the one before or
//! the new one. It goes away with the lock.

use weft_base::WallTime;
use weft_config::{FromWord, Statement, Tree};

use crate::messages::{Lock, Who};
use crate::revision::MAX_USER;
use crate::sealed::{Damage, Head, seal, shortened, words};

/// The name of the file.
pub(crate) const CANDIDATE: &str = "candidate";

/// Who edits what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) lock: Lock,
    /// The candidate, if it is not what runs.
    pub(crate) edited: Option<Tree>,
}

impl Kept {
    /// The content of the file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Lock { who, since } = &self.lock;
        let line = Statement::new;
        let lines = [
            line("session").word(&who.session),
            line("user").word(shortened(&who.user, MAX_USER).as_str()),
            line("uid").word(&who.uid),
            line("since").word(&since.as_unix_nanos()),
        ];
        let edited = self.edited.as_ref().map(|_| line("edited"));
        let text = self.edited.as_ref().map(Tree::text).unwrap_or_default();
        seal(line(CANDIDATE), lines.into_iter().chain(edited), &text)
    }

    /// What a file says.
    ///
    /// # Errors
    /// Why it cannot be used, in a sentence.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let damage = |damage: Damage| damage.to_string();
        let head = Head::read(CANDIDATE, bytes).map_err(damage)?;
        let text = head.text(bytes).map_err(damage)?;
        let (mut session, mut uid, mut nanos) = (None, None, None);
        let (mut user, mut is_edited) = (String::new(), false);
        for line in &head.lines[1..] {
            match words(line)[..] {
                ["session", number] => session = u64::from_word(number).ok(),
                ["uid", number] => uid = u32::from_word(number).ok(),
                ["since", number] => nanos = u64::from_word(number).ok(),
                ["user", name] => name.clone_into(&mut user),
                ["edited"] => is_edited = true,
                _ => return Err(damage(Damage::Head)),
            }
        }
        let (Some(session), Some(uid), Some(nanos)) = (session, uid, nanos) else {
            return Err(damage(Damage::Head));
        };
        let edited = match is_edited {
            true => Some(Tree::parse(CANDIDATE, text).map_err(|errors| errors.to_string())?),
            false => None,
        };
        let since = WallTime::from_unix_nanos(nanos);
        Ok(Self { lock: Lock { who: Who { session, user, uid }, since }, edited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    prop_compose! {
        fn kept()(
            session: u64,
            uid: u32,
            nanos: u64,
            user in ".{0,40}",
            edited in prop::option::of("(x [a-z]{1,4};\n){0,4}"),
        ) -> Kept {
            let edited = edited.map(|text| Tree::parse_part("t", &text).unwrap());
            let since = WallTime::from_unix_nanos(nanos);
            Kept { lock: Lock { who: Who { session, user, uid }, since }, edited }
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_read_back(kept in kept()) {
            prop_assert_eq!(Kept::decode(&kept.encode()), Ok(kept));
        }

        #[test]
        fn torn_files_are_noticed(kept in kept(), at: prop::sample::Index) {
            let bytes = kept.encode();
            let at = at.index(bytes.len());
            prop_assert!(Kept::decode(&bytes[..at]).is_err());
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            prop_assert!(Kept::decode(&zeroed).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), line in "# weft candidate\n(# (uid|user|sha256|session) [0-9a-z]{0,4}\n){0,4}") {
            let _ = Kept::decode(&bytes);
            let _ = Kept::decode(line.as_bytes());
        }
    }
}
