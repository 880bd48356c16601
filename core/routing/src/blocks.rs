//! What readers of a table remember of destinations, in blocks that those share who remember the same.
//!
//! A reader that becomes two, because one of its peers is slower than the others, shares all blocks with the other one; of
//! many readers that tell a table by different policies, most say the same of most destinations, and find that out
//! ([`Blocks::share`]). A block is copied when one of them changes it.
//!
//! What a block holds may be counted elsewhere. So who asks for something after which there is one block more, or one less,
//! is told of it; a list of blocks that hold such things is not dropped, but [taken apart](Blocks::into_own).

use std::collections::HashSet;
use std::hash::Hash;
use std::rc::Rc;

/// Blocks that are kept at least before those are looked for that nobody uses.
const FEW: usize = 64;

/// A list of them.
#[derive(Clone, Debug)]
pub struct Blocks<B> {
    all: Vec<Rc<B>>,
    /// A bit for each of them that has changed since others were asked for the same one.
    changed: Vec<u64>,
}

/// Blocks of many, for those who have the same.
#[derive(Debug)]
pub struct Shared<B> {
    all: HashSet<Rc<B>>,
    /// So many there were that somebody used.
    used: usize,
}

impl<B> Default for Blocks<B> {
    fn default() -> Self {
        Self { all: Vec::new(), changed: Vec::new() }
    }
}

impl<B> Default for Shared<B> {
    fn default() -> Self {
        Self { all: HashSet::new(), used: 0 }
    }
}

impl<B: Eq + Hash> Shared<B> {
    /// The same block, of others if they have it.
    fn find(&mut self, block: &Rc<B>, gone: impl FnMut(B)) -> Rc<B> {
        if let Some(same) = self.all.get(block) {
            return Rc::clone(same);
        }
        if self.all.len() >= 2 * self.used + FEW {
            let unused = self.all.extract_if(|block| Rc::strong_count(block) == 1);
            unused.filter_map(Rc::into_inner).for_each(gone);
            self.used = self.all.len();
        }
        self.all.insert(Rc::clone(block));
        Rc::clone(block)
    }

    /// Forgets all: nobody has the same as others any more. `gone` gets those that nobody uses.
    pub fn clear(&mut self, gone: impl FnMut(B)) {
        std::mem::take(self).all.into_iter().filter_map(Rc::into_inner).for_each(gone);
    }
}

impl<B: Clone + Default + Eq + Hash> Blocks<B> {
    /// One of them; none behind the last that was changed.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<&B> {
        self.all.get(place).map(Rc::as_ref)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &B> {
        self.all.iter().map(Rc::as_ref)
    }

    /// One of them, to be changed; those between the last one and this are as by default. `copied` gets the one of which there
    /// are two from now on, if others have it.
    pub fn change(&mut self, place: usize, copied: impl FnOnce(&B)) -> &mut B {
        if place >= self.all.len() {
            let nothing = Rc::new(B::default());
            self.all.resize(place + 1, nothing);
            self.changed.resize(place / 64 + 1, 0);
        }
        self.changed[place / 64] |= 1 << (place % 64);
        let block = &mut self.all[place];
        if Rc::strong_count(block) > 1 {
            copied(block);
        }
        Rc::make_mut(block)
    }

    /// Has others' blocks for those that have changed since the last time, where others have the same. `gone` gets those that
    /// nobody uses any more.
    pub fn share(&mut self, shared: &mut Shared<B>, mut gone: impl FnMut(B)) {
        for (place, changed) in self.changed.iter_mut().enumerate() {
            while *changed != 0 {
                let block = &mut self.all[64 * place + changed.trailing_zeros() as usize];
                let before = std::mem::replace(block, shared.find(block, &mut gone));
                Rc::into_inner(before).into_iter().for_each(&mut gone);
                *changed &= *changed - 1;
            }
        }
    }

    /// Those that nobody else has.
    pub fn into_own(self) -> impl Iterator<Item = B> {
        self.all.into_iter().filter_map(Rc::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in blocks, and how often each is held by a block.
    #[derive(Default)]
    struct World {
        counts: std::cell::RefCell<std::collections::BTreeMap<u32, usize>>,
    }

    type Block = Vec<u32>;

    impl World {
        fn take(&self, block: &Block) {
            for number in block {
                *self.counts.borrow_mut().entry(*number).or_default() += 1;
            }
        }

        fn give(&self, block: Block) {
            for number in block {
                *self.counts.borrow_mut().get_mut(&number).expect("it was taken") -= 1;
            }
        }

        fn push(&self, blocks: &mut Blocks<Block>, place: usize, number: u32) {
            blocks.change(place, |block| self.take(block)).push(number);
            self.take(&vec![number]);
        }

        fn count(&self, number: u32) -> usize {
            self.counts.borrow()[&number]
        }
    }

    /// Which blocks are one and the same.
    fn common(one: &Blocks<Block>, other: &Blocks<Block>) -> Vec<bool> {
        let pairs = one.all.iter().zip(&other.all);
        pairs.map(|(one, other)| Rc::ptr_eq(one, other)).collect()
    }

    #[test]
    fn of_two_that_were_one_each_changes_its_own_and_both_have_the_rest() {
        let (world, mut one) = (World::default(), Blocks::default());
        for place in [0, 1, 4] {
            world.push(&mut one, place, place as u32);
        }
        let mut other = one.clone();
        assert_eq!(common(&one, &other), [true; 5]);
        world.push(&mut other, 1, 10);
        world.push(&mut other, 6, 60);
        assert_eq!(common(&one, &other), [true, false, true, true, true]);
        assert_eq!(
            [&one, &other].map(|blocks| blocks.get(1).cloned()),
            [Some(vec![1]), Some(vec![1, 10])]
        );
        assert_eq!((other.get(5), one.get(5)), (Some(&vec![]), None));
        assert_eq!([0, 1, 4, 10, 60].map(|number| world.count(number)), [1, 2, 1, 1, 1]);
        one.into_own().for_each(|block| world.give(block));
        assert_eq!([0, 1, 4, 10, 60].map(|number| world.count(number)), [1; 5]);
        other.into_own().for_each(|block| world.give(block));
        assert!(world.counts.borrow().values().all(|count| *count == 0));
    }

    #[test]
    fn those_who_have_the_same_share_it_until_one_has_something_else() {
        let (world, mut shared) = (World::default(), Shared::default());
        let [mut one, mut other] = [Blocks::default(), Blocks::default()];
        for blocks in [&mut one, &mut other] {
            world.push(blocks, 0, 1);
            world.push(blocks, 70, 2);
            blocks.share(&mut shared, |block| world.give(block));
        }
        assert!(common(&one, &other)[0] && common(&one, &other)[70]);
        assert_eq!([1, 2].map(|number| world.count(number)), [1, 1]);
        world.push(&mut one, 0, 3);
        one.share(&mut shared, |block| world.give(block));
        assert!(!common(&one, &other)[0]);
        assert_eq!([1, 2, 3].map(|number| world.count(number)), [2, 1, 1]);
        world.push(&mut other, 0, 3);
        other.share(&mut shared, |block| world.give(block));
        assert!(common(&one, &other)[0]);
        // What both had before lies with those for others still.
        assert_eq!([1, 2, 3].map(|number| world.count(number)), [2, 1, 1]);
        shared.clear(|block| world.give(block));
        assert_eq!([1, 2, 3].map(|number| world.count(number)), [1, 1, 1]);
        for blocks in [one, other] {
            blocks.into_own().for_each(|block| world.give(block));
        }
        assert!(world.counts.borrow().values().all(|count| *count == 0));
    }

    #[test]
    fn what_nobody_has_any_more_is_forgotten() {
        let (world, mut shared) = (World::default(), Shared::default());
        let mut blocks = Blocks::default();
        for number in 0..2000 {
            // No two blocks are the same.
            world.push(&mut blocks, number as usize % 10, number);
            blocks.share(&mut shared, |block| world.give(block));
            assert!(shared.all.len() <= 2 * 10 + FEW + 1, "{}", shared.all.len());
        }
        assert!(world.count(0) > 1, "older ones are there for others");
        shared.clear(|block| world.give(block));
        assert!(world.counts.borrow().values().all(|count| *count == 1));
    }
}
