//! Values that are named by numbers which are not used again soon.

/// Values under numbers: an index, and how often its place was used before.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Keeps a value and says its number, which has 62 bits at most.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            (self.places.len() - 1) as u32
        });
        let place = &mut self.places[index as usize];
        place.1 = Some(value);
        u64::from(place.0) << 32 | u64::from(index)
    }

    /// Takes the value with a number, if it is still there.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let (used, index) = ((number >> 32) as u32, number as u32);
        let place = self.places.get_mut(index as usize).filter(|place| place.0 == used)?;
        let value = place.1.take()?;
        place.0 = place.0.wrapping_add(1) & 0x3fff_ffff;
        self.free.push(index);
        Some(value)
    }

    /// Takes all values for which something holds, in order of place.
    pub(crate) fn extract_if(&mut self, mut holds: impl FnMut(&T) -> bool) -> Vec<T> {
        let numbers: Vec<_> = (0_u32..)
            .zip(&self.places)
            .filter(|(_, (_, value))| value.as_ref().is_some_and(&mut holds))
            .map(|(index, (used, _))| u64::from(*used) << 32 | u64::from(index))
            .collect();
        numbers.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// All values, in order of place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|(_, value)| value.as_ref())
    }
}
