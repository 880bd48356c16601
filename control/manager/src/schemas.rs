//! What may be configured, as programs of others say it.
//!
//! The components of the binary are described from the beginning. A program of others is asked for its
//! description (`component/1.0/schema`) when it has registered; it takes the place of `config { … }` in the
//! program's statement, so that what is written there is checked, completed, edited and masked as everything
//! else is. A program that does not run yet describes nothing, and takes or refuses what it is given.
//!
//! A description is used only if what runs fits it: otherwise nothing could be committed any more.

use std::collections::BTreeMap;

use weft_base::Instant;
use weft_commit::{Event, Parts};
use weft_config::{Errors, Schema};
use weft_runtime::Level;
use weft_xrl::{Call, Output, Reply, XrlError, configurable};

use crate::programs::{CONFIG, PROGRAM};
use crate::{Manager, report};

/// The longest description that is read, in bytes.
const LONGEST: usize = 256 << 10;

/// What may be configured.
pub(crate) struct Schemas {
    /// What the binary brings.
    base: Schema,
    /// What programs bring, by their names.
    own: BTreeMap<String, Schema>,
    /// What programs bring that what runs does not fit: it is tried again when something else runs.
    unfit: BTreeMap<String, Schema>,
    /// What each component is given.
    pub(crate) parts: Parts,
}

impl Schemas {
    pub(crate) fn new(base: Schema, parts: Parts) -> Self {
        Self { base, own: BTreeMap::new(), unfit: BTreeMap::new(), parts }
    }

    /// All of it, with another description of one program.
    fn with(&self, name: &str, own: Option<&Schema>) -> Result<Schema, Errors> {
        let others = self.own.iter().filter(|(other, _)| *other != name);
        let all = others.map(|(name, own)| (name.as_str(), own)).chain(own.map(|own| (name, own)));
        all.into_iter()
            .try_fold(self.base.clone(), |all, (name, own)| all.described(PROGRAM, name, own))
    }
}

impl Manager {
    /// Asks a program of others what it understands.
    pub(crate) fn ask_for_schema(&mut self, name: &str, out: &mut Vec<Output>) {
        if self.commits.programs().iter().any(|program| program.name == name) {
            let token = self.calls.describe(name);
            out.push(Call::new(token, name.to_owned(), configurable::Schema).into());
        }
    }

    /// A program has taken its configuration, which may be one that its description fits.
    pub(crate) fn ask_again_for_schema(&mut self, name: &str, out: &mut Vec<Output>) {
        if !self.commits.schemas.own.contains_key(name) {
            self.ask_for_schema(name, out);
        }
    }

    /// A program has said what it understands, or not.
    pub(crate) fn schema_told(
        &mut self,
        now: Instant,
        name: &str,
        result: Result<Reply, XrlError>,
        out: &mut Vec<Output>,
    ) {
        // Who implements no such method is open to everything, as before.
        let Ok(text) = result.and_then(Reply::read::<configurable::Schema>) else { return };
        if let Err(reason) = self.take_schema(now, name, &text.text, out) {
            let line = format!("the schema of {name} is not used: {reason}");
            report(out, Level::Warning, line);
        }
    }

    fn take_schema(
        &mut self,
        now: Instant,
        name: &str,
        text: &str,
        out: &mut Vec<Output>,
    ) -> Result<(), String> {
        let own = match text.trim().is_empty() {
            true => None,
            false if text.len() > LONGEST => {
                return Err(format!("it has {} bytes, but at most {LONGEST} are read", text.len()));
            }
            false => {
                let source = format!("schema of {name}");
                Some(Schema::parse(&source, text).map_err(|errors| format!("\n{errors}"))?)
            }
        };
        let schemas = &mut self.commits.schemas;
        schemas.unfit.remove(name);
        let all = schemas.with(name, own.as_ref()).map_err(|errors| format!("\n{errors}"))?;
        if let Err(errors) = self.fits(&all) {
            self.commits.schemas.unfit.extend(own.map(|own| (name.to_owned(), own)));
            return Err(format!("what runs does not fit it, so change its `{CONFIG}`:\n{errors}"));
        }
        self.describe(now, name, own, all, out);
        Ok(())
    }

    /// Whether what runs fits a schema.
    fn fits(&self, schema: &Schema) -> Result<(), Errors> {
        schema.check(self.commits.machine().transaction().running(), None)
    }

    /// Something else runs: it may fit what did not before. A program that has taken its new configuration
    /// may have said what it understands before the revision was on the disk.
    pub(crate) fn try_schemas_again(&mut self, now: Instant, out: &mut Vec<Output>) {
        for (name, own) in std::mem::take(&mut self.commits.schemas.unfit) {
            match self.commits.schemas.with(&name, Some(&own)) {
                Ok(all) if self.fits(&all).is_ok() => {
                    self.describe(now, &name, Some(own), all, out);
                }
                _ => drop(self.commits.schemas.unfit.insert(name, own)),
            }
        }
    }

    /// A program is not wanted any more, nor what it said.
    pub(crate) fn forget_schema(&mut self, now: Instant, name: &str, out: &mut Vec<Output>) {
        self.commits.schemas.unfit.remove(name);
        if self.commits.schemas.own.contains_key(name)
            // What was described before still is without this one.
            && let Ok(all) = self.commits.schemas.with(name, None)
        {
            self.describe(now, name, None, all, out);
        }
    }

    fn describe(
        &mut self,
        now: Instant,
        name: &str,
        own: Option<Schema>,
        schema: Schema,
        out: &mut Vec<Output>,
    ) {
        match own {
            Some(own) => drop(self.commits.schemas.own.insert(name.to_owned(), own)),
            None => drop(self.commits.schemas.own.remove(name)),
        }
        let parts = self.commits.schemas.parts.clone();
        self.tell_configuration(now, Event::Described { schema, parts }, out);
    }
}
