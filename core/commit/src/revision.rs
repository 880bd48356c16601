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

use std::fmt::Write;

use sha2::{Digest, Sha256};
use weft_base::WallTime;
use weft_config::{FromWord, Statement};

/// The longest name of a user that is kept, in characters.
pub(crate) const MAX_USER: usize = 64;
/// The longest comment that is kept, in characters.
pub(crate) const MAX_COMMENT: usize = 512;
/// No head of a file is longer, in bytes: a character takes at most ten.
pub(crate) const MAX_HEAD: usize = 8 << 10;

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

/// Why a file holds no revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("its first line is not that of a revision")]
    NoRevision,
    #[error("its head cannot be read")]
    Head,
    #[error("its content is not the one that was written")]
    Digest,
}

impl Revision {
    /// The name of its file.
    pub(crate) fn file_name(&self) -> String {
        file_name(self.number)
    }

    /// The content of its file.
    pub(crate) fn encode(&self, text: &str) -> Vec<u8> {
        let mut head = String::new();
        let mut line = |statement: Statement| {
            let text = statement.to_string();
            // Writing to a string cannot fail.
            let _ = writeln!(head, "# {}", text.trim_end().trim_end_matches(';'));
        };
        line(Statement::new("weft").word("revision").word(&self.number));
        line(Statement::new("time").word(&self.time.as_unix_nanos()));
        line(Statement::new("user").word(shortened(&self.user, MAX_USER).as_str()));
        line(Statement::new("comment").word(shortened(&self.comment, MAX_COMMENT).as_str()));
        if let Some(Unconfirmed { until, back_to }) = &self.unconfirmed {
            line(Statement::new("confirm-by").word(&until.as_unix_nanos()));
            line(Statement::new("back-to").word(back_to));
        }
        let digest = digest(&head, text);
        [head.as_str(), "# sha256 ", &digest, "\n", text].concat().into_bytes()
    }

    /// What a file says of its revision; `bytes` may be cut behind its head.
    pub(crate) fn decode_head(bytes: &[u8]) -> Result<Self, Damage> {
        Head::read(bytes).map(|head| head.revision)
    }

    /// The revision in a file and the text of its configuration.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, String), Damage> {
        let head = Head::read(bytes)?;
        let text = std::str::from_utf8(&bytes[head.text_at..]).map_err(|_| Damage::Digest)?;
        if digest(head.text, text) != head.digest {
            return Err(Damage::Digest);
        }
        Ok((head.revision, text.to_owned()))
    }
}

/// The name of the file of a revision.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:010}.conf")
}

/// The number of the revision whose file is called so.
pub(crate) fn number_of(file_name: &str) -> Option<u64> {
    let number = u64::from_word(file_name.strip_suffix(".conf")?).ok()?;
    (self::file_name(number) == file_name && number > 0).then_some(number)
}

/// The head of a file.
struct Head<'b> {
    revision: Revision,
    /// All its lines but the last.
    text: &'b str,
    digest: String,
    /// Where the configuration begins.
    text_at: usize,
}

impl<'b> Head<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, Damage> {
        let mut revision = Revision {
            number: 0,
            time: WallTime::from_unix_nanos(0),
            user: String::new(),
            comment: String::new(),
            unconfirmed: None,
        };
        let mut at = 0;
        loop {
            let rest = bytes.get(at..bytes.len().min(MAX_HEAD)).unwrap_or_default();
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Damage::Head)?;
            let line = std::str::from_utf8(&rest[..end]).map_err(|_| Damage::Head)?;
            let statement = line.strip_prefix("# ").ok_or(Damage::Head)?;
            let statement = Statement::parse_one(statement).map_err(|_| Damage::Head)?;
            let words: Vec<&str> = statement.words().iter().map(|word| word.text()).collect();
            if at == 0 && words.get(..2) != Some(&["weft", "revision"]) {
                return Err(Damage::NoRevision);
            }
            if let ["sha256", digest] = words.as_slice() {
                let text = std::str::from_utf8(&bytes[..at]).map_err(|_| Damage::Head)?;
                let text_at = at + end + 1;
                return Ok(Self { revision, text, digest: (*digest).to_owned(), text_at });
            }
            revision.read(&words)?;
            at += end + 1;
        }
    }
}

impl Revision {
    /// Takes what a line of the head says.
    fn read(&mut self, words: &[&str]) -> Result<(), Damage> {
        let number = |word: &str| u64::from_word(word).map_err(|_| Damage::Head);
        let unconfirmed = Unconfirmed { until: WallTime::from_unix_nanos(0), back_to: 0 };
        match words {
            ["weft", "revision", n] => self.number = number(n)?,
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

fn digest(head: &str, text: &str) -> String {
    let digest = Sha256::new().chain_update(head).chain_update(text).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shortened(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
