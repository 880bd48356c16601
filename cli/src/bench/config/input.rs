//! The configuration that is measured: sessions with neighbours, as a border router has them.

use std::fmt::Write;

use serde_json::{Value, json};
use weft_config::Node;

/// What it may say.
pub(super) const SCHEMA: &str = r#"version 1;
container bgp {
    leaf local-as number { mandatory; range 1 4294967295; }
    list peer {
        key address address;
        leaf as number { mandatory; range 1 4294967295; }
        leaf description text;
        leaf hold-time duration { range 3s 65535s; default 90s; }
        leaf mode one-of active passive;
        leaf password text { secret; }
        leaf-list import prefix;
    }
}
container static {
    list route {
        key destination prefix;
        leaf via address;
    }
    words discard { usage "PREFIX"; }
}
"#;

/// How the lines are spread over blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Blocks of ten lines.
    Blocks,
    /// A statement in each line of one block.
    Flat,
}

impl Form {
    pub(super) const ALL: &[Self] = &[Self::Blocks, Self::Flat];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks of ten lines",
            Self::Flat => "one block",
        }
    }

    /// A file of this many lines, and a few more.
    pub(super) fn text(self, lines: usize) -> String {
        let mut text = String::from("version 1;\n");
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Blocks => (0..lines / 10).try_for_each(|index| peer(&mut text, index)),
            Self::Flat => (0..lines).try_for_each(|index| {
                let head = if index == 0 { "static {\n" } else { "" };
                writeln!(text, "{head}    discard {}/32;", address(index))
            }),
        };
        text.push_str("}\n");
        text
    }

    /// A command that changes one line in the middle, to another value in each run.
    pub(super) fn change(self, lines: usize, run: usize) -> String {
        match self {
            Self::Blocks => {
                let middle = address(lines / 20);
                format!("set bgp peer {middle} hold-time {}s", 100 + run)
            }
            Self::Flat => format!("set static discard 192.0.{}.{}/32", run / 256 % 256, run % 256),
        }
    }
}

fn address(index: usize) -> String {
    format!("10.{}.{}.{}", index >> 16 & 255, index >> 8 & 255, index & 255)
}

fn peer(text: &mut String, index: usize) -> std::fmt::Result {
    if index == 0 {
        writeln!(text, "bgp {{\n    local-as 65000;")?;
    }
    writeln!(text, "    peer {} {{ # row {}", address(index), index / 32)?;
    writeln!(text, "        as {};", 64_512 + index)?;
    writeln!(text, "        description \"neighbour number {index}\";")?;
    writeln!(text, "        hold-time 90s;")?;
    writeln!(text, "        mode passive;")?;
    writeln!(text, "        password \"not a good one {index}\";")?;
    for import in 0..3 {
        writeln!(text, "        import 172.{}.{}.0/24;", 16 + import, index & 255)?;
    }
    writeln!(text, "    }}")
}

/// The same statements as JSON.
pub(super) fn json<'n>(nodes: impl Iterator<Item = &'n Node>) -> Value {
    let statement = |node: &Node| {
        let words: Vec<&str> = node.words().iter().map(|word| word.text()).collect();
        match node.block() {
            Some(block) => json!({ "words": words, "block": json(block) }),
            None => json!({ "words": words }),
        }
    };
    Value::Array(nodes.map(statement).collect())
}
