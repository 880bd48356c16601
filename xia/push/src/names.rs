//! File names made from what a sender calls its object.
//!
//! The name in an announce was chosen by somebody else: it must not lead out of the directory, hide
//! the file, confuse a terminal, or be longer than file systems take.

use crate::wire::cut;

/// Longest file name made here, in octets; file systems take 255, and a number may be added.
const MAX_FILE_NAME: usize = 200;

/// A harmless file name for `name`.
///
/// Separators, control characters and marks that change the direction of text become `_`; so do dots,
/// dashes and blanks at the start. A name of which nothing is left becomes `unnamed`.
#[must_use]
pub fn sanitised(name: &str) -> String {
    let mut clean: String =
        name.chars().map(|char| if is_harmless(char) { char } else { '_' }).collect();
    let start = clean.len() - clean.trim_start_matches(['.', '-', ' ']).len();
    clean.replace_range(..start, &"_".repeat(start));
    let clean = cut(&clean, MAX_FILE_NAME).trim_end();
    if clean.chars().all(|char| char == '_') { "unnamed".to_owned() } else { clean.to_owned() }
}

fn is_harmless(char: char) -> bool {
    let direction_mark =
        matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let line_end = matches!(char, '\u{2028}' | '\u{2029}');
    !(char.is_control() || direction_mark || line_end || matches!(char, '/' | '\\'))
}

/// The `number`-th alternative for `name`: itself for zero, then `name-1.ext`, `name-2.ext`, …
#[must_use]
pub(crate) fn numbered(name: &str, number: u32) -> String {
    match (number, name.rsplit_once('.')) {
        (0, _) => name.to_owned(),
        (_, Some((stem, extension))) if !stem.is_empty() => format!("{stem}-{number}.{extension}"),
        _ => format!("{name}-{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bad_names_become_harmless() {
        for (name, expected) in [
            ("weft", "weft"),
            ("Käse 2.txt", "Käse 2.txt"),
            ("../../etc/passwd", "___.._etc_passwd"),
            ("..", "unnamed"),
            ("", "unnamed"),
            ("\\ ", "unnamed"),
            (&("/".repeat(MAX_FILE_NAME) + "passwd"), "unnamed"),
            (".bashrc", "_bashrc"),
            ("-rf", "_rf"),
            ("a\0b\nc\u{202e}d\\e", "a_b_c_d_e"),
        ] {
            assert_eq!(sanitised(name), expected, "{name:?}");
        }
    }

    #[test]
    fn numbers_go_before_the_extension() {
        assert_eq!(numbered("a.tar", 0), "a.tar");
        assert_eq!(numbered("a.tar", 2), "a-2.tar");
        assert_eq!(numbered("weft", 1), "weft-1");
    }

    proptest! {
        #[test]
        fn any_name_stays_in_its_directory(name in any::<String>()) {
            let clean = sanitised(&name);
            prop_assert!(!clean.is_empty() && clean.len() <= MAX_FILE_NAME);
            prop_assert!(!clean.starts_with(['.', '-', ' ']));
            prop_assert!(!clean.chars().any(|char| char == '/' || char == '\\' || char.is_control()));
            prop_assert_eq!(sanitised(&clean), clean);
        }
    }
}
