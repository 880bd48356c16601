//! One numbered revision of the configuration, and the file that it is kept in.
//!
//! A file is a configuration in itself: what is to be known about the revision stands in comments at
//! its beginning, one statement in each line, and the last of them is the SHA-256 of everything else.
//!
//! ```text
//! # weft revision 12
//! # time 1795300200000000000          nanoseconds since 1970
//! # user alice
//! # comment "one more uplink"
//! # confirm-by 1795300800000000000    only if it has to be confirmed
//! # back-to 11                        what it falls back to if it is not
//! # sha256 9f86d081884c7d65…
//! version 1;
//! …
//! ```

use weft_base::WallTime;
use weft_config::{FromWord, Statement};

use crate::sealed::{Damage, Head, seal, shortened, words};

/// The word by which its file is known.
const KIND: &str = "revision";

/// The longest name of a user that is kept, in characters.
pub(crate) const MAX_USER: usize = 64;
/// The longest comment that is kept, in characters.
pub(crate) const MAX_COMMENT: usize = 512;

/// What is known of a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Counted from 1, never used twice.
    pub number: u64,
    /// When it was committed.
    pub time: WallTime,
    /// Who committed it.
    pub user: String,
    /// What for.
    pub comment: String,
    /// Whether it still has to be confirmed.
    pub unconfirmed: Option<Unconfirmed>,
}

/// A revision that falls back to another one if nobody confirms it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unconfirmed {
    /// Until when.
    pub until: WallTime,
    /// The revision to fall back to; 0 is the empty configuration.
    pub back_to: u64,
}

impl Revision {
    /// The name of its file.
    pub(crate) fn file_name(&self) -> String {
        file_name(self.number)
    }

    /// The content of its file.
    pub(crate) fn encode(&self, text: &str) -> Vec<u8> {
        let line = Statement::new;
        let mut lines = vec![
            line("time").word(&self.time.as_unix_nanos()),
            line("user").word(shortened(&self.user, MAX_USER).as_str()),
            line("comment").word(shortened(&self.comment, MAX_COMMENT).as_str()),
        ];
        if let Some(Unconfirmed { until, back_to }) = &self.unconfirmed {
            lines.push(line("confirm-by").word(&until.as_unix_nanos()));
            lines.push(line("back-to").word(back_to));
        }
        seal(line(KIND).word(&self.number), lines, text)
    }

    /// What a file says of its revision; `bytes` may be cut behind its head.
    pub(crate) fn decode_head(bytes: &[u8]) -> Result<Self, Damage> {
        Self::of(&Head::read(KIND, bytes)?)
    }

    /// The revision in a file and the text of its configuration.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, String), Damage> {
        let head = Head::read(KIND, bytes)?;
        let revision = Self::of(&head)?;
        Ok((revision, head.text(bytes)?.to_owned()))
    }

    fn of(head: &Head<'_>) -> Result<Self, Damage> {
        let mut revision = Revision {
            number: 0,
            time: WallTime::from_unix_nanos(0),
            user: String::new(),
            comment: String::new(),
            unconfirmed: None,
        };
        head.lines.iter().try_for_each(|line| revision.read(&words(line)))?;
        Ok(revision)
    }
}

/// The name of the file of a revision.
#[must_use]
pub fn file_name(number: u64) -> String {
    format!("{number:010}.conf")
}

/// The number of the revision whose file is called so.
pub(crate) fn number_of(file_name: &str) -> Option<u64> {
    let number = u64::from_word(file_name.strip_suffix(".conf")?).ok()?;
    (self::file_name(number) == file_name && number > 0).then_some(number)
}

impl Revision {
    /// Takes what a line of the head says.
    fn read(&mut self, words: &[&str]) -> Result<(), Damage> {
        let number = |word: &str| u64::from_word(word).map_err(|_| Damage::Head);
        let unconfirmed = Unconfirmed { until: WallTime::from_unix_nanos(0), back_to: 0 };
        match words {
            [KIND, n] => self.number = number(n)?,
            ["time", nanos] => self.time = WallTime::from_unix_nanos(number(nanos)?),
            ["user", user] => self.user = (*user).to_owned(),
            ["comment", comment] => self.comment = (*comment).to_owned(),
            ["confirm-by", nanos] => {
                let until = WallTime::from_unix_nanos(number(nanos)?);
                self.unconfirmed.get_or_insert(unconfirmed).until = until;
            }
            ["back-to", n] => self.unconfirmed.get_or_insert(unconfirmed).back_to = number(n)?,
            _ => return Err(Damage::Head),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sealed::MAX_HEAD;
    use proptest::prelude::*;

    fn revision() -> impl Strategy<Value = Revision> {
        let text = prop_oneof![".{0,40}", "[ -~\n\t\u{0}-\u{1f}\"]{0,40}"];
        let unconfirmed = prop::option::of((any::<u64>(), any::<u64>()));
        (1..=u64::MAX, any::<u64>(), text.clone(), text, unconfirmed).prop_map(
            |(number, time, user, comment, unconfirmed)| Revision {
                number,
                time: WallTime::from_unix_nanos(time),
                user,
                comment,
                unconfirmed: unconfirmed.map(|(until, back_to)| Unconfirmed {
                    until: WallTime::from_unix_nanos(until),
                    back_to,
                }),
            },
        )
    }

    proptest! {
        #[test]
        fn revisions_are_read_back(revision in revision(), text in "(.|\n){0,80}") {
            let bytes = revision.encode(&text);
            prop_assert_eq!(Revision::decode(&bytes).unwrap(), (revision.clone(), text));
            let cut = &bytes[..bytes.len().min(MAX_HEAD)];
            prop_assert_eq!(Revision::decode_head(cut).unwrap(), revision);
        }

        #[test]
        fn torn_files_are_noticed(revision in revision(), text in "[a-z \n]{0,80}", at: prop::sample::Index, bit in 0..8) {
            let bytes = revision.encode(&text);
            let at = at.index(bytes.len());
            prop_assert!(Revision::decode(&bytes[..at]).is_err());
            let mut flipped = bytes.clone();
            flipped[at] ^= 1u8 << bit;
            prop_assert!(Revision::decode(&flipped).is_err());
            let mut zeroed = bytes.clone();
            zeroed[at..].fill(0);
            prop_assert!(Revision::decode(&zeroed).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), line in "# weft revision 1\n(# (time|user|sha256|comment) [0-9a-z]{0,4}\n){0,4}") {
            let _ = Revision::decode(&bytes);
            let _ = Revision::decode(line.as_bytes());
        }
    }

    #[test]
    fn the_longest_head_fits_its_limit() {
        let revision = Revision {
            number: u64::MAX,
            time: WallTime::from_unix_nanos(u64::MAX),
            user: "\u{10ffff}\u{202e}".repeat(1000),
            comment: "\u{202e}".repeat(1000),
            unconfirmed: Some(Unconfirmed {
                until: WallTime::from_unix_nanos(u64::MAX),
                back_to: u64::MAX,
            }),
        };
        let bytes = revision.encode(&"x".repeat(2 * MAX_HEAD));
        let read = Revision::decode_head(&bytes[..MAX_HEAD]).unwrap();
        assert_eq!(read.comment.chars().count(), MAX_COMMENT);
        assert!(Revision::decode(&bytes).is_ok());
    }

    #[test]
    fn file_names_sort_as_their_numbers() {
        assert_eq!(file_name(12), "0000000012.conf");
        assert_eq!(number_of("0000000012.conf"), Some(12));
        assert_eq!(number_of(&file_name(u64::MAX)), Some(u64::MAX));
        for name in
            ["12.conf", "0000000012", "x.conf", "next", "0000000000.conf", "00000000001.conf"]
        {
            assert_eq!(number_of(name), None, "{name}");
        }
    }
}
