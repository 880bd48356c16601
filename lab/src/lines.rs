//! Looking for a text in lines that come in pieces.

/// How much of a line is kept; what is longer is looked at in pieces of this size.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// What stands behind the last line end of an output.
#[derive(Debug, Default)]
pub(crate) struct PartialLine(Vec<u8>);

impl PartialLine {
    /// Takes the next piece of the output; whether one of the lines that it ends or continues contains
    /// `text`.
    pub(crate) fn extend(&mut self, piece: &[u8], text: &str) -> bool {
        self.0.extend_from_slice(piece);
        let found = contains(&self.0, text);
        match self.0.iter().rposition(|byte| *byte == b'\n') {
            Some(end) => drop(self.0.drain(..=end)),
            None if self.0.len() > LONGEST_LINE => self.0.clear(),
            None => {}
        }
        found
    }
}

/// Whether one of the lines contains the text.
fn contains(lines: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(lines).lines().any(|line| line.contains(text))
}

/// Up to three lines at the end of a text.
pub(crate) fn last_lines(text: &str) -> String {
    let mut lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.drain(..lines.len().saturating_sub(3));
    lines.join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_within_lines_only() {
        let mut line = PartialLine::default();
        assert!(!line.extend(b"now rea", "ready"));
        assert!(line.extend(b"dy", "ready"), "also before the line is ended");
        assert!(!line.extend(b"\nrea\ndy\n", "ea\ndy"), "a text does not go over line ends");
        assert!(!line.extend(b"", "ready"), "what was before is forgotten");
    }

    #[test]
    fn lines_without_end_do_not_fill_the_memory() {
        let mut line = PartialLine::default();
        for _ in 0..5 * LONGEST_LINE / 1000 {
            assert!(!line.extend(&[b'x'; 1000], "ready"));
            assert!(line.0.len() <= LONGEST_LINE + 1000);
        }
    }
}
