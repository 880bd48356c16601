//! A configuration in a file with what is to be known about it: comments at its beginning, one statement
//! in each line, and the last of them is the SHA-256 of everything else.

use std::fmt::Write;

use sha2::{Digest, Sha256};
use weft_config::Statement;

/// No head of a file is longer, in bytes: a character takes at most ten.
pub(crate) const MAX_HEAD: usize = 8 << 10;
/// What the first line of each file begins with.
const MARK: &str = "weft";

/// Why a file does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("its first line is not that of such a file")]
    Kind,
    #[error("its head cannot be read")]
    Head,
    #[error("its content is not the one that was written")]
    Digest,
}

/// The content of a file: `weft FIRST…`, the lines that follow, and the text.
pub(crate) fn seal(
    first: Statement,
    lines: impl IntoIterator<Item = Statement>,
    text: &str,
) -> Vec<u8> {
    let mut head = String::new();
    let mut line = |mark: &str, statement: Statement| {
        let text = statement.to_string();
        // Writing to a string cannot fail.
        let _ = writeln!(head, "# {mark}{}", text.trim_end().trim_end_matches(';'));
    };
    line("weft ", first);
    lines.into_iter().for_each(|statement| line("", statement));
    let digest = digest(&head, text);
    [head.as_str(), "# sha256 ", &digest, "\n", text].concat().into_bytes()
}

/// The head of a file.
#[derive(Debug)]
pub(crate) struct Head<'b> {
    /// Its lines, without the mark and the digest.
    pub(crate) lines: Vec<Statement>,
    /// All its lines but the last.
    text: &'b str,
    digest: String,
    /// Where the configuration begins.
    text_at: usize,
}

impl<'b> Head<'b> {
    /// Reads the head of a file of this kind; `bytes` may be cut behind it.
    pub(crate) fn read(kind: &str, bytes: &'b [u8]) -> Result<Self, Damage> {
        let mut lines = Vec::new();
        let mut at = 0;
        loop {
            let rest = bytes.get(at..bytes.len().min(MAX_HEAD)).unwrap_or_default();
            let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Damage::Head)?;
            let line = std::str::from_utf8(&rest[..end]).map_err(|_| Damage::Head)?;
            let statement = line.strip_prefix("# ").ok_or(Damage::Head)?;
            let statement = match at {
                0 => statement.strip_prefix(MARK).ok_or(Damage::Kind)?,
                _ => statement,
            };
            let statement = Statement::parse_one(statement).map_err(|_| Damage::Head)?;
            if at == 0 && statement.keyword() != kind {
                return Err(Damage::Kind);
            }
            if let [mark, digest] = statement.words()
                && mark.text() == "sha256"
            {
                let text = std::str::from_utf8(&bytes[..at]).map_err(|_| Damage::Head)?;
                let (digest, text_at) = (digest.text().to_owned(), at + end + 1);
                return Ok(Self { lines, text, digest, text_at });
            }
            lines.push(statement);
            at += end + 1;
        }
    }

    /// The configuration in the file, if it is whole.
    pub(crate) fn text(&self, bytes: &'b [u8]) -> Result<&'b str, Damage> {
        let text = bytes.get(self.text_at..).unwrap_or_default();
        let text = std::str::from_utf8(text).map_err(|_| Damage::Digest)?;
        match digest(self.text, text) == self.digest {
            true => Ok(text),
            false => Err(Damage::Digest),
        }
    }
}

fn digest(head: &str, text: &str) -> String {
    let digest = Sha256::new().chain_update(head).chain_update(text).finalize();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The words of a line.
pub(crate) fn words(line: &Statement) -> Vec<&str> {
    line.words().iter().map(|word| word.text()).collect()
}

/// No more of a text than there is room for.
pub(crate) fn shortened(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}
