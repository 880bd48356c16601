//! "Did you mean …": the accepted word most similar to an unknown one.
//!
//! Similarity is the optimal string alignment distance: the number of single letters inserted,
//! removed, replaced or swapped with their neighbour (Damerau 1964, restricted form).

/// Longer words get no suggestion; bounds the work.
const LONGEST: usize = 40;

/// The accepted word most similar to `word`, if one is similar enough; for "did you mean" in messages
/// of consumers that keep names of their own.
pub fn suggest<'a>(word: &str, accepted: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if word.len() > LONGEST {
        return None;
    }
    let allowed = (word.len() / 3).max(1);
    accepted
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= allowed && distance < candidate.len())
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

fn distance(word: &[char], candidate: &str) -> usize {
    let candidate: Vec<char> = candidate.chars().collect();
    let same = |i: usize, j: usize| word[i - 1].eq_ignore_ascii_case(&candidate[j - 1]);
    // `rows[i][j]`: distance of the first i letters of `word` to the first j of `candidate`.
    let mut rows = vec![vec![0; candidate.len() + 1]; word.len() + 1];
    rows[0] = (0..=candidate.len()).collect();
    for i in 1..=word.len() {
        rows[i][0] = i;
        for j in 1..=candidate.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(!same(i, j));
            let mut least = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && same(i, j - 1) && same(i - 1, j) {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[word.len()][candidate.len()]
}

/// "`a`, `b` or `c`".
pub(crate) fn list<W: AsRef<str>>(words: &[W]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_ref())).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_single_letter_mistakes() {
        let from = |a: &str, b| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(from("rate", "rate"), 0);
        assert_eq!(from("raet", "rate"), 1);
        assert_eq!(from("rat", "rate"), 1);
        assert_eq!(from("ratee", "rate"), 1);
        assert_eq!(from("", "rate"), 4);
        assert_eq!(from("loss", "rate"), 4);
    }

    #[test]
    fn nearest_word_is_suggested_and_distant_ones_are_not() {
        let accepted = ["rate", "delay", "loss"];
        assert_eq!(suggest("dealy", accepted), Some("delay"));
        assert_eq!(suggest("Loss", accepted), Some("loss"));
        assert_eq!(suggest("bandwidth", accepted), None);
        assert_eq!(suggest("x", ["y"]), None, "a single letter resembles nothing");
        assert_eq!(suggest(&"rate".repeat(1000), accepted), None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(list::<&str>(&[]), "nothing");
        assert_eq!(list(&["a"]), "`a`");
        assert_eq!(list(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
