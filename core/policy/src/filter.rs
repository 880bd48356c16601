//! What a protocol says with `import` and `export`: all routes pass, none, or those that policies accept.
//!
//! ```text
//! import all;
//! export from-customers to-peers;
//! ```

use std::rc::Rc;

use weft_config::{Errors, Located, Name};

use crate::{Outcome, Program, Route, Value};

/// Which routes pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All, as they are.
    All,
    /// None.
    None,
    /// Those that policies accept, as these change them.
    Policies(Rc<Program>),
}

impl Filter {
    /// Reads the words of a statement; `usual` is what holds without any. `compile` makes a program of the names of
    /// policies: [`Program::new`], or one that was made before.
    ///
    /// # Errors
    /// Those of `compile`; `all` or `none` beside others.
    pub fn read(
        names: &[Located<Name>],
        usual: Self,
        compile: impl FnOnce(&[Located<Name>]) -> Result<Rc<Program>, Errors>,
    ) -> Result<Self, Errors> {
        match names {
            [] => return Ok(usual),
            [one] if one.value.as_str() == "all" => return Ok(Self::All),
            [one] if one.value.as_str() == "none" => return Ok(Self::None),
            _ => {}
        }
        let is_whole = |name: &&Located<Name>| matches!(name.value.as_str(), "all" | "none");
        if let Some(whole) = names.iter().find(is_whole) {
            let sentence = format!(
                "`{}` stands alone: delete it to use the policies beside it, or delete these",
                whole.value.as_str()
            );
            return Err(whole.error(sentence).into());
        }
        compile(names).map(Self::Policies)
    }

    /// What becomes of a route: which variables are set to what; none if it does not pass.
    pub fn run<'r>(&self, route: &'r dyn Route) -> Option<Vec<(usize, Option<Value<'r>>)>> {
        match self {
            Self::All => Some(Vec::new()),
            Self::None => None,
            Self::Policies(program) => {
                let Outcome { accepted, changes } = program.run(route);
                accepted.then_some(changes)
            }
        }
    }
}
