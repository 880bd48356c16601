//! What a commit changes, component by component, in an order in which every step makes sense.

use weft_config::Tree;

use crate::messages::BlockChange;
use crate::parts::Parts;

/// The changes from `old` to `new`: first what goes away, with those first that need others; then what
/// changes or comes, with those first that others need. `parts` says which, and what each is
/// given.
pub(crate) fn changes(old: &Tree, new: &Tree, parts: &Parts) -> Vec<BlockChange> {
    let mut names = new.names();
    names.extend(old.names().into_iter().filter(|name| new.names().iter().all(|new| new != name)));
    names.sort_by_key(|name| parts.rank(name));
    let change = |name: &str| BlockChange {
        name: name.to_owned(),
        old: parts.of(old, name),
        new: parts.of(new, name),
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
        let order = ["fea", "rib", "bgp", "rip"].map(str::to_owned).to_vec();
        let parts = Parts::from(order).with("bgp", &["sets"]);
        let named = |old: &str, new: &str| -> Vec<String> {
            let name = |change: BlockChange| {
                let sign = if change.new.is_empty() { "-" } else { "+" };
                format!("{sign}{}", change.name)
            };
            changes(&tree(old), &tree(new), &parts).into_iter().map(name).collect()
        };
        assert_eq!(named("", "xia; bgp; fea; rib;"), ["+fea", "+rib", "+bgp", "+xia"]);
        assert_eq!(named("xia; bgp; fea; rib;", ""), ["-xia", "-bgp", "-rib", "-fea"]);
        assert_eq!(named("rip; bgp 1; fea;", "fea; bgp 2; bgp 3; rib;"), ["-rip", "+rib", "+bgp"]);
        assert_eq!(named("fea 1; rib;", "rib; fea 1;"), [""; 0]);
        // What a component reads is its own change, too, unless it is not there.
        assert_eq!(named("bgp; rip; sets 1;", "bgp; rip; sets 2;"), ["+bgp", "+sets"]);
        assert_eq!(named("bgp; sets 1;", "bgp;"), ["-sets", "+bgp"]);
        assert_eq!(named("sets 1;", "sets 2;"), ["+sets"]);
        assert_eq!(named("bgp; sets 1;", "sets 1;"), ["-bgp"]);
    }
}
