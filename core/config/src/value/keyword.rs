//! Enums whose variants are words of the language.

use super::{FromWord, ToWord, ValueError};
use crate::suggest::suggest;

/// A closed set of words, for enums. Gives [`FromWord`] and [`ToWord`].
///
/// ```
/// use weft_config::{FromWord, Keyword};
///
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum NodeKind {
///     Weft,
///     Linux,
/// }
///
/// impl Keyword for NodeKind {
///     const WHAT: &'static str = "a kind of node";
///     const ALL: &'static [(&'static str, Self)] = &[("weft", Self::Weft), ("linux", Self::Linux)];
/// }
///
/// assert_eq!(NodeKind::from_word("linux"), Ok(NodeKind::Linux));
/// assert!(NodeKind::from_word("windows").is_err());
/// ```
pub trait Keyword: Copy + PartialEq + 'static {
    /// What it is, with article.
    const WHAT: &'static str;
    /// Every word with its value; the first one is the example in messages. A value may have
    /// several words, of which the first is the canonical one. Must name every value.
    const ALL: &'static [(&'static str, Self)];
}

impl<T: Keyword> FromWord for T {
    const WHAT: &'static str = <T as Keyword>::WHAT;
    const EXAMPLE: &'static str = T::ALL[0].0;

    fn from_word(text: &str) -> Result<Self, ValueError> {
        let found = T::ALL.iter().find(|(word, _)| *word == text);
        found.map(|&(_, value)| value).ok_or_else(|| {
            let accepted: Vec<_> = T::ALL.iter().map(|&(word, _)| word).collect();
            ValueError::NotOneOf { suggestion: suggest(text, accepted.iter().copied()), accepted }
        })
    }
}

impl<T: Keyword> ToWord for T {
    fn to_word(&self) -> String {
        let word = T::ALL.iter().find(|(_, value)| value == self).map(|&(word, _)| word);
        word.expect("`ALL` names every value").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::tests::{reads, refuses};

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Engine {
        Netns,
        Sim,
    }

    impl Keyword for Engine {
        const WHAT: &'static str = "an engine";
        const ALL: &'static [(&'static str, Self)] =
            &[("netns", Self::Netns), ("sim", Self::Sim), ("simulator", Self::Sim)];
    }

    #[test]
    fn words_name_their_values_and_the_first_is_canonical() {
        reads("netns", Engine::Netns, "netns");
        reads("sim", Engine::Sim, "sim");
        reads("simulator", Engine::Sim, "sim");
    }

    #[test]
    fn other_words_are_refused_with_the_nearest_one() {
        let accepted = "one of `netns`, `sim` or `simulator`";
        refuses::<Engine>("netsn", "did you mean `netns`?");
        refuses::<Engine>("docker", &format!("it is {accepted}"));
        refuses::<Engine>("", &format!("it is {accepted}"));
    }
}
