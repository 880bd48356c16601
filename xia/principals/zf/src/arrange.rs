//! Which links stand in a word together.
//!
//! A word is passed over if the filter lacks its head, so each word is to have links that share a bit, and is to be
//! full. With 10,000 links of five bits each of the 160 bits is in some 310 links, of which 62 can have it as
//! their head: about a word. Bits are taken as heads in the order of how many links have them, one after the other
//! (as sets are for a cover: Chvátal, "A Greedy Heuristic for the Set-Covering Problem", Mathematics of Operations
//! Research 4(3), 1979), for as many words as they fill. What is left at the end shares nothing.

use crate::filter::Bits;
use crate::index::WORD;
use crate::shape::Shape;

/// Fewer links than these are not worth a word with a head: such a word is looked at half as often, if filters are
/// half full.
const WORTH_A_HEAD: usize = WORD / 2;

/// A word to be: its shape, and the numbers of its links.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) shape: Shape,
    pub(crate) links: Vec<usize>,
}

/// Links that could stand together.
#[derive(Clone, Debug, Default)]
struct Candidates {
    /// Those that were taken since are among them.
    links: Vec<usize>,
    /// How many were not taken.
    left: usize,
}

/// Cuts links into words. Each is in one of them.
pub(crate) fn arrange(links: &[Bits]) -> Vec<Group> {
    let choices = |link: Bits| link.positions().map(move |head| Shape::of(link, Some(head)));
    let widest = links.iter().flat_map(|link| choices(*link)).map(|shape| shape.width).max();
    let widths = widest.map_or(0, |widest| widest + 1);
    let number = |shape: Shape| shape.head.map(|head| head * widths + shape.width);
    let mut all = vec![Candidates::default(); crate::FILTER_BITS as usize * widths];
    for (link, bits) in links.iter().enumerate() {
        for choice in choices(*bits).filter_map(number) {
            all[choice].links.push(link);
            all[choice].left += 1;
        }
    }
    let mut taken = vec![false; links.len()];
    let mut groups = Vec::new();
    while let Some((most, left)) = fullest(&all)
        && left >= WORTH_A_HEAD
    {
        let shape = Shape { head: Some(most / widths), width: most % widths };
        let count = if left < WORD { left } else { left / WORD * WORD };
        let candidates = std::mem::take(&mut all[most].links);
        let (mut chosen, mut others) = (Vec::new(), Vec::new());
        for link in candidates.into_iter().filter(|link| !taken[*link]) {
            if chosen.len() < count { chosen.push(link) } else { others.push(link) }
        }
        all[most].links = others;
        for link in &chosen {
            taken[*link] = true;
            choices(links[*link]).filter_map(number).for_each(|choice| all[choice].left -= 1);
        }
        let words = chosen.chunks(WORD);
        groups.extend(words.map(|links| Group { shape, links: links.to_vec() }));
    }
    let mut rest: Vec<_> = (0..links.len()).filter(|link| !taken[*link]).collect();
    // So that few words are wide.
    rest.sort_by_key(|link| Shape::of(links[*link], None).width);
    let words = rest.chunks(WORD);
    groups
        .extend(words.map(|rest| Group { shape: without_head(links, rest), links: rest.to_vec() }));
    // So that a search can foresee how many codes come next.
    groups.sort_by_key(|group| group.shape.width);
    groups
}

/// The choice that most links are left for, and how many.
fn fullest(all: &[Candidates]) -> Option<(usize, usize)> {
    let left = all.iter().map(|candidates| candidates.left).enumerate();
    left.max_by_key(|(_, left)| *left)
}

fn without_head(links: &[Bits], numbers: &[usize]) -> Shape {
    let widths = numbers.iter().map(|link| Shape::of(links[*link], None).width);
    Shape { head: None, width: widths.max().unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weft_xip::{Xid, XidType};

    use super::*;
    use crate::link_identifier;

    fn check(links: &[Bits]) -> Vec<Group> {
        let groups = arrange(links);
        let mut all: Vec<_> = groups.iter().flat_map(|group| group.links.clone()).collect();
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..links.len()), "every link once: {all:?}");
        for group in &groups {
            assert!((1..=WORD).contains(&group.links.len()));
            assert!(group.links.iter().all(|link| group.shape.fits(links[*link])), "{group:?}");
        }
        groups
    }

    fn named(count: usize) -> Vec<Bits> {
        (0..count).map(|n| Bits::of(&link_identifier(&format!("link {n}"), 5))).collect()
    }

    #[test]
    fn nearly_all_words_of_many_links_are_full_and_have_heads() {
        let groups = check(&named(10_000));
        assert!(groups.len() <= 10_000_usize.div_ceil(WORD) * 106 / 100, "{}", groups.len());
        let headless = groups.iter().filter(|group| group.shape.head.is_none()).count();
        assert!(headless <= groups.len() / 10, "{headless} of {}", groups.len());
        let lines: usize = groups.iter().map(|group| group.shape.width).sum();
        assert!(lines <= groups.len() * 44 / 10, "{lines} in {}", groups.len());
    }

    #[test]
    fn few_links_stand_in_as_few_words_as_they_fill() {
        assert!(check(&[]).is_empty());
        for count in [1, 63, 64, 65, 300] {
            assert_eq!(check(&named(count)).len(), count.div_ceil(WORD), "{count}");
        }
    }

    #[test]
    fn the_same_link_many_times_has_a_head() {
        let groups = check(&[named(1)[0]; 200]);
        assert_eq!(groups.len(), 4);
        let heads = groups.iter().filter(|group| group.shape.head.is_some());
        assert_eq!(heads.count(), 3);
    }

    proptest! {
        #[test]
        fn every_link_is_in_a_word_that_it_fits(
            links in prop::collection::vec((any::<[u8; 20]>(), any::<[u8; 20]>(), any::<bool>()), 0..300),
        ) {
            let bits = |(id, other, dense): ([u8; 20], [u8; 20], bool)| {
                // A quarter of the bits, and a third of the positions.
                let id = std::array::from_fn(|at| {
                    if dense { id[at] & other[at] } else { id[at] & other[at] & if at % 3 == 0 { 0x11 } else { 0 } }
                });
                Bits::of(&Xid::new(XidType::ZF, id))
            };
            check(&links.into_iter().map(bits).collect::<Vec<_>>());
        }
    }
}
