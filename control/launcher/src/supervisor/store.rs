//! Descriptors that outlive whoever made them, by name.

use std::collections::BTreeMap;

use crate::name::Name;
use crate::protocol::Kept;

/// How many descriptors are kept at most.
const MOST: usize = 128;

/// What is kept.
pub(super) struct Store<D> {
    kept: BTreeMap<Name, Item<D>>,
}

struct Item<D> {
    descriptor: D,
    instance: Option<Name>,
}

impl<D> Default for Store<D> {
    fn default() -> Self {
        Self { kept: BTreeMap::new() }
    }
}

impl<D> Store<D> {
    /// Keeps a descriptor in place of an earlier one of this name, whose receiver stays unless another
    /// one is said.
    pub(super) fn keep(
        &mut self,
        name: Name,
        descriptor: D,
        instance: Option<Name>,
    ) -> Result<(), String> {
        if let Some(item) = self.kept.get_mut(&name) {
            item.descriptor = descriptor;
            item.instance = instance.or(item.instance.take());
            return Ok(());
        }
        if self.kept.len() >= MOST {
            return Err(format!("{MOST} descriptors are kept already: drop one first"));
        }
        self.kept.insert(name, Item { descriptor, instance });
        Ok(())
    }

    /// Says who gets a descriptor.
    pub(super) fn give(&mut self, name: &Name, instance: Name) -> Result<(), String> {
        let item = self.kept.get_mut(name).ok_or_else(|| unknown(name))?;
        item.instance = Some(instance);
        Ok(())
    }

    /// Closes a descriptor.
    pub(super) fn drop(&mut self, name: &Name) -> Result<(), String> {
        self.kept.remove(name).map(drop).ok_or_else(|| unknown(name))
    }

    /// Closes what an instance would get.
    pub(super) fn forget(&mut self, instance: &Name) {
        self.kept.retain(|_, item| item.instance.as_ref() != Some(instance));
    }

    /// What an instance gets.
    pub(super) fn of<'a>(&'a self, instance: &'a Name) -> impl Iterator<Item = (&'a Name, &'a D)> {
        let its = move |item: &Item<D>| item.instance.as_ref() == Some(instance);
        self.kept
            .iter()
            .filter(move |(_, item)| its(item))
            .map(|(name, item)| (name, &item.descriptor))
    }

    /// All of it, in order of names.
    pub(super) fn list(&self) -> Vec<Kept> {
        let kept = |(name, item): (&Name, &Item<D>)| Kept {
            name: name.clone(),
            instance: item.instance.clone(),
        };
        self.kept.iter().map(kept).collect()
    }
}

fn unknown(name: &Name) -> String {
    format!("no descriptor called `{name}` is kept")
}
