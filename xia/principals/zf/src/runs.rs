//! From the links that a filter holds to their branches, each branch once.
//!
//! Reference: Jokela et al., "LIPSIN: Line Speed Publish/Subscribe Inter-networking", SIGCOMM 2009, §3 (a packet goes
//! over every link that its filter holds, false positives included).
//!
//! A filter that is half full holds three links in a hundred by mistake, at places that nobody can foresee. A branch
//! of the program for each would be foreseen wrongly as often as not, and cost more than the search. So there is none:
//!
//! * All links to one target stand together and form a *run*. An addition finds the runs that are hit, all of a
//!   word at once: to the hits of a run, without its last place, ones are added in all of these places. The
//!   carry comes to the last place exactly if there was a hit.
//! * The places of all hits of a block of words are written at once (`ones` in `core/processor`). Only where a whole block
//!   has no hit, as with most filters that are not full, nothing is done.

use weft_processor::{ones, room_for_ones};
use weft_xip::principal::Branch;

use crate::rows::{BLOCK, WORD};

/// The branches of all links, in words as those of [`Rows`](crate::rows::Rows).
#[derive(Debug, Default)]
pub(crate) struct Runs {
    words: usize,
    /// The last place of every run.
    ends: Column,
    /// The first of them, if the run began in the word before.
    continued: Column,
    /// The last of them.
    last: Column,
    /// All ones if these two are the same: the run may go on through the whole word.
    passed: Column,
    /// [`WORD`] for each word; those behind its links are never used.
    branches: Vec<Place>,
}

/// A link's branch, which lies in one line of the processor's caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Place(Branch);

const NO_PLACE: Place = Place(Branch::Through);

/// Something of each word, and a block of zeros behind, so that every word begins a block. What is known of runs stands in
/// columns, because the processor works on several words at once if they lie side by side.
#[derive(Debug)]
struct Column(Vec<u64>);

impl Default for Column {
    fn default() -> Self {
        Self::of(0)
    }
}

impl Column {
    fn of(words: usize) -> Self {
        Self(vec![0; words + BLOCK])
    }

    #[inline(always)]
    fn block(&self, from: usize) -> &[u64; BLOCK] {
        self.0[from..].first_chunk().expect("a block of zeros is behind the last word")
    }
}

/// The runs that are hit, as their last places, which are `ends`.
#[inline(always)]
fn hit(ends: u64, held: u64) -> u64 {
    let others = !ends;
    (((held & others).wrapping_add(others)) | held) & ends
}

/// What is remembered from one block of words to the next.
#[derive(Debug)]
pub(crate) struct Progress {
    /// All ones if the run that ends the word before was hit.
    taken: u64,
    /// Places of a block that are hit, and what was written behind them.
    places: [u16; room_for_ones(BLOCK)],
}

impl Default for Progress {
    fn default() -> Self {
        Self { taken: 0, places: [0; _] }
    }
}

impl Runs {
    /// Makes room for a word at `at` and moves all behind it; no link is in it.
    pub(crate) fn insert_word(&mut self, at: usize) {
        self.columns().into_iter().for_each(|column| column.0.insert(at, 0));
        self.words += 1;
        let place = at * WORD;
        self.branches.splice(place..place, [NO_PLACE; WORD]);
        self.join(at + 1);
    }

    /// Takes the word at `at` out and moves all behind it.
    pub(crate) fn remove_word(&mut self, at: usize) {
        for column in self.columns() {
            column.0.remove(at);
        }
        self.words -= 1;
        self.branches.drain(at * WORD..(at + 1) * WORD);
        self.join(at);
    }

    /// Forgets all links and has this many words.
    pub(crate) fn reset(&mut self, words: usize) {
        self.columns().into_iter().for_each(|column| *column = Column::of(words));
        self.words = words;
        self.branches = vec![NO_PLACE; words * WORD];
    }

    fn columns(&mut self) -> [&mut Column; 4] {
        [&mut self.ends, &mut self.continued, &mut self.last, &mut self.passed]
    }

    /// Puts links with these branches, at most [`WORD`], into the word at `at` in place of all that are there.
    pub(crate) fn write(&mut self, at: usize, branches: impl Iterator<Item = Branch>) {
        let places = &mut self.branches[at * WORD..][..WORD];
        let mut ends = 0_u64;
        let mut last = None;
        for (number, (place, branch)) in places.iter_mut().zip(branches).enumerate() {
            *place = Place(branch);
            if last == Some(branch) {
                // The run goes on, and ends here.
                ends &= !(1 << (number - 1));
            }
            ends |= 1 << number;
            last = Some(branch);
        }
        self.ends.0[at] = ends;
        self.last.0[at] = ends.checked_ilog2().map_or(0, |place| 1 << place);
        self.join(at);
        self.join(at + 1);
    }

    /// Finds out whether the first run of a word began in the word before.
    fn join(&mut self, at: usize) {
        if at >= self.words {
            return;
        }
        let ends = self.ends.0[at];
        let goes_on = at.checked_sub(1).is_some_and(|before| {
            let last = self.ends.0[before].checked_ilog2();
            let of = |word: usize, place: u32| self.branches[word * WORD + place as usize].0;
            ends != 0 && last.is_some_and(|last| of(before, last) == of(at, 0))
        });
        let continued = if goes_on { ends & ends.wrapping_neg() } else { 0 };
        self.continued.0[at] = continued;
        self.passed.0[at] = if continued & self.last.0[at] == 0 { 0 } else { u64::MAX };
    }

    /// Pushes the branches of the links that are held, in order and each once. `held` are the words from `from` on.
    #[inline(always)]
    pub(crate) fn take(
        &self,
        from: usize,
        held: &[u64; BLOCK],
        progress: &mut Progress,
        branches: &mut Vec<Branch>,
    ) {
        if held.iter().fold(progress.taken, |any, word| any | word) == 0 {
            // With filters that are not full it is so with most blocks.
            return;
        }
        let (ends, last) = (self.ends.block(from), self.last.block(from));
        let (passed, continued) = (self.passed.block(from), self.continued.block(from));
        let hits: [u64; BLOCK] = std::array::from_fn(|word| hit(ends[word], held[word]));
        let ended: [u64; BLOCK] =
            std::array::from_fn(|word| if hits[word] & last[word] == 0 { 0 } else { u64::MAX });
        // Only this waits for the word before, for two instructions.
        let mut new = [0; BLOCK];
        for word in 0..BLOCK {
            let before = progress.taken;
            progress.taken = ended[word] | (passed[word] & before);
            new[word] = hits[word] & !(continued[word] & before);
        }
        let count = ones(&new, &mut progress.places);
        let all = &self.branches[from * WORD..];
        branches.extend(progress.places[..count].iter().map(|place| all[usize::from(*place)].0));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_xip::{Xid, XidType};

    use super::*;

    /// The runs, and the number of the branch of each link.
    #[derive(Default)]
    struct Twin {
        runs: Runs,
        words: Vec<Vec<u8>>,
    }

    fn branch(number: u8) -> Branch {
        match number {
            0 => Branch::Through,
            number => Branch::To(Xid::new(XidType::HID, [number; 20])),
        }
    }

    impl Twin {
        fn of(words: Vec<Vec<u8>>) -> Self {
            let mut twin = Self::default();
            twin.runs.reset(words.len());
            twin.words = words;
            (0..twin.words.len()).for_each(|at| twin.write(at));
            twin
        }

        fn write(&mut self, at: usize) {
            self.runs.write(at, self.words[at].iter().copied().map(branch));
        }

        fn insert(&mut self, at: usize, word: Vec<u8>) {
            self.words.insert(at, word);
            self.runs.insert_word(at);
            self.write(at);
        }

        fn remove(&mut self, at: usize) {
            self.words.remove(at);
            self.runs.remove_word(at);
        }

        /// `held` says which links of each word are held.
        fn check(&self, held: impl Fn(usize) -> u64) {
            let (mut found, mut progress) = (Vec::new(), Progress::default());
            for from in (0..self.words.len()).step_by(BLOCK) {
                let held = std::array::from_fn(|word| {
                    let links = self.words.get(from + word).map_or(0, Vec::len);
                    let all = u64::MAX.checked_shr(64 - links as u32).unwrap_or(0);
                    held(from + word) & all
                });
                self.runs.take(from, &held, &mut progress, &mut found);
            }
            let mut expected = Vec::new();
            for (at, word) in self.words.iter().enumerate() {
                let is_held = |place: &usize| held(at) >> place & 1 == 1;
                let places = (0..word.len()).filter(is_held);
                expected.extend(places.map(|place| branch(word[place])));
            }
            expected.dedup();
            assert_eq!(found, expected);
        }
    }

    /// Words whose links are in the order of their branches, and all links to one branch together.
    fn words(most: usize) -> impl Strategy<Value = Vec<Vec<u8>>> {
        let steps = prop::collection::vec(0_u8..3, 1..=WORD);
        let step_rarely = prop::collection::vec(prop::bool::weighted(0.02), 1..=WORD)
            .prop_map(|steps| steps.into_iter().map(u8::from).collect());
        prop::collection::vec(prop_oneof![steps, step_rarely], 0..most).prop_map(|words| {
            let mut last = 0_u8;
            let branch = |step: u8| {
                last = last.saturating_add(step);
                last
            };
            let mut branch_of = branch;
            let word = |steps: Vec<u8>| steps.into_iter().map(&mut branch_of).collect();
            words.into_iter().map(word).collect()
        })
    }

    proptest! {
        #[test]
        fn takes_the_branch_of_every_link_once(
            words in words(3 * BLOCK),
            held in prop::collection::vec(any::<u64>(), 3 * BLOCK),
            few in any::<u64>(),
        ) {
            let twin = Twin::of(words);
            twin.check(|word| held[word % held.len()]);
            twin.check(|word| held[word] & few);
            twin.check(|word| if held[word] % 5 == 0 { 1 << (few % 64) } else { 0 });
            twin.check(|_| u64::MAX);
            twin.check(|_| 0);
        }

        #[test]
        fn words_come_and_go(
            words in words(BLOCK + 3),
            removed in prop::collection::vec(any::<usize>(), 0..6),
            held in prop::collection::vec(any::<u64>(), BLOCK + 3),
        ) {
            let mut twin = Twin::of(words);
            for at in removed {
                let Some(at) = at.checked_rem(twin.words.len()) else { break };
                let word = twin.words[at].clone();
                twin.remove(at);
                twin.check(|word| held[word % held.len()]);
                if word.len() > 1 {
                    let (first, second) = word.split_at(word.len() / 2);
                    twin.insert(at, second.to_vec());
                    twin.check(|word| held[word % held.len()]);
                    twin.insert(at, first.to_vec());
                    twin.check(|word| held[word % held.len()]);
                }
            }
        }
    }
}
