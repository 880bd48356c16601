//! Ranges that the arguments of a call must be in.
//!
//! Reference: Handley et al. (XORP), §7: restricting the range of arguments that a process may use for
//! a method. A rule names arguments of the method, or fields of a record in them:
//!
//! ```text
//! rules = rule *( blank rule )
//! rule  = argument [ "." field ] "=" range *( "|" range )
//! range = number ".." number        a number between the two
//!       | prefix                    an address or prefix inside
//!       | text with "*"             a text with anything in the places of the stars
//!       | value                     exactly this
//! ```
//!
//! Every element of a list must be in a range. An argument that is left out breaks no rule.

use ipnet::IpNet;
use weft_xif::{Field, Interface, Method, Type};

use crate::codec::{Decoder, Malformed, tag};
use crate::text::take_text;

/// The rules for one caller and one method.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    /// Which argument.
    argument: usize,
    /// Which field of its records.
    field: Option<usize>,
    name: String,
    ranges: Vec<Range>,
}

#[derive(Clone, Debug, PartialEq)]
enum Range {
    Between(i128, i128),
    Inside(IpNet),
    Like(Vec<String>),
    Exactly(String),
}

impl Limits {
    /// Reads rules for a method.
    ///
    /// # Errors
    /// A sentence that says which rule is wrong and why.
    pub fn parse(text: &str, method: &Method, interface: &Interface) -> Result<Self, String> {
        let rules = text.split_whitespace().map(|rule| Rule::parse(rule, method, interface));
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Checks the arguments of a call.
    ///
    /// # Errors
    /// A sentence that says which argument is outside of which range, or that the arguments are malformed.
    pub fn check(
        &self,
        arguments: &[u8],
        method: &Method,
        interface: &Interface,
    ) -> Result<(), String> {
        // What stands behind the last argument that a rule is about is nothing to look into: it may be very much.
        let Some(last) = self.rules.iter().map(|rule| rule.argument).max() else { return Ok(()) };
        let mut from = Decoder::new(arguments, Vec::new());
        for (index, field) in method.args.iter().enumerate().take(last + 1) {
            let values = values(&mut from, field, interface).map_err(|error| error.to_string())?;
            for rule in self.rules.iter().filter(|rule| rule.argument == index) {
                rule.check(&values)?;
            }
        }
        Ok(())
    }
}

/// The values of one argument: one, or those of a list, each with its fields if it is a record.
fn values(
    from: &mut Decoder<'_>,
    field: &Field,
    interface: &Interface,
) -> Result<Vec<Vec<String>>, Malformed> {
    let found = if from.is_empty() { tag::ABSENT } else { from.byte()? };
    if found == tag::ABSENT {
        return Ok(Vec::new());
    }
    let (kind, count) = match &field.kind {
        Type::List(element) => {
            from.byte()?;
            let count = u32::from_le_bytes(from.array()?) as usize;
            if count > from.left() {
                return Err(Malformed::short());
            }
            (&**element, count)
        }
        kind => (kind, 1),
    };
    let record = kind.record().and_then(|name| interface.record(name));
    if record.is_some() && count > 0 {
        let len = from.byte()?;
        from.slice(usize::from(len))?;
    }
    let text = |kind: &Type, from: &mut Decoder<'_>| {
        let mut text = String::new();
        if *kind == Type::Handle {
            return from.byte().map(|_| text);
        }
        take_text(kind, from, true, interface, &mut text).map(|()| text)
    };
    let one = |from: &mut Decoder<'_>| match record {
        Some(record) => record.fields.iter().map(|field| text(&field.kind, from)).collect(),
        None => text(kind, from).map(|text| vec![text]),
    };
    (0..count).map(|_| one(from)).collect()
}

impl Rule {
    fn parse(rule: &str, method: &Method, interface: &Interface) -> Result<Self, String> {
        let (name, ranges) = rule
            .split_once('=')
            .ok_or_else(|| format!("the rule `{rule}` has no range; it is `argument=range`"))?;
        let (argument, field) = match name.split_once('.') {
            Some((argument, field)) => (argument, Some(field)),
            None => (name, None),
        };
        let index = method.args.iter().position(|arg| arg.name == argument);
        let index = index
            .ok_or_else(|| format!("the rule `{rule}`: `{method}` has no argument `{argument}`"))?;
        let record = method.args[index].kind.record().and_then(|name| interface.record(name));
        let field = match (field, record) {
            (None, None) => None,
            (Some(field), Some(record)) => {
                let position = record.fields.iter().position(|other| other.name == field);
                Some(position.ok_or_else(|| {
                    format!("the rule `{rule}`: `{}` has no field `{field}`", record.name)
                })?)
            }
            (None, Some(record)) => {
                return Err(format!("the rule `{rule}`: name a field of `{}`", record.name));
            }
            (Some(_), None) => {
                return Err(format!("the rule `{rule}`: `{argument}` has no fields"));
            }
        };
        let ranges = ranges.split('|').map(Range::parse).collect();
        Ok(Self { argument: index, field, name: name.to_owned(), ranges })
    }

    fn check(&self, values: &[Vec<String>]) -> Result<(), String> {
        for value in values {
            // The layout of a record is checked when the component reads it; here it may be short.
            let Some(text) = value.get(self.field.unwrap_or(0)) else { continue };
            if !self.ranges.iter().any(|range| range.holds(text)) {
                return Err(format!("`{}` may not be {text} for this caller", self.name));
            }
        }
        Ok(())
    }
}

impl Range {
    fn parse(text: &str) -> Self {
        let between = text
            .split_once("..")
            .and_then(|(from, to)| Some(Self::Between(from.parse().ok()?, to.parse().ok()?)));
        if let Some(between) = between {
            return between;
        }
        if let Ok(prefix) = text.parse() {
            return Self::Inside(prefix);
        }
        match text.contains('*') {
            true => Self::Like(text.split('*').map(str::to_owned).collect()),
            false => Self::Exactly(text.to_owned()),
        }
    }

    fn holds(&self, text: &str) -> bool {
        match self {
            Self::Between(from, to) => {
                text.parse().is_ok_and(|number: i128| *from <= number && number <= *to)
            }
            Self::Inside(prefix) => match (text.parse::<IpNet>(), text.parse()) {
                (Ok(inner), _) => prefix.contains(&inner),
                (_, Ok(address)) => prefix.contains::<&std::net::IpAddr>(&address),
                _ => false,
            },
            Self::Like(parts) => is_like(text, parts),
            Self::Exactly(exact) => text == exact,
        }
    }
}

/// Whether a text is made of `parts` in this order, with anything between them.
fn is_like(text: &str, parts: &[String]) -> bool {
    let [first, middle @ .., last] = parts else { return false };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for part in middle {
        match rest.split_once(part.as_str()) {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything_in_their_place_only() {
        let like = |text: &str, pattern: &str| Range::parse(pattern).holds(text);
        assert!(like("ethernet:eth0:0xc0de", "ethernet:*:0xc0de"));
        assert!(like("ethernet:a:b:0xc0de", "ethernet:*:0xc0de"));
        assert!(!like("ethernet:eth0:0x0800", "ethernet:*:0xc0de"));
        assert!(!like("udp:ethernet:x:0xc0de", "ethernet:*:0xc0de"));
        assert!(like("abcde", "a*c*e") && !like("abde", "a*c*e") && !like("ab", "ab*b"));
        assert!(like("", "*") && like("x", "*"));
    }
}
