//! Who is served next of several who share what there is to give: who was served last comes last.
//!
//! Reference: Handley et al. (XORP), §5.1.1 (readers of one queue do not wait for each other).

/// Whose turn it is, of several in a list that stays the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turns {
    /// Who comes first, unless nothing is to be done for him.
    first: usize,
}

impl Turns {
    /// The next of these of whom this is true, who comes last from now on; none if there is no such.
    pub fn next<T: Copy>(&mut self, all: &[T], is_waiting: impl Fn(&T) -> bool) -> Option<T> {
        let (later, first) = all.split_at(self.first.min(all.len()));
        let mut order = (later.len()..).zip(first).chain((0..).zip(later));
        let (place, next) = order.find(|(_, one)| is_waiting(one))?;
        self.first = place + 1;
        Some(*next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_served_last_comes_last() {
        let mut turns = Turns::default();
        let all = ['a', 'b', 'c', 'd'];
        let mut take = |waiting: &str| turns.next(&all, |one| waiting.contains(*one));
        let served: String = (0..6).filter_map(|_| take("abcd")).collect();
        assert_eq!(served, "abcdab");
        let served: String = (0..5).filter_map(|_| take("bd")).collect();
        assert_eq!(served, "dbdbd");
        // Nobody waits, and then one alone.
        assert_eq!(
            (take(""), take("a"), take("a"), take("ab")),
            (None, Some('a'), Some('a'), Some('b'))
        );
    }
}
