//! `weft away`: a routing protocol that runs on another machine than its FEA and its RIB.
//!
//! Reference: Handley et al. (XORP), §7: protocols use the network through the FEA, so that they need not run where the
//! packets are.
//!
//! The process joins the node through its gateway, as an operator with a key: what it may call the node's configuration
//! says. The FEA relays its datagrams and tells it of the node's interfaces, and it tells the node's RIB. Nothing of the
//! node calls it, so it takes its configuration from a file, and shows nothing itself.

use std::path::{Path, PathBuf};

use weft_base::Instant;
use weft_config::{Document, Errors, VERSION, Word};
use weft_runtime::{Action, Component, Event, Level, real};
use weft_xrl::configurable::Configure;
use weft_xrl::{Call, Host, Identity, Input, Output, Part, Settings};

use crate::call::{CallableArgs, Reach};
use crate::node::component::{seed, wall};
use crate::output::{Outcome, print_lines};
use crate::registry;

#[derive(Debug, clap::Args)]
pub(crate) struct AwayArgs {
    /// The protocol, by the name of its statement
    protocol: String,
    /// The file with its statement, and those of policies that it names
    #[arg(required_unless_present = "access")]
    file: Option<PathBuf>,
    /// Only print what the protocol must be allowed to call, as the node's `operators` statement takes it
    #[arg(long, conflicts_with = "file")]
    access: bool,
    #[command(flatten)]
    node: CallableArgs,
}

pub(crate) fn run(args: &AwayArgs) -> Outcome {
    let name = &args.protocol;
    let protocol = registry::protocol(name).ok_or_else(|| {
        format!("there is no routing protocol `{name}` that runs away from its node: say rip, for example")
    })?;
    let Some(file) = &args.file else {
        print_lines([written(&protocol.access())])?;
        return Ok(0);
    };
    let configuration = read(file)?;
    let reach = Reach::find(&args.node)?;
    let [a, b, c, d, e, f, g, h, ..] = seed()?;
    let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let component = (protocol.make)(registry::beginning(seed, wall()));
    let settings = Settings {
        finder: Some(reach.finder()),
        listen: None,
        credential: Identity::User,
        ports_from_fea: true,
    };
    let teller = Part {
        class: String::new(),
        instance: "away".to_owned(),
        sole: false,
        interfaces: Vec::new(),
        component: Box::new(Teller {
            protocol: protocol.name,
            configuration: Some(configuration),
            said: String::new(),
        }),
    };
    let protocol = Part {
        class: protocol.name.to_owned(),
        instance: protocol.name.to_owned(),
        sole: false,
        interfaces: weft_protocol::interfaces(),
        component,
    };
    let process = Host::new(settings, vec![teller, protocol]);
    Ok(real::run(Box::new(process), reach.options()))
}

fn read(file: &Path) -> Result<Configure, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("cannot read the configuration {}: {error}", file.display()))?;
    let source = file.display().to_string();
    let text = without_version(&source, text).map_err(|errors| errors.to_string())?;
    Ok(Configure { source, line: 1, text })
}

/// A text without the version that it may begin with, as every node file does. What follows stays at its place, where
/// mistakes in it are shown.
fn without_version(source: &str, text: String) -> Result<String, Errors> {
    let document = Document::parse(source, &text)?;
    let Some(first) = document.statements().first().filter(|one| one.keyword() == "version") else {
        return Ok(text);
    };
    document.versioned(VERSION)?;
    let version = first.span().range();
    let blank = " ".repeat(version.len());
    Ok([&text[..version.start], &blank, &text[version.end..]].concat())
}

/// Words as a configuration takes them, in quotes where they need them.
fn written(words: &str) -> String {
    words.split_whitespace().map(|word| Word::from(word).to_string()).collect::<Vec<_>>().join(" ")
}

/// Tells the protocol its configuration, as the manager does on a node, and says how it gets on with the node.
struct Teller {
    protocol: &'static str,
    configuration: Option<Configure>,
    said: String,
}

impl Teller {
    fn say(&mut self, level: Level, line: String, out: &mut Vec<Output>) {
        if self.said != line {
            self.said.clone_from(&line);
            out.push(Output::World(Action::Report { level, line }));
        }
    }
}

impl Component for Teller {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, _: Instant, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::World(Event::Start) => {
                let told = self.configuration.take();
                out.extend(told.map(|one| Output::from(Call::new(1, self.protocol, one))));
            }
            Input::World(Event::Stop) => out.push(Output::World(Action::Exit { status: 0 })),
            Input::Replied { result: Err(error), .. } => {
                self.say(Level::Error, error.note, out);
                out.push(Output::World(Action::Exit { status: 1 }));
            }
            Input::Registered => {
                self.say(Level::Info, format!("{} has joined the node", self.protocol), out);
            }
            Input::NotRegistered(why) => {
                let line = format!("the node cannot be joined, and is tried again: {why}");
                self.say(Level::Warning, line, out);
            }
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_begin_with_the_version_and_mistakes_keep_their_places() {
        let read = |text: &str| without_version("rip.conf", text.to_owned());
        assert_eq!(read("rip;").unwrap(), "rip;");
        assert_eq!(read("# of r1\nversion 1; rip;\n").unwrap(), "# of r1\n           rip;\n");
        assert!(read("version 2; rip;").unwrap_err().to_string().contains("rip.conf:1:9"));
    }

    #[test]
    fn what_a_protocol_calls_can_be_put_into_a_configuration() {
        let rip = registry::protocol("rip").map(|one| written(&one.access())).unwrap();
        assert!(rip.contains(" \"fea/fea/1.0/open_relay?spec="), "{rip}");
        let text = format!("version 1; operators {{ user eve {{ access {rip}; }} }}");
        assert!(weft_config::Tree::parse("t", &text).is_ok(), "{rip}");
    }
}
