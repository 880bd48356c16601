//! What is being edited, on disk: it outlives the process that holds the configuration.
//!
//! ```text
//! # weft candidate
//! # session 4711                       who edits
//! # user alice
//! # uid 1000
//! # since 1795300200000000000          nanoseconds since 1970
//! # edited 120 180 of 11               only if it is not what runs
//! # sha256 9f86d081884c7d65…
//!     route …
//! ```
//!
//! The text are the lines that stand in the place of bytes 120 to 180 of the text of revision 11; without `of`,
//! before there is any revision, of an empty text. So a change of one line costs the same in a short configuration
//! and in a long one.
//!
//! The file is written as revisions are (`file`), so that a crash at any point leaves the one before or
//! the new one. It goes away with the lock.

use std::ops::Range;
use std::sync::Arc;

use weft_base::WallTime;
use weft_config::{FromWord, Statement, Tree};

use crate::excerpt::{excerpt, restore};
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

/// A revision that is on disk, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) number: u64,
    pub(crate) text: Arc<str>,
}

/// What a file says, as long as the text is not known that the edits are of.
#[derive(Debug)]
pub(crate) struct KeptFile {
    lock: Lock,
    edited: Option<Edited>,
}

#[derive(Debug)]
struct Edited {
    range: Range<usize>,
    of: Option<u64>,
    lines: String,
}

impl Kept {
    /// The content of the file. `text` is that of what is edited, and `stored` is what is on disk.
    pub(crate) fn encode(&self, text: Option<&str>, stored: Option<&Stored>) -> Vec<u8> {
        let Lock { who, since } = &self.lock;
        let line = Statement::new;
        let lines = [
            line("session").word(&who.session),
            line("user").word(shortened(&who.user, MAX_USER).as_str()),
            line("uid").word(&who.uid),
            line("since").word(&since.as_unix_nanos()),
        ];
        let Some(text) = text else { return seal(line(CANDIDATE), lines, "") };
        let (range, lines_of_text) = excerpt(stored.map_or("", |stored| &stored.text), text);
        let mut edited = line("edited").word(&range.start).word(&range.end);
        if let Some(stored) = stored {
            edited = edited.word("of").word(&stored.number);
        }
        seal(line(CANDIDATE), lines.into_iter().chain([edited]), lines_of_text)
    }
}

impl KeptFile {
    /// What a file says.
    ///
    /// # Errors
    /// Why it cannot be used, in a sentence.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let damage = |damage: Damage| damage.to_string();
        let head = Head::read(CANDIDATE, bytes).map_err(damage)?;
        let text = head.text(bytes).map_err(damage)?;
        let (mut session, mut uid, mut nanos) = (None, None, None);
        let (mut user, mut edited) = (String::new(), None);
        for line in &head.lines[1..] {
            match words(line)[..] {
                ["session", number] => session = u64::from_word(number).ok(),
                ["uid", number] => uid = u32::from_word(number).ok(),
                ["since", number] => nanos = u64::from_word(number).ok(),
                ["user", name] => name.clone_into(&mut user),
                ["edited", from, to, ref of @ ..] => {
                    let at = |word: &str| usize::from_word(word).map_err(|_| damage(Damage::Head));
                    let of = match of {
                        [] => None,
                        ["of", number] => {
                            Some(u64::from_word(number).map_err(|_| damage(Damage::Head))?)
                        }
                        _ => return Err(damage(Damage::Head)),
                    };
                    let (range, lines) = (at(from)?..at(to)?, text.to_owned());
                    edited = Some(Edited { range, of, lines });
                }
                _ => return Err(damage(Damage::Head)),
            }
        }
        let (Some(session), Some(uid), Some(nanos)) = (session, uid, nanos) else {
            return Err(damage(Damage::Head));
        };
        let since = WallTime::from_unix_nanos(nanos);
        Ok(Self { lock: Lock { who: Who { session, user, uid }, since }, edited })
    }

    /// The revision whose text has to be known.
    pub(crate) fn of(&self) -> Option<u64> {
        self.edited.as_ref().and_then(|edited| edited.of)
    }

    /// What was kept; `base` is the text of [`KeptFile::of`], if there is such a revision.
    ///
    /// # Errors
    /// Why there is no such text, in a sentence.
    pub(crate) fn restore(self, base: &str) -> Result<Kept, String> {
        let Some(Edited { range, lines, .. }) = self.edited else {
            return Ok(Kept { lock: self.lock, edited: None });
        };
        let text = restore(base, range, &lines).ok_or("they are of another text")?;
        let tree = Tree::parse(CANDIDATE, &text).map_err(|errors| errors.to_string())?;
        Ok(Kept { lock: self.lock, edited: Some(tree) })
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

    fn stored() -> Stored {
        Stored { number: 11, text: "version 1;\nx a;\ny b;\n".into() }
    }

    #[test]
    fn edits_of_another_text_are_refused() {
        let lock = Lock {
            who: Who { session: 1, user: String::new(), uid: 0 },
            since: WallTime::from_unix_nanos(1),
        };
        let text = "version 1;\nx a;\nz;\n";
        let kept = Kept { lock, edited: Some(Tree::parse("t", text).unwrap()) };
        let bytes = kept.encode(Some(text), Some(&stored()));
        assert!(bytes.ends_with(b"\nz;\n") && !bytes.ends_with(b"x a;\nz;\n"));
        let file = || KeptFile::decode(&bytes).unwrap();
        assert_eq!(file().restore("version"), Err("they are of another text".to_owned()));
        assert!(file().restore("version 1;\nx ä;\ny b;\n").is_err());
    }

    proptest! {
        #[test]
        fn what_is_kept_is_read_back(kept in kept()) {
            let text = kept.edited.as_ref().map(Tree::text);
            for stored in [None, Some(stored())] {
                let file = KeptFile::decode(&kept.encode(text.as_deref(), stored.as_ref())).unwrap();
                let of = stored.as_ref().filter(|_| text.is_some()).map(|stored| stored.number);
                prop_assert_eq!(file.of(), of);
                let base = stored.as_ref().map_or("", |stored| &stored.text);
                prop_assert_eq!(file.restore(base), Ok(kept.clone()));
            }
        }

        #[test]
        fn torn_files_are_noticed(kept in kept(), at: prop::sample::Index) {
            let text = kept.edited.as_ref().map(Tree::text);
            let bytes = kept.encode(text.as_deref(), Some(&stored()));
            let at = at.index(bytes.len());
            prop_assert!(KeptFile::decode(&bytes[..at]).is_err());
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            prop_assert!(KeptFile::decode(&zeroed).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), line in "# weft candidate\n(# (uid|user|sha256|session|edited|edited 3) [0-9a-z]{0,4}\n){0,4}") {
            let _ = KeptFile::decode(&bytes);
            let _ = KeptFile::decode(line.as_bytes());
        }
    }
}
