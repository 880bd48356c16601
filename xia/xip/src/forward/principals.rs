//! The principals that are loaded.

use crate::XidType;
use crate::principal::Principal;

/// The principals by type. A node has a handful of them: to compare them one after the other is faster
/// than a tree.
#[derive(Default)]
pub(super) struct Principals {
    /// In ascending order.
    loaded: Vec<(XidType, Box<dyn Principal>)>,
}

impl Principals {
    /// Adds a principal; returns the one of the same type that it replaces.
    pub(super) fn insert(&mut self, principal: Box<dyn Principal>) -> Option<Box<dyn Principal>> {
        let kind = principal.kind();
        match self.loaded.binary_search_by_key(&kind, |(kind, _)| *kind) {
            Ok(place) => Some(std::mem::replace(&mut self.loaded[place].1, principal)),
            Err(place) => {
                self.loaded.insert(place, (kind, principal));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, kind: XidType) -> Option<Box<dyn Principal>> {
        let place = self.loaded.iter().position(|(loaded, _)| *loaded == kind)?;
        Some(self.loaded.remove(place).1)
    }

    pub(super) fn get(&self, kind: XidType) -> Option<&(dyn Principal + 'static)> {
        self.loaded.iter().find(|(loaded, _)| *loaded == kind).map(|(_, found)| found.as_ref())
    }

    pub(super) fn get_mut(&mut self, kind: XidType) -> Option<&mut (dyn Principal + 'static)> {
        self.loaded.iter_mut().find(|(loaded, _)| *loaded == kind).map(|(_, found)| found.as_mut())
    }

    /// The types, in ascending order.
    pub(super) fn kinds(&self) -> impl Iterator<Item = XidType> + '_ {
        self.loaded.iter().map(|(kind, _)| *kind)
    }
}
