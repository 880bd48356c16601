//! Percent-encoding. Reference: RFC 3986 §2.1.

use super::TextError;

/// Whether a byte stands for itself in a value.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/@!*$".contains(&byte)
}

/// Writes bytes so that no separator is among them.
pub(super) fn escape(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Reads escaped bytes that stand at `at` in the XRL. Bytes that are not ASCII stand for themselves.
pub(super) fn unescape(text: &str, at: usize) -> Result<Vec<u8>, TextError> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = 0;
    while let Some(&byte) = bytes.get(index) {
        if byte != b'%' {
            if byte.is_ascii_control() || byte == b' ' {
                return Err(TextError::at(
                    at + index,
                    "a blank or control character; write %20 for a blank",
                ));
            }
            out.push(byte);
            index += 1;
            continue;
        }
        let digits = text.get(index + 1..index + 3);
        let value = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .ok_or_else(|| TextError::at(at + index, "two hexadecimal digits must follow `%`"))?;
        out.push(value);
        index += 3;
    }
    Ok(out)
}
