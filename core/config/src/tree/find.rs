//! The statements that a path leads to, such as that of `show xia principal hid`.

use crate::error::Errors;

use super::node::Level;
use super::{Node, Tree};

impl Tree {
    /// The statements that a path leads to, each with all that is in it. The path is written as in a
    /// command, words of blocks before those of statements in them; the words of the last statement may
    /// be left out from behind, which finds all that begin so.
    ///
    /// ```
    /// let text = "version 1; xia { principal hid; principal ad { local ad-7; } copies 3; }";
    /// let tree = weft_config::Tree::parse("node.conf", text).unwrap();
    /// let found = |path| tree.find(path).unwrap().iter().map(ToString::to_string).collect::<String>();
    /// assert_eq!(found("xia principal"), "principal hid;\nprincipal ad {\n    local ad-7;\n}\n");
    /// assert_eq!(found("xia principal ad local"), "local ad-7;\n");
    /// assert_eq!(found("xia copy"), "");
    /// ```
    ///
    /// # Errors
    /// The path is not made of words.
    pub fn find(&self, path: &str) -> Result<Vec<&Node>, Errors> {
        let path = Self::parse_part("command", &format!("{path};"))?;
        let words: Vec<&str> =
            path.statements().flat_map(Node::words).map(|word| word.text()).collect();
        let mut found = Vec::new();
        if !words.is_empty() {
            find(&self.root, &words, &mut found);
        }
        Ok(found)
    }
}

fn find<'a>(level: &'a Level, path: &[&str], found: &mut Vec<&'a Node>) {
    for node in &level.nodes {
        let same = node.words.iter().zip(path).all(|(word, wanted)| word.text() == *wanted);
        match (&node.block, path.get(node.words.len()..)) {
            _ if !same => {}
            (Some(block), Some(rest @ [_, ..])) => find(block, rest, found),
            (None, Some([_, ..])) => {}
            _ => found.push(node),
        }
    }
}
