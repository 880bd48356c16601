//! What the commands of `weft xip` take: identifiers, XIDs, hardware addresses, and the lines of a batch.

use weft_wire::MacAddr;
use weft_xip::xid::ID_LEN;
use weft_xip::{Names, Xid, XidType};

use super::Failure;

/// The words, if there are as many as a command takes.
pub(super) fn exactly<'a, const N: usize>(words: &[&'a str]) -> Result<[&'a str; N], Failure> {
    words.try_into().map_err(|_| Failure::Usage("Wrong number of parameters".to_owned(), ""))
}

/// A word that must stand in its place.
pub(super) fn expect(found: &str, word: &str) -> Result<(), Failure> {
    if found == word {
        return Ok(());
    }
    Err(Failure::Usage(format!("Wrong parameters: \"{word}\" should stand for \"{found}\""), ""))
}

/// An identifier of 40 hexadecimal digits.
pub(super) fn identifier(kind: XidType, word: &str) -> Result<Xid, Failure> {
    let wrong = || Failure::Wrong(format!("Invalid ID '{word}': it has 40 hexadecimal digits"));
    let digits: Option<Vec<u8>> =
        word.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.ok_or_else(wrong)?;
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let id: [u8; ID_LEN] = bytes.try_into().map_err(|_| wrong())?;
    if digits.len() == 2 * ID_LEN { Ok(Xid::new(kind, id)) } else { Err(wrong()) }
}

/// A whole XID.
pub(super) fn xid(names: &Names, word: &str) -> Result<Xid, Failure> {
    let wrong = |error| Failure::Wrong(format!("Invalid XID '{word}': {error}"));
    names.parse_xid(word).map_err(wrong)
}

/// A hardware address: bytes of one or two digits.
pub(super) fn hardware_address(word: &str) -> Result<MacAddr, Failure> {
    let wrong = || Failure::Wrong(format!("Invalid link layer address: '{word}'"));
    let is_byte = |byte: &str| {
        matches!(byte.len(), 1 | 2) && byte.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    let byte = |byte: &str| is_byte(byte).then(|| u8::from_str_radix(byte, 16).ok()).flatten();
    let bytes: Option<Vec<u8>> = word.split(':').map(byte).collect();
    let bytes: [u8; 6] = bytes.ok_or_else(wrong)?.try_into().map_err(|_| wrong())?;
    Ok(MacAddr(bytes))
}

/// A number, hexadecimal behind `0x`.
pub(super) fn number(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The lines of a batch that hold a command, with their numbers, counted from 1: `#` begins a comment, and a line
/// goes on behind a backslash at its end. Such a one has the number of its last line.
pub(super) fn batch_lines(text: &str) -> Vec<(usize, String)> {
    let (mut lines, mut begun) = (Vec::new(), String::new());
    for (index, line) in text.lines().enumerate() {
        let (line, is_cut) = match line.split_once('#') {
            Some((line, _)) => (line, true),
            None => (line, false),
        };
        match line.strip_suffix('\\').filter(|_| !is_cut) {
            Some(part) => begun.push_str(part),
            None => {
                let whole = std::mem::take(&mut begun) + line;
                lines.push((index + 1, whole));
            }
        }
    }
    if !begun.is_empty() {
        lines.push((text.lines().count(), begun));
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_forty_digits_of_either_case() {
        let id = "ABcdef0123456789012345678901234567890123";
        let read = identifier(XidType::AD, id).unwrap();
        assert_eq!(read.to_string(), format!("ad-{}", id.to_lowercase()));
        for wrong in ["", "12", &id[1..], &format!("{id}0"), &format!("{}g", &id[1..]), "ad-12"] {
            assert!(identifier(XidType::AD, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hardware_addresses_may_leave_out_zeros() {
        assert_eq!(hardware_address("2:0:0:0:a:FF"), Ok(MacAddr([2, 0, 0, 0, 10, 255])));
        for wrong in ["", "02:00:00:00:00", "02:00:00:00:00:001", "02:00:00:00:00:+1", "x"] {
            assert!(hardware_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(
            ["10", "0x35d5", "", "x", "-1"].map(number),
            [Some(10), Some(0x35d5), None, None, None]
        );
    }

    #[test]
    fn batches_have_comments_and_long_lines() {
        let text = "# nothing\n\nad show locals # all\nad \\\naddlocal \\\n1\n   \nlast \\";
        let lines = batch_lines(text);
        let expected = [(3, "ad show locals "), (6, "ad addlocal 1"), (8, "last ")];
        assert_eq!(lines, expected.map(|(number, line)| (number, line.to_owned())));
    }
}
