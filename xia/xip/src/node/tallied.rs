//! What a program counts in a table that outlives processes, as a process counts: from zero.
//!
//! The table may have counts of an earlier life of this process; and it may be a new one, when whoever made it lost
//! the old one.

use weft_base::Token;

/// Counts since the beginning.
#[derive(Debug, Default)]
pub(super) struct Tallied {
    /// What stands for the table.
    table: Option<Token>,
    /// The counts that were there at the beginning, and those of the last time.
    last: Option<Vec<u64>>,
    sums: Vec<u64>,
}

impl Tallied {
    /// From now on a table is told of under this token. It may be the same one as before.
    pub(super) fn begin(&mut self, table: Token) {
        self.table = Some(table);
    }

    /// What is in the table now.
    pub(super) fn told(&mut self, table: Token, counts: &[u64]) {
        if self.table != Some(table) {
            return;
        }
        self.sums.resize(counts.len(), 0);
        if let Some(last) = self.last.replace(counts.to_vec()) {
            let is_new = last.len() != counts.len() || last.iter().zip(counts).any(|(a, b)| b < a);
            for (index, (sum, count)) in self.sums.iter_mut().zip(counts).enumerate() {
                *sum += if is_new { *count } else { count - last[index] };
            }
        }
    }

    /// What was counted since the beginning, as far as it was told.
    pub(super) fn sums(&self) -> &[u64] {
        &self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_before_is_left_out_and_a_new_table_begins_at_zero() {
        let mut tallied = Tallied::default();
        assert_eq!(tallied.sums(), [0; 0]);
        tallied.begin(Token(1));
        tallied.told(Token(1), &[7, 100]);
        assert_eq!(tallied.sums(), [0, 0]);
        tallied.told(Token(1), &[8, 100]);
        tallied.told(Token(1), &[8, 103]);
        assert_eq!(tallied.sums(), [1, 3]);
        // The same table under another name.
        tallied.begin(Token(2));
        tallied.told(Token(1), &[0, 0]);
        tallied.told(Token(2), &[9, 103]);
        assert_eq!(tallied.sums(), [2, 3]);
        // Another one.
        tallied.told(Token(2), &[4, 0]);
        assert_eq!(tallied.sums(), [6, 3]);
    }
}
