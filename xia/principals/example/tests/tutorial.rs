//! The handbook's page shows this crate's code, and all of it that matters, and what makes it part of the binary.

const PAGE: &str = include_str!("../../../../docs/src/xia/own-principal.md");
const CODE: &str = include_str!("../src/lib.rs");
/// What the crate touches outside of its folder.
const OUTSIDE: [&str; 3] = [
    include_str!("../../../../cli/src/registry.rs"),
    include_str!("../../../../cli/Cargo.toml"),
    include_str!("../../../../Cargo.toml"),
];

/// The blocks of code in the page that begin with this mark.
fn blocks(mark: &str) -> Vec<&'static str> {
    PAGE.split(mark).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_page_shows_the_code_of_the_crate() {
    let blocks = blocks("```rust,ignore\n");
    assert!(blocks.len() >= 5, "{} blocks of code", blocks.len());
    // The last is the line of the registry.
    let (last, code) = blocks.split_last().unwrap();
    for block in code {
        assert!(CODE.contains(block), "not in the crate's code:\n{block}");
    }
    assert!(OUTSIDE[0].contains(last), "not in the registry:\n{last}");
    let lines = self::blocks("```toml\n");
    assert_eq!(lines.len(), 2, "{lines:?}");
    for line in lines {
        assert!(OUTSIDE[1..].iter().any(|file| file.contains(line)), "not for cargo:\n{line}");
    }
    for what in ["fn kind", "fn lookup", "fn set", "fn delete", "fn show", "fn read", "STATEMENTS"]
    {
        assert!(blocks.iter().any(|block| block.contains(what)), "{what} is not explained");
    }
}

#[test]
fn the_page_knows_how_long_the_code_is() {
    assert!(CODE.lines().count() <= 160, "the page says about 150 lines");
}
