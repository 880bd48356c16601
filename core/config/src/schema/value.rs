//! The types that a schema may give to words: what each accepts, in which order, and how messages and
//! hints speak of it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use crate::error::ErrorKind;
use crate::source::shown;
use crate::suggest::{list, suggest};
use crate::value::{
    ByteSize, FromWord, InterfaceName, Ipv4Interface, Ipv4Prefix, Name, Probability, Rate,
    ValueError,
};

/// The type of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Switch,
    Number,
    Integer,
    Duration,
    Rate,
    Size,
    Probability,
    Address,
    Ipv4,
    Ipv6,
    Prefix,
    Ipv4Prefix,
    Ipv6Prefix,
    InterfaceAddress,
    Socket,
    Mac,
    Name,
    Interface,
    Path,
    Text,
    OneOf,
}

/// The words of a schema for the types. Aligned by hand with [`Type`].
pub(crate) const TYPES: &[(&str, Type)] = &[
    ("switch", Type::Switch),
    ("number", Type::Number),
    ("integer", Type::Integer),
    ("duration", Type::Duration),
    ("rate", Type::Rate),
    ("size", Type::Size),
    ("probability", Type::Probability),
    ("address", Type::Address),
    ("ipv4", Type::Ipv4),
    ("ipv6", Type::Ipv6),
    ("prefix", Type::Prefix),
    ("ipv4-prefix", Type::Ipv4Prefix),
    ("ipv6-prefix", Type::Ipv6Prefix),
    ("interface-address", Type::InterfaceAddress),
    ("socket", Type::Socket),
    ("mac", Type::Mac),
    ("name", Type::Name),
    ("interface", Type::Interface),
    ("path", Type::Path),
    ("text", Type::Text),
    ("one-of", Type::OneOf),
];

/// What a word of a statement may be.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) kind: Type,
    /// The least and the greatest accepted word, with what they measure.
    pub(crate) range: Option<[(String, i128); 2]>,
    /// The accepted words, if the type is [`Type::OneOf`].
    pub(crate) words: Vec<String>,
    /// What a word is that only the component can check, such as "an XIA address".
    pub(crate) form: Option<String>,
    /// An accepted word, if the type's own example would not do.
    pub(crate) example: Option<String>,
}

impl Value {
    pub(crate) fn new(kind: Type) -> Self {
        Self { kind, range: None, words: Vec::new(), form: None, example: None }
    }

    /// What is wrong with a word, if anything is.
    pub(crate) fn check(&self, text: &str) -> Result<(), ErrorKind> {
        let measured = match self.kind {
            Type::OneOf => return self.check_one_of(text),
            kind => kind.measure(text).map_err(|reason| self.bad(text, &reason))?,
        };
        let Some([least, greatest]) = &self.range else { return Ok(()) };
        match measured {
            Some(size) if !(least.1..=greatest.1).contains(&size) => Err(ErrorKind::OutOfRange {
                text: text.to_owned(),
                min: least.0.clone(),
                max: greatest.0.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn check_one_of(&self, text: &str) -> Result<(), ErrorKind> {
        if self.words.iter().any(|word| word == text) {
            return Ok(());
        }
        let words = self.words.iter().map(String::as_str);
        let advice = match suggest(text, words) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("write {}", list(&self.words)),
        };
        Err(ErrorKind::Meaning(format!("`{}` is not accepted here: {advice}", shown(text))))
    }

    fn bad(&self, text: &str, reason: &ValueError) -> ErrorKind {
        let example = match reason.names_a_word() {
            true => String::new(),
            false => format!("; write for example `{}`", self.example()),
        };
        let text = shown(text);
        ErrorKind::Meaning(format!("`{text}` is not {}: {reason}{example}", self.what()))
    }

    /// What the word is, with article.
    pub(crate) fn what(&self) -> &str {
        match &self.form {
            Some(form) => form,
            None if self.kind == Type::OneOf => "a word",
            None => self.kind.about().0,
        }
    }

    /// An accepted word.
    pub(crate) fn example(&self) -> &str {
        let own = self.example.as_deref().or(self.words.first().map(String::as_str));
        let least = self.range.as_ref().map(|[least, _]| least.0.as_str());
        own.or(least).unwrap_or(self.kind.about().1)
    }

    /// What may be written, in short: `<duration>`, `<1..16>`, `on|off`.
    pub(crate) fn hint(&self) -> String {
        match (&self.range, self.kind) {
            (Some([least, greatest]), _) => format!("<{}..{}>", least.0, greatest.0),
            (None, Type::OneOf) => self.words.join("|"),
            (None, kind) => format!("<{}>", kind.word()),
        }
    }

    /// The accepted words, if they can be told one by one.
    pub(crate) fn all(&self) -> Vec<&str> {
        match self.kind {
            Type::Switch => vec!["on", "off"],
            _ => self.words.iter().map(String::as_str).collect(),
        }
    }
}

impl Type {
    /// The word of a schema for it.
    pub(crate) fn word(self) -> &'static str {
        TYPES.iter().find(|(_, kind)| *kind == self).map_or("word", |(word, _)| word)
    }

    /// Whether a range makes sense.
    pub(crate) fn is_measured(self) -> bool {
        matches!(self.measure(self.about().1), Ok(Some(_)))
    }

    /// What it is, with article, and an accepted word.
    fn about(self) -> (&'static str, &'static str) {
        fn of<T: FromWord>() -> (&'static str, &'static str) {
            (T::WHAT, T::EXAMPLE)
        }
        match self {
            Self::Switch => of::<bool>(),
            Self::Number => of::<u64>(),
            Self::Integer => ("a whole number, which may be negative", "-7"),
            Self::Duration => of::<Duration>(),
            Self::Rate => of::<Rate>(),
            Self::Size => of::<ByteSize>(),
            Self::Probability => of::<Probability>(),
            Self::Address => ("an IP address", "10.0.1.1"),
            Self::Ipv4 => of::<Ipv4Addr>(),
            Self::Ipv6 => ("an IPv6 address", "2001:db8::1"),
            Self::Prefix => ("an IP prefix", "10.0.1.0/24"),
            Self::Ipv4Prefix => of::<Ipv4Prefix>(),
            Self::Ipv6Prefix => ("an IPv6 prefix", "2001:db8::/32"),
            Self::InterfaceAddress => ("an IP address with prefix length", "10.0.1.1/24"),
            Self::Socket => ("an IP address with port", "10.0.1.1:13781"),
            Self::Mac => ("a hardware address", "02:00:00:00:00:01"),
            Self::Name => of::<Name>(),
            Self::Interface => of::<InterfaceName>(),
            Self::Path => ("the path of a file", "/etc/weft/node.key"),
            Self::Text | Self::OneOf => of::<String>(),
        }
    }

    /// How much a word says, for types that have an order.
    pub(crate) fn measure(self, text: &str) -> Result<Option<i128>, ValueError> {
        fn reads<T: FromWord>(text: &str) -> Result<Option<i128>, ValueError> {
            T::from_word(text).map(|_| None)
        }
        fn parses<T: std::str::FromStr>(
            text: &str,
            form: &'static str,
        ) -> Result<Option<i128>, ValueError> {
            text.parse::<T>().map(|_| None).map_err(|_| ValueError::Form(form))
        }
        match self {
            Self::Switch => reads::<bool>(text),
            Self::Number => u64::from_word(text).map(|n| Some(n.into())),
            Self::Integer => i64::from_word(text).map(|n| Some(n.into())),
            Self::Duration => {
                Duration::from_word(text).map(|time| i128::try_from(time.as_nanos()).ok())
            }
            Self::Rate => Rate::from_word(text).map(|rate| Some(rate.bits_per_second().into())),
            Self::Size => ByteSize::from_word(text).map(|size| Some(size.bytes().into())),
            Self::Probability => {
                Probability::from_word(text).map(|p| Some(p.parts_per_billion().into()))
            }
            Self::Address => parses::<IpAddr>(text, "an IPv4 or an IPv6 address"),
            Self::Ipv4 => reads::<Ipv4Addr>(text),
            Self::Ipv6 => parses::<Ipv6Addr>(text, "groups of hexadecimal digits with `:` between"),
            Self::Prefix if text.contains(':') => ipv6_prefix(text),
            Self::Prefix | Self::Ipv4Prefix => reads::<Ipv4Prefix>(text),
            Self::Ipv6Prefix => ipv6_prefix(text),
            Self::InterfaceAddress if text.contains(':') => with_length(text).map(|_| None),
            Self::InterfaceAddress => reads::<Ipv4Interface>(text),
            Self::Socket => parses::<SocketAddr>(text, "ADDRESS:PORT"),
            Self::Mac => mac(text),
            Self::Name => reads::<Name>(text),
            Self::Interface => reads::<InterfaceName>(text),
            Self::Path => path(text),
            Self::Text | Self::OneOf => Ok(None),
        }
    }
}

/// `2001:db8::1/64`.
fn with_length(text: &str) -> Result<(Ipv6Addr, u32), ValueError> {
    let form = || ValueError::Form("ADDRESS/LENGTH with a length of 0 to 128");
    let (address, length) = text.split_once('/').ok_or_else(form)?;
    let length = u8::from_word(length).ok().filter(|length| *length <= 128).ok_or_else(form)?;
    Ok((address.parse().map_err(|_| form())?, length.into()))
}

fn ipv6_prefix(text: &str) -> Result<Option<i128>, ValueError> {
    let (address, length) = with_length(text)?;
    let host = u128::MAX.checked_shr(length).unwrap_or(0);
    if address.to_bits() & host == 0 {
        return Ok(None);
    }
    let network = Ipv6Addr::from_bits(address.to_bits() & !host);
    Err(ValueError::Other(format!("it has host bits, its network is `{network}/{length}`")))
}

fn mac(text: &str) -> Result<Option<i128>, ValueError> {
    let is_byte = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() == 6 && parts.into_iter().all(is_byte) {
        Ok(None)
    } else {
        Err(ValueError::Form("six bytes of two hexadecimal digits with `:` between"))
    }
}

fn path(text: &str) -> Result<Option<i128>, ValueError> {
    if text.is_empty() || text.contains('\0') {
        Err(ValueError::Form("the name of a file"))
    } else {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(kind: Type, text: &str) -> Option<String> {
        Value::new(kind).check(text).err().map(|kind| kind.to_string())
    }

    #[test]
    fn the_example_of_every_type_is_accepted_and_a_control_character_by_text_alone() {
        for (word, kind) in TYPES.iter().filter(|(_, kind)| *kind != Type::OneOf) {
            let value = Value::new(*kind);
            assert_eq!(value.check(value.example()), Ok(()), "{word}");
            let refused = value.check("\0").is_err();
            assert_eq!(refused, *kind != Type::Text, "{word}");
            assert_eq!(kind.word(), *word);
        }
    }

    #[test]
    fn addresses_of_both_families_are_told_apart() {
        for (kind, good, bad) in [
            (Type::Address, ["10.0.0.1", "::1"], "10.0.0.1/8"),
            (Type::Prefix, ["10.0.0.0/8", "2001:db8::/32"], "2001:db8::1/32"),
            (Type::InterfaceAddress, ["10.0.0.1/8", "fe80::1/64"], "fe80::1/129"),
            (Type::Socket, ["10.0.0.1:80", "[::1]:80"], "10.0.0.1"),
        ] {
            for text in good {
                assert_eq!(problem(kind, text), None);
            }
            assert!(problem(kind, bad).is_some(), "{bad}");
        }
        assert_eq!(
            problem(Type::Ipv6Prefix, "2001:db8::1/32").unwrap(),
            "`2001:db8::1/32` is not an IPv6 prefix: it has host bits, its network is \
             `2001:db8::/32`; write for example `2001:db8::/32`"
        );
        assert_eq!(problem(Type::Ipv6Prefix, "::/0"), None);
        assert_eq!(problem(Type::Ipv6Prefix, "::1/128"), None);
    }

    #[test]
    fn only_types_with_an_order_have_ranges() {
        let measured: Vec<_> = TYPES.iter().filter(|(_, kind)| kind.is_measured()).collect();
        let words: Vec<_> = measured.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, ["number", "integer", "duration", "rate", "size", "probability"]);
    }

    #[test]
    fn a_word_that_is_none_of_the_accepted_ones_gets_the_nearest() {
        let words = vec!["active".to_owned(), "passive".to_owned()];
        let value = Value { words, ..Value::new(Type::OneOf) };
        assert_eq!(value.check("passive"), Ok(()));
        let text = value.check("pasive").unwrap_err().to_string();
        assert_eq!(text, "`pasive` is not accepted here: did you mean `passive`?");
        let text = value.check("x").unwrap_err().to_string();
        assert_eq!(text, "`x` is not accepted here: write `active` or `passive`");
    }
}
