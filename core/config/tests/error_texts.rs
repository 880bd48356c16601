//! The texts that people see: each `tests/errors/NAME.conf` is read by a small consumer, and what it
//! reports is compared with `NAME.txt`. `UPDATE_FIXTURES=1` rewrites the latter, for review.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_config::{
    Block, ByteSize, Command, Document, Entry, Errors, Ipv4Interface, Keyword, Located, Name,
    Probability, Rate, gather,
};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Weft,
    Linux,
}

impl Keyword for Kind {
    const WHAT: &'static str = "a kind of node";
    const ALL: &'static [(&'static str, Self)] = &[("weft", Self::Weft), ("linux", Self::Linux)];
}

fn read_node(mut entry: Entry<'_>) -> Result<Located<Name>, Errors> {
    let name = entry.argument("the name of the node")?;
    entry.read_block(|block| {
        block.required::<Kind>("kind")?;
        block.leaf::<bool>("forwarding")?;
        block.leaf::<ByteSize>("memory")?;
        block.list::<Ipv4Interface>("address")?;
        Ok(name)
    })
}

fn read_link(mut entry: Entry<'_>, nodes: &[Located<Name>]) -> Result<(), Errors> {
    for end in ["the first end of the link", "the second end of the link"] {
        let node: Located<Name> = entry.argument(end)?;
        if !nodes.iter().any(|known| known.value == node.value) {
            return Err(node.error(format!("there is no node `{}`: define it", node.value)).into());
        }
    }
    entry.read_block(|block| {
        block.leaf::<Rate>("rate")?;
        block.leaf::<Duration>("delay")?;
        block.leaf::<Probability>("loss")?;
        block.leaf_in("queue", 1..=4096u32)?;
        Ok(())
    })
}

fn read_lab(block: &mut Block<'_>) -> Result<(), Errors> {
    let nodes = gather(block.many("node").into_iter().map(read_node))?;
    gather(block.many("link").into_iter().map(|link| read_link(link, &nodes)))?;
    Ok(())
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors")
}

/// Compares with the fixture, or writes it.
fn check(actual: &str, fixture: &Path) {
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        fs::write(fixture, actual).expect("the fixture can be written");
    }
    let expected = fs::read_to_string(fixture).expect("run with UPDATE_FIXTURES=1 to make it");
    assert_eq!(actual, expected, "{}", fixture.display());
}

#[test]
fn error_texts_are_those_of_the_fixtures() {
    let mut cases: Vec<PathBuf> = fs::read_dir(fixtures())
        .expect("the fixtures are there")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "conf"))
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        let name = case.file_name().expect("a file").to_string_lossy();
        let bytes = fs::read(&case).expect("a readable case");
        let result =
            Document::parse_bytes(&name, &bytes).and_then(|document| document.read(1, read_lab));
        let errors = result.expect_err(&name);
        check(&format!("{errors}\n"), &case.with_extension("txt"));
    }
}

#[test]
fn error_texts_of_commands_are_those_of_the_fixture() {
    let commands = [
        "",
        "link a",
        "link a b; link b c",
        "link a b { rate 10ms; }",
        "link a b c",
        "link 1 b",
        "link \u{1b}[31m b",
        "link \"\\u{1b}[31m\" b",
    ];
    let mut texts = String::new();
    for command in commands {
        let read = |command: &Command| -> Result<(), Errors> {
            let mut entry = command.entry();
            entry.argument::<Name>("the first end of the link")?;
            entry.argument::<Name>("the second end of the link")?;
            entry.end()?;
            Ok(())
        };
        let errors = Command::parse(command).and_then(|command| read(&command)).expect_err(command);
        texts.push_str(&format!("{}\n{errors}\n\n", command.escape_debug()));
    }
    check(&texts, &fixtures().join("commands.txt"));
}
