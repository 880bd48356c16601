//! Names of principals: the well-known ones and those of a principal map file.
//!
//! Reference: AltraMayor/xiaconf, `libxia` (principal map) and its default file
//! `/etc/xia/principals`.
//!
//! The file has one entry per line, a name and a number separated by blanks; `#` starts a comment,
//! blank lines are allowed. A bad line does not spoil the file: it is skipped and reported.
//!
//! ```text
//! # name   number
//! hid      0x11      # C notation
//! chat     4096      # or decimal
//! ```
//!
//! Rules for a name: printable ASCII, at most [`MAX_NAME_LEN`] characters, no `-`, not beginning
//! with `0x`, the same in upper and lower case. A name and a number may each occur once.
//!
//! The well-known principals need no file, and a file cannot give them other numbers.
//!
//! Deviation: names must not contain `:` nor begin with `!`, because both have a meaning in the
//! text of an address; and numbers with a leading zero are refused, because C reads them as octal
//! and people do not.

use std::collections::BTreeMap;

use crate::numbers::{MAX_NAME_LEN, well_known_name, well_known_type};
use crate::xid::XidType;

/// Names of principals in both directions: the well-known ones plus the loaded ones.
///
/// `Names::new()` costs nothing and knows the well-known principals, which is what `Display` and
/// `FromStr` of XIDs and addresses use.
///
/// ```
/// use weft_xip::{Names, XidType};
///
/// let mut names = Names::new();
/// let warnings = names.load("chat 0x1000\nbad-name 7\n");
/// assert_eq!(names.name_of(XidType(0x1000)), Some("chat"));
/// assert_eq!(names.type_of("HID"), Some(XidType::HID));
/// assert_eq!(warnings[0].line, 2);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Names {
    types: BTreeMap<String, XidType>,
    names: BTreeMap<XidType, String>,
}

/// Why a name or a number cannot enter the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The line has no number, or something after it.
    #[error("expected a name and a number, separated by blanks")]
    Fields,
    /// Empty or longer than [`MAX_NAME_LEN`].
    #[error("a name has 1 to {MAX_NAME_LEN} characters, this one has {len}")]
    NameLength {
        /// Characters of the name.
        len: usize,
    },
    /// A character that a name must not hold.
    #[error("a name must be printable ASCII without `-` and `:`, this one has `{}`", .found.escape_default())]
    NameCharacter {
        /// The first such character.
        found: char,
    },
    /// `0x` would be taken for a number, `!` for the mark of an invalid address.
    #[error("a name must not begin with `0x` or `!`")]
    NameStart,
    /// Neither decimal nor `0x` and hexadecimal digits, or above 32 bits.
    #[error(
        "the number must be decimal or `0x` and hexadecimal digits, without leading zeros, at most 0xffffffff"
    )]
    Number,
    /// The name has another number, or occurs twice.
    #[error("the name `{name}` is already taken by 0x{:x}", .kind.0)]
    NameTaken {
        /// The name, in lower case.
        name: String,
        /// The number it stands for.
        kind: XidType,
    },
    /// The number has another name.
    #[error("the number 0x{:x} is already named `{name}`", .kind.0)]
    NumberTaken {
        /// The number.
        kind: XidType,
        /// The name it has.
        name: String,
    },
}

/// A line of a principal map file that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {error}; the line is skipped")]
pub struct MapWarning {
    /// Line number, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub error: NameError,
}

impl Names {
    /// The well-known principals alone.
    pub const fn new() -> Names {
        Names { types: BTreeMap::new(), names: BTreeMap::new() }
    }

    /// The number of a principal; upper and lower case are the same.
    pub fn type_of(&self, name: &str) -> Option<XidType> {
        well_known_type(name)
            .or_else(|| self.types.get(name.to_ascii_lowercase().as_str()).copied())
    }

    /// The name of a principal, in lower case.
    pub fn name_of(&self, kind: XidType) -> Option<&str> {
        well_known_name(kind).or_else(|| self.names.get(&kind).map(String::as_str))
    }

    /// Adds the entries of a principal map file; returns the lines that were skipped.
    ///
    /// Well-known principals may be listed with the number they have anyway.
    pub fn load(&mut self, text: &str) -> Vec<MapWarning> {
        let mut warnings = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if let Err(error) = self.load_line(line) {
                warnings.push(MapWarning { line: index + 1, error });
            }
        }
        warnings
    }

    /// Adds one name.
    pub fn insert(&mut self, name: &str, kind: XidType) -> Result<(), NameError> {
        check_name(name)?;
        let name = name.to_ascii_lowercase();
        if well_known_type(&name) != Some(kind) {
            self.check_free(&name, kind)?;
        } else if self.types.contains_key(&name) {
            return Err(NameError::NameTaken { name, kind });
        }
        self.names.insert(kind, name.clone());
        self.types.insert(name, kind);
        Ok(())
    }

    fn check_free(&self, name: &str, kind: XidType) -> Result<(), NameError> {
        if let Some(kind) = self.type_of(name) {
            return Err(NameError::NameTaken { name: name.to_owned(), kind });
        }
        if let Some(name) = self.name_of(kind) {
            return Err(NameError::NumberTaken { kind, name: name.to_owned() });
        }
        Ok(())
    }

    fn load_line(&mut self, line: &str) -> Result<(), NameError> {
        let content = line.split('#').next().unwrap_or_default();
        let mut fields = content.split_ascii_whitespace();
        let Some(name) = fields.next() else { return Ok(()) };
        let (Some(number), None) = (fields.next(), fields.next()) else {
            return Err(NameError::Fields);
        };
        self.insert(name, parse_number(number)?)
    }
}

fn check_name(name: &str) -> Result<(), NameError> {
    let len = name.chars().count();
    if len == 0 || len > MAX_NAME_LEN {
        return Err(NameError::NameLength { len });
    }
    let allowed = |c: char| c.is_ascii_graphic() && c != '-' && c != ':';
    if let Some(found) = name.chars().find(|c| !allowed(*c)) {
        return Err(NameError::NameCharacter { found });
    }
    if name.starts_with('!') || name.starts_with("0x") || name.starts_with("0X") {
        return Err(NameError::NameStart);
    }
    Ok(())
}

fn parse_number(text: &str) -> Result<XidType, NameError> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hexadecimal.map_or((text, 10), |digits| (digits, 16));
    let octal = radix == 10 && digits.len() > 1 && digits.starts_with('0');
    if octal || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(NameError::Number);
    }
    u32::from_str_radix(digits, radix).map(XidType).map_err(|_| NameError::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: XidType = XidType(0x1000);

    #[test]
    fn a_file_gives_names_and_numbers() {
        let mut names = Names::new();
        let text = "# principals\n\n hid\t0x11 # well known\nChat 0X1000\nlamp 4097\r\nnat 0";
        assert_eq!(names.load(text), []);
        assert_eq!(names.type_of("cHAT"), Some(CHAT));
        assert_eq!(names.name_of(CHAT), Some("chat"));
        assert_eq!(names.type_of("lamp"), Some(XidType(0x1001)));
        assert_eq!(names.type_of("hid"), Some(XidType::HID));
        assert_eq!(names.type_of("foo"), None);
    }

    #[test]
    fn bad_lines_are_skipped_and_the_others_count() {
        let long = "n".repeat(40);
        let text = format!(
            "first 1\nalone\nthree 3 4\nwith-dash 5\n0xname 6\n{long} 7\nümlaut 8\n\
             word seven\nbig 0x100000000\noctal 010\nplus +9\nempty 0x\n!mark 10\na:b 11\nlast 12"
        );
        let mut names = Names::new();
        let errors: Vec<(usize, NameError)> =
            names.load(&text).into_iter().map(|warning| (warning.line, warning.error)).collect();
        let expected = [
            (2, NameError::Fields),
            (3, NameError::Fields),
            (4, NameError::NameCharacter { found: '-' }),
            (5, NameError::NameStart),
            (6, NameError::NameLength { len: 40 }),
            (7, NameError::NameCharacter { found: 'ü' }),
            (8, NameError::Number),
            (9, NameError::Number),
            (10, NameError::Number),
            (11, NameError::Number),
            (12, NameError::Number),
            (13, NameError::NameStart),
            (14, NameError::NameCharacter { found: ':' }),
        ];
        assert_eq!(errors, expected);
        assert_eq!(names.type_of("first"), Some(XidType(1)));
        assert_eq!(names.type_of("last"), Some(XidType(12)));
        assert_eq!(names.types.len(), 2);
    }

    #[test]
    fn a_name_of_31_characters_is_the_longest() {
        let mut names = Names::new();
        assert_eq!(names.insert(&"n".repeat(31), CHAT), Ok(()));
        let error = NameError::NameLength { len: 32 };
        assert_eq!(names.insert(&"n".repeat(32), XidType(2)), Err(error));
        assert_eq!(names.insert("", XidType(2)), Err(NameError::NameLength { len: 0 }));
    }

    #[test]
    fn names_and_numbers_are_unique() {
        let taken = |name: &str, kind| NameError::NameTaken { name: name.into(), kind };
        let mut names = Names::new();
        names.insert("chat", CHAT).unwrap();
        assert_eq!(names.insert("CHAT", XidType(2)), Err(taken("chat", CHAT)));
        assert_eq!(names.insert("chat", CHAT), Err(taken("chat", CHAT)));
        let error = NameError::NumberTaken { kind: CHAT, name: "chat".into() };
        assert_eq!(names.insert("talk", CHAT), Err(error));
        assert_eq!(names.insert("hid", XidType(2)), Err(taken("hid", XidType::HID)));
        let error = NameError::NumberTaken { kind: XidType::HID, name: "hid".into() };
        assert_eq!(names.insert("host", XidType::HID), Err(error));
        assert_eq!(names.insert("hid", XidType::HID), Ok(()));
        assert_eq!(names.insert("hid", XidType::HID), Err(taken("hid", XidType::HID)));
    }

    /// The entries of `etc-production/xia/principals` of AltraMayor/xiaconf.
    #[test]
    fn the_map_file_of_xiaconf_agrees_but_for_an_old_number() {
        let mut names = Names::new();
        let warnings = names.load(
            "nat 0x00\nad 0x10\nhid 0x11\ncid 0x12\nsid 0x13\nunited4id 0x14\ni4id 0x15\n\
             u4id 0x16\nxdp 0x17\nserval 0x18\nflowid 0x19\nzf 0x20\nlpm 0x21\nether 0x22\n",
        );
        let error = NameError::NameTaken { name: "ether".into(), kind: XidType::ETHER };
        assert_eq!(warnings, [MapWarning { line: 14, error }]);
        assert_eq!(names.name_of(XidType::UNI4ID), Some("uni4id"));
        assert_eq!(names.type_of("united4id"), Some(XidType::UNI4ID));
    }

    #[test]
    fn a_warning_names_the_line_and_the_reason() {
        let warnings = Names::new().load("\nhid 0x12");
        let text = "line 2: the name `hid` is already taken by 0x11; the line is skipped";
        assert_eq!(warnings[0].to_string(), text);
    }

    #[test]
    fn what_a_file_names_can_be_read_back_as_text() {
        let mut names = Names::new();
        names.load("a!b 1\n~ 2\n0 3\nx 4\nname_with.dots/and(signs) 5");
        for (name, kind) in &names.types {
            let text = format!("{name}-{}", "00".repeat(20));
            assert_eq!(names.parse_xid(&text).unwrap().kind, *kind, "{text}");
        }
        assert_eq!(names.types.len(), 5);
    }
}
