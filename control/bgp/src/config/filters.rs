//! Which routes pass: all, none, or those that policies accept.
//!
//! ```text
//! import all;
//! export from-customers to-peers;
//! ```
//!
//! Reference: RFC 8212 §2: with an external peer nothing is exchanged unless something is said; RFC 4271 §9.2: inside a
//! system everything, and so inside a confederation, which is one system to others (RFC 5065 §5.1).

use std::collections::BTreeMap;
use std::rc::Rc;

use weft_config::{Block, Errors, Located, Name};
use weft_policy::{Policies, Program};

use crate::policy::{Filter, VARIABLES};
use crate::wire::Neighbour;

/// What is said of routes that come.
const IMPORT: &str = "import";

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
        neighbour: Neighbour,
    ) -> Result<Filter, Errors> {
        let names: Vec<Located<Name>> = block.list(direction)?;
        let usual = match neighbour {
            Neighbour::External => weft_policy::Filter::None,
            Neighbour::Internal | Neighbour::Confederation => weft_policy::Filter::All,
        };
        let read = weft_policy::Filter::read(&names, usual, |names| self.program(names))?;
        let filter = match read {
            weft_policy::Filter::All => Filter::All,
            weft_policy::Filter::None => Filter::None,
            weft_policy::Filter::Policies(program) => Filter::Policies(program),
        };
        let misplaced = direction != IMPORT && filter.asks_for_validity();
        if let Some(first) = names.first().filter(|_| misplaced) {
            let sentence = "`origin-validation` is known on import alone: let `import` of peers mark routes, as with a community or \
                            the tag, and ask for that here";
            return Err(first.location.error(sentence).into());
        }
        Ok(filter)
    }

    fn program(&mut self, names: &[Located<Name>]) -> Result<Rc<Program>, Errors> {
        let texts: Vec<_> = names.iter().map(|name| name.value.as_str().to_owned()).collect();
        if let Some(known) = self.known.get(&texts) {
            return Ok(Rc::clone(known));
        }
        let program = Rc::new(Program::new(self.policies, VARIABLES, names)?);
        self.known.insert(texts, Rc::clone(&program));
        Ok(program)
    }
}
