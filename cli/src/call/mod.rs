//! `weft call`: XRLs from the command line.
//!
//! Reference: Handley et al. (XORP), §6.1: the program `call_xrl`, by which any script can call any
//! component.

mod client;
mod list;
mod reach;
mod tool;

use std::path::{Path, PathBuf};
use std::time::Duration;

use weft_runtime::{Component, Process, real};
use weft_xrl::text::Xrl;
use weft_xrl::{Host, Identity, Input, Output, Part, Settings};

use crate::output::Outcome;
pub(crate) use client::Client;
pub(crate) use reach::{CallableArgs, Reach};
use tool::Tool;

#[derive(Debug, clap::Args)]
pub(crate) struct CallArgs {
    /// What to call, such as 'finder://manager/manager/1.0/processes'
    #[arg(value_name = "XRL", required_unless_present_any = ["file", "list"])]
    xrls: Vec<String>,
    /// Call what is in a file, one XRL per line; `-` is standard input, `#` begins a remark
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Show what can be called, with arguments and documentation; of one target, if it is named
    #[arg(short, long, conflicts_with = "file")]
    list: bool,
    /// How long a call may take, in milliseconds
    #[arg(short, long, value_name = "MS", default_value_t = 5000,
        value_parser = clap::value_parser!(u64).range(1..=600_000))]
    timeout: u64,
    /// Go on after a call that failed
    #[arg(short, long)]
    keep_going: bool,
    #[command(flatten)]
    node: CallableArgs,
}

/// One call, and where it was written.
#[derive(Debug)]
pub(super) struct Line {
    place: String,
    xrl: Xrl,
}

pub(crate) fn run(args: &CallArgs) -> Outcome {
    // What is wrong with the calls is said before anybody is looked for.
    let component = component(args)?;
    let reach = Reach::find(&args.node)?;
    Ok(real::run(caller("call", component, &reach), reach.options()))
}

/// The process that makes the calls on a simulated machine.
pub(crate) fn process(args: &CallArgs, directory: &Path) -> Result<Box<dyn Process>, String> {
    if args.file.is_some() {
        return Err("`weft call` reads no file in the simulator; name the calls".to_owned());
    }
    Ok(caller("call", component(args)?, &Reach::directory(directory)))
}

type Caller = Box<dyn Component<Input = Input, Output = Output>>;

fn component(args: &CallArgs) -> Result<Caller, String> {
    Ok(match args.list {
        true => Box::new(list::List::new(args.xrls.first().cloned())),
        false => {
            let lines = lines(args)?;
            Box::new(Tool::new(lines, Duration::from_millis(args.timeout), args.keep_going))
        }
    })
}

/// A process that only calls: the tool `name`, at a node.
pub(crate) fn caller(name: &str, component: Caller, reach: &Reach) -> Box<dyn Process> {
    let settings = Settings {
        finder: Some(reach.finder()),
        listen: None,
        credential: Identity::User,
        ports_from_fea: false,
    };
    let part = Part {
        class: String::new(),
        instance: name.to_owned(),
        sole: false,
        interfaces: Vec::new(),
        component,
    };
    Box::new(Host::new(settings, vec![part]))
}

/// The calls to make; all are read before the first is made.
fn lines(args: &CallArgs) -> Result<Vec<Line>, String> {
    let mut texts: Vec<(String, String)> =
        args.xrls.iter().map(|text| ("the XRL".to_owned(), text.clone())).collect();
    if let Some(file) = &args.file {
        let (name, text) = match file.to_str() {
            Some("-") => ("standard input".to_owned(), std::io::read_to_string(std::io::stdin())),
            _ => (file.display().to_string(), std::fs::read_to_string(file)),
        };
        let text = text.map_err(|error| format!("cannot read {name}: {error}"))?;
        let numbered = text.lines().enumerate();
        texts.extend(
            numbered
                .map(|(index, line)| {
                    (format!("{name}, line {}", index + 1), line.trim().to_owned())
                })
                .filter(|(_, line)| !line.is_empty() && !line.starts_with('#')),
        );
    }
    let parse = |(place, text): (String, String)| match text.parse::<Xrl>() {
        Ok(xrl) if xrl.protocol != weft_xrl::FINDER => Err(format!(
            "{place}: the protocol `{}` is not known; an XRL to be resolved begins with `finder://`",
            xrl.protocol
        )),
        Ok(xrl) => Ok(Line { place, xrl }),
        Err(error) => Err(format!("{place}: {}", error.shown(&text))),
    };
    texts.into_iter().map(parse).collect()
}
