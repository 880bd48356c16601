//! Which routes pass: all, none, or those that policies accept.
//!
//! ```text
//! import all;
//! export from-customers to-peers;
//! ```
//!
//! Reference: RFC 8212 §2: with an external peer nothing is exchanged unless something is said; RFC 4271 §9.2: inside a
//! system everything.

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_config::{Block, Errors, Located, Name};
use weft_policy::{Policies, Program};

use crate::policy::{Filter, VARIABLES};

/// Makes filters of policies. Peers with the same policies share one.
pub(super) struct Filters<'a> {
    policies: &'a Policies,
    known: BTreeMap<Vec<String>, Rc<Program>>,
}

impl<'a> Filters<'a> {
    pub(super) fn new(policies: &'a Policies) -> Self {
        Self { policies, known: BTreeMap::new() }
    }

    /// What is said of a direction.
    pub(super) fn read(
        &mut self,
        block: &mut Block<'_>,
        direction: &str,
        is_internal: bool,
    ) -> Result<Filter, Errors> {
        let names: Vec<Located<Name>> = block.list(direction)?;
        let texts: Vec<_> = names.iter().map(|name| name.value.as_str()).collect();
        match texts.as_slice() {
            [] if is_internal => return Ok(Filter::All),
            [] | ["none"] => return Ok(Filter::None),
            ["all"] => return Ok(Filter::All),
            _ => {}
        }
        let is_whole = |name: &&Located<Name>| matches!(name.value.as_str(), "all" | "none");
        if let Some(whole) = names.iter().find(is_whole) {
            let sentence = format!(
                "`{}` stands alone: leave it out, or delete the policies beside it",
                whole.value.as_str()
            );
            return Err(whole.error(sentence).into());
        }
        let texts: Vec<_> = texts.into_iter().map(str::to_owned).collect();
        if let Some(known) = self.known.get(&texts) {
            return Ok(Filter::Policies(Rc::clone(known)));
        }
        let program = Rc::new(Program::new(self.policies, VARIABLES, &names)?);
        self.known.insert(texts, Rc::clone(&program));
        Ok(Filter::Policies(program))
    }
}
