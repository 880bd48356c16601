//! The lines in which one text differs from another: what is kept of a long configuration of which
//! little was edited.

use std::ops::Range;

/// How many bytes are compared at a time.
const PIECE: usize = 4096;

/// The lines of `base`, as a range of bytes, in the place of which `text` has the lines that are
/// returned. All before and behind is the same in both.
pub(crate) fn excerpt<'t>(base: &str, text: &'t str) -> (Range<usize>, &'t str) {
    let (old, new) = (base.as_bytes(), text.as_bytes());
    let pieces = old.chunks(PIECE).zip(new.chunks(PIECE));
    let begin =
        common(pieces, |(old, new)| old.iter().zip(*new).take_while(|(a, b)| a == b).count());
    // A line ends behind its `\n`, which is part of no other character.
    let line = |end: &u8| *end == b'\n';
    let begin = new[..begin].iter().rposition(line).map_or(0, |end| end + 1);
    let (old, new) = (&old[begin..], &new[begin..]);
    let pieces = old.rchunks(PIECE).zip(new.rchunks(PIECE));
    let end = common(pieces, |(old, new)| {
        old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    let begins = |text: &[u8]| text[..text.len() - end].last().is_none_or(line);
    let end = match begins(old) && begins(new) {
        true => end,
        // The first line of what is the same is the end of another one.
        false => new[new.len() - end..].iter().position(line).map_or(0, |first| end - first - 1),
    };
    (begin..begin + old.len() - end, &text[begin..begin + new.len() - end])
}

/// How many bytes are the same in pairs of pieces, up to the first that differ.
fn common<'b>(
    pieces: impl Iterator<Item = (&'b [u8], &'b [u8])>,
    count: impl Fn(&(&'b [u8], &'b [u8])) -> usize,
) -> usize {
    let mut same = 0;
    for piece in pieces {
        if piece.0 != piece.1 {
            return same + count(&piece);
        }
        same += piece.0.len();
    }
    same
}

/// The text that has `lines` in the place of `range`; `None` if there is no such range in `base`.
pub(crate) fn restore(base: &str, range: Range<usize>, lines: &str) -> Option<String> {
    Some([base.get(..range.start)?, lines, base.get(range.end..)?].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_the_lines_that_differ_are_taken() {
        assert_eq!(excerpt("a\nb\nc\n", "a\nx\nc\n"), (2..4, "x\n"));
        assert_eq!(excerpt("ab\nac\n", "ab\nad\n"), (3..6, "ad\n"));
        assert_eq!(excerpt("a\nc\n", "a\nb\nc\n"), (2..2, "b\n"));
        assert_eq!(excerpt("a\nb\nb\nc\n", "a\nb\nc\n"), (4..6, ""));
        assert_eq!(excerpt("xa\n", "a\n"), (0..3, "a\n"));
        assert_eq!(excerpt("", "a\n"), (0..0, "a\n"));
        assert_eq!(excerpt("a\n", "a\n"), (2..2, ""));
    }

    proptest! {
        #[test]
        fn texts_are_restored(
            lines in prop::collection::vec("[aä]{0,3}", 0..8),
            others in prop::collection::vec("[aä]{0,3}", 0..8),
            long in prop::sample::select(vec![0, 3 * PIECE]),
        ) {
            let (front, back) = ("long\n".repeat(long / 4), "ende\n".repeat(long / 3));
            let text = |lines: &[String]| format!("{front}{}\n{back}", lines.join("\n"));
            let (base, text) = (text(&lines), text(&others));
            let (range, excerpt) = excerpt(&base, &text);
            prop_assert!(excerpt.len() <= text.len() - front.len() - back.len());
            prop_assert!(range.start == 0 || base[..range.start].ends_with('\n'));
            prop_assert!(range.end == 0 || base[..range.end].ends_with('\n'), "{range:?}");
            prop_assert_eq!(restore(&base, range, excerpt), Some(text));
        }
    }
}
