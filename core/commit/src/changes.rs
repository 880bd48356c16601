//! What a commit changes, component by component, in an order in which every step makes sense.

use weft_config::Tree;

use crate::messages::BlockChange;

/// The changes from `old` to `new`: first what goes away, with those first that need others; then what
/// changes or comes, with those first that others need. `order` names these before those; names that it
/// does not know come last.
pub(crate) fn changes(old: &Tree, new: &Tree, order: &[String]) -> Vec<BlockChange> {
    let mut names = new.names();
    names.extend(old.names().into_iter().filter(|name| new.names().iter().all(|new| new != name)));
    let rank = |name: &str| order.iter().position(|known| known == name).unwrap_or(order.len());
    names.sort_by_key(|name| rank(name));
    let change = |name: &str| BlockChange {
        name: name.to_owned(),
        old: old.part(name),
        new: new.part(name),
    };
    let differs = |change: &BlockChange| change.old != change.new;
    let all: Vec<BlockChange> = names.into_iter().map(change).filter(differs).collect();
    let (mut gone, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|change| change.new.is_empty());
    gone.reverse();
    gone.extend(others);
    gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first_and_goes_last() {
        let tree = |text: &str| Tree::parse_part("t", text).unwrap();
        let order: Vec<String> = ["fea", "rib", "bgp", "rip"].map(str::to_owned).into();
        let named = |old: &str, new: &str| -> Vec<String> {
            let name = |change: BlockChange| {
                let sign = if change.new.is_empty() { "-" } else { "+" };
                format!("{sign}{}", change.name)
            };
            changes(&tree(old), &tree(new), &order).into_iter().map(name).collect()
        };
        assert_eq!(named("", "xia; bgp; fea; rib;"), ["+fea", "+rib", "+bgp", "+xia"]);
        assert_eq!(named("xia; bgp; fea; rib;", ""), ["-xia", "-bgp", "-rib", "-fea"]);
        assert_eq!(named("rip; bgp 1; fea;", "fea; bgp 2; bgp 3; rib;"), ["-rip", "+rib", "+bgp"]);
        assert_eq!(named("fea 1; rib;", "rib; fea 1;"), [""; 0]);
    }
}
