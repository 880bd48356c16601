//! The lines that `xip` prints for an entry of a table. No flag is ever set here: what weft shows is in use.

/// The end of each entry, in front of an empty line.
const FLAGS: &str = "flags []";

/// An entry of a local table, or of the main table with its gateway.
pub(super) fn entry(xid: &str, gateway: Option<&str>) -> Vec<String> {
    let gateway = gateway.map(|gateway| format!("gw {gateway}")).unwrap_or_default();
    vec![format!("to {xid}"), format!("{gateway} {FLAGS}"), String::new()]
}

/// Something with lines of its own between its name and its end.
pub(super) fn block(
    first: String,
    more: impl IntoIterator<Item = String>,
    indent: &str,
) -> Vec<String> {
    let end = [format!("{indent}{FLAGS}"), String::new()];
    std::iter::once(first).chain(more).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_look_as_those_of_the_tool() {
        assert_eq!(entry("ad-1", None).join("\n"), "to ad-1\n flags []\n");
        assert_eq!(entry("ad-1", Some("hid-1")).join("\n"), "to ad-1\ngw hid-1 flags []\n");
        let lines = block("to hid-1".to_owned(), ["x".to_owned()], "");
        assert_eq!(lines.join("\n"), "to hid-1\nx\nflags []\n");
    }
}
