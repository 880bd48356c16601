//! How much the processes write to their logs, as the configuration says.
//!
//! ```text
//! log {
//!     level info;                     # of all
//!     component xia { level debug; }  # of this one
//! }
//! ```
//!
//! Each is told by `monitor/1.0/set_log_level` when it is there, and when the statement changes.

use std::collections::BTreeMap;

use weft_config::{Block, Entry, Errors, Located, Name, gather};
use weft_runtime::Level;
use weft_xrl::{Call, FINDER, Output, monitor};

use crate::{MANAGER, Manager};

/// The statement.
pub(crate) const LOG: &str = "log";

/// What the statement says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLevels {
    all: Option<Level>,
    components: BTreeMap<String, Level>,
}

impl LogLevels {
    /// The level of a component, if anything is said of it.
    fn of(&self, component: &str) -> Option<Level> {
        self.components.get(component).copied().or(self.all)
    }
}

/// Reads the statement `log { … }` of a block, if there is one.
///
/// # Errors
/// Every mistake with its place.
pub fn read_log(block: &mut Block<'_>) -> Result<LogLevels, Errors> {
    let Some(entry) = block.one(LOG)? else { return Ok(LogLevels::default()) };
    entry.read_block(|block| {
        let all = level(block)?;
        let components = gather(block.many("component").into_iter().map(component))?;
        Ok(LogLevels { all, components: components.into_iter().collect() })
    })
}

fn component(mut entry: Entry<'_>) -> Result<(String, Level), Errors> {
    let name: Name = entry.argument("the component")?;
    let missing = entry.error("how much does it write? add `level error|warning|info|debug;`");
    let level = entry.read_block(|block| level(block)?.ok_or_else(|| missing.into()))?;
    Ok((name.as_str().to_owned(), level))
}

fn level(block: &mut Block<'_>) -> Result<Option<Level>, Errors> {
    let Some(word) = block.leaf::<Located<String>>("level")? else { return Ok(None) };
    let level = word.value.parse().map_err(|sentence: String| word.location.error(sentence))?;
    Ok(Some(level))
}

impl Manager {
    /// Tells a component how much it writes, if that is not what it was started with.
    pub(crate) fn say_log_level(&mut self, component: &str, out: &mut Vec<Output>) {
        let wanted = self.commits.log().of(component).unwrap_or(self.settings.level);
        let told = self.log_levels.get(component).copied().unwrap_or(self.settings.level);
        if wanted != told {
            self.log_levels.insert(component.to_owned(), wanted);
            let request = monitor::SetLogLevel { level: wanted.to_string() };
            let token = self.calls.unanswered();
            out.push(Call::new(token, component.to_owned(), request).into());
        }
    }

    /// A component that was started anew writes as much as it was started with.
    pub(crate) fn forget_log_level(&mut self, component: &str) {
        self.log_levels.remove(component);
    }

    /// The statement has changed.
    pub(crate) fn say_log_levels(&mut self, out: &mut Vec<Output>) {
        let there = self.instances.iter().filter(|(_, one)| one.registered);
        let names: Vec<_> = there.map(|(name, _)| name.to_owned()).collect();
        for name in names.iter().map(String::as_str).chain([MANAGER, FINDER]) {
            self.say_log_level(name, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_config::Document;

    use super::*;

    fn of(text: &str) -> Result<LogLevels, Errors> {
        Document::parse("t", &format!("version 1; {text}"))?.read(1, read_log)
    }

    #[test]
    fn components_have_levels_of_their_own_or_that_of_all() {
        let levels = of("log { level warning; component xia { level debug; } }").unwrap();
        assert_eq!(levels.of("xia"), Some(Level::Debug));
        assert_eq!(levels.of("fea"), Some(Level::Warning));
        assert_eq!(of("").unwrap().of("fea"), None);
    }

    #[test]
    fn what_is_no_level_is_an_error_with_a_place() {
        for (text, part) in [
            ("log { level loud; }", "`loud` is no level"),
            ("log { component xia; }", "how much does it write?"),
            ("log { component xia { } }", "how much does it write?"),
            ("log { component; }", "the component"),
            ("log { components x; }", "did you mean `component`?"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("t:1:"), "{text}: {error}");
        }
    }
}
