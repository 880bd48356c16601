//! `node NAME { kind …; … }`.

use weft_config::{Block, Entry, Error, Errors, Keyword, Located, Name, Statement, gather};

use super::command::CommandLine;
use super::names::{Meaning, Names};
use super::router::{Router, RouterKind};
use super::template::Template;

/// A machine of the lab.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: Located<Name>,
    pub(crate) kind: NodeKind,
    /// Whether its process is started by a step, not with the lab.
    pub(crate) is_deferred: bool,
}

/// What runs on a node.
#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    /// The stack of the host program, with this configuration.
    Weft(Vec<ConfigStatement>),
    /// The kernel's IPv4 forwarding and nothing else.
    Linux,
    /// A program.
    Command {
        /// What is started.
        run: CommandLine,
        /// What it writes when it can be used; without, it counts as ready at once.
        ready: Option<Template>,
    },
    /// A router of others.
    Router(Router),
}

/// A statement of a node's configuration in which names are still to be replaced.
#[derive(Debug, Clone)]
pub(crate) struct ConfigStatement {
    words: Vec<Template>,
    block: Option<Vec<ConfigStatement>>,
}

/// The word after `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KindWord {
    Weft,
    Linux,
    Command,
    Router(RouterKind),
}

impl Keyword for KindWord {
    const WHAT: &'static str = "a kind of node";
    const ALL: &'static [(&'static str, Self)] = &[
        ("weft", Self::Weft),
        ("linux", Self::Linux),
        ("command", Self::Command),
        ("bird", Self::Router(RouterKind::Bird)),
        ("frr", Self::Router(RouterKind::Frr)),
        ("gobgp", Self::Router(RouterKind::GoBgp)),
        ("exabgp", Self::Router(RouterKind::ExaBgp)),
    ];
}

impl NodeKind {
    /// The word for it in lab files.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Weft(_) => "weft",
            Self::Linux => "linux",
            Self::Command { .. } => "command",
            Self::Router(router) => router.kind.word(),
        }
    }
}

impl Node {
    /// What `@NAME` means for this node, which has place `index`.
    fn meaning(kind: KindWord, index: usize) -> Meaning {
        if kind == KindWord::Weft { Meaning::Node(index) } else { Meaning::Nameless }
    }

    /// Whether a process of the node's name runs on it.
    pub(crate) fn has_process(&self) -> bool {
        !matches!(self.kind, NodeKind::Linux)
    }

    /// Whether its kernel forwards packets for others from the beginning.
    pub(crate) fn forwards(&self) -> bool {
        matches!(self.kind, NodeKind::Linux | NodeKind::Router(_))
    }

    /// Whether it is the host program's stack.
    pub(crate) fn is_weft(&self) -> bool {
        matches!(self.kind, NodeKind::Weft(_))
    }
}

/// A node whose name and kind were read, so that other statements can name it.
pub(super) struct Header<'d> {
    name: Located<Name>,
    kind: KindWord,
    entry: Entry<'d>,
    block: Block<'d>,
}

/// Reads names and kinds, and adds them to `names`.
pub(super) fn read_headers<'d>(
    block: &mut Block<'d>,
    names: &mut Names,
) -> Result<Vec<Header<'d>>, Errors> {
    gather(block.many("node").into_iter().enumerate().map(|(index, mut entry)| {
        let name: Located<Name> = entry.argument("the name of the node")?;
        let mut block = entry.block()?;
        let kind = block.required("kind")?;
        names.add(&name, Node::meaning(kind, index))?;
        Ok(Header { name, kind, entry, block })
    }))
}

/// Reads the rest of a node.
pub(super) fn read_body(header: Header<'_>, names: &Names) -> Result<Node, Errors> {
    let Header { name, kind, entry, block } = header;
    block.read(|block| {
        let is_deferred = kind != KindWord::Linux && block.leaf("start")? == Some(false);
        let kind = match kind {
            KindWord::Weft => NodeKind::Weft(read_config(block, &entry, names)?),
            KindWord::Linux => NodeKind::Linux,
            KindWord::Command => read_command(block, names)?,
            KindWord::Router(kind) => {
                NodeKind::Router(Router::read(kind, is_deferred, block, &entry, names)?)
            }
        };
        Ok(Node { name, kind, is_deferred })
    })
}

fn read_config(
    block: &mut Block<'_>,
    node: &Entry<'_>,
    names: &Names,
) -> Result<Vec<ConfigStatement>, Errors> {
    let config = block.required_one("config")?;
    config.block()?;
    let statements = config.statement().block().unwrap_or_default();
    statements.iter().map(|statement| ConfigStatement::read(statement, node, names)).collect()
}

fn read_command(block: &mut Block<'_>, names: &Names) -> Result<NodeKind, Errors> {
    let run = CommandLine::parse(block.required("run")?, names)?;
    let ready: Option<Located<String>> = block.leaf("ready")?;
    let ready = ready.map(|text| Template::parse(&text.value, &text, names)).transpose()?;
    Ok(NodeKind::Command { run, ready })
}

impl ConfigStatement {
    /// `node` is the statement that messages point at if `statement` has no place of its own.
    fn read(statement: &Statement, node: &Entry<'_>, names: &Names) -> Result<Self, Errors> {
        let template = |word: &weft_config::Word| -> Result<Template, Error> {
            let location = node.location_of(word.span());
            Template::parse(word.text(), &Located { value: String::new(), location }, names)
        };
        let words = statement.words().iter().map(template).collect::<Result<_, _>>()?;
        let read = |inner: &Statement| Self::read(inner, node, names);
        let block = statement.block().map(|inner| gather(inner.iter().map(read))).transpose()?;
        Ok(Self { words, block })
    }

    /// The statement with the values in place of the names.
    pub(crate) fn expand<'v>(&self, value: &impl Fn(Meaning) -> &'v str) -> Statement {
        // The parser gives every statement at least one word.
        let mut words = self.words.iter().map(|word| word.expand(value));
        let keyword = words.next().unwrap_or_default();
        let statement = words.fold(Statement::new(&keyword), |all, word| all.word(word.as_str()));
        match &self.block {
            None => statement,
            Some(block) => statement.children(block.iter().map(|inner| inner.expand(value))),
        }
    }
}
