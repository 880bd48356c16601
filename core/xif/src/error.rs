//! What is wrong with an interface file, and where.

/// A mistake in an interface file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {text}")]
pub struct XifError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub text: String,
}

impl XifError {
    /// A mistake at a byte offset of `source`.
    pub(crate) fn at(source: &str, offset: usize, text: impl Into<String>) -> Self {
        let before = source.get(..offset).unwrap_or(source);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
            text: text.into(),
        }
    }
}
