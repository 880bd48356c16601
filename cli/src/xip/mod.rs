//! `weft xip …`: the verbs of `xip`, the tool of Linux XIA, for scripts that were written for it.
//!
//! Reference: AltraMayor/xiaconf, `xip/`: which objects and commands there are, how far their names may be
//! shortened, what they print, and with which status they end. What a command does it has done by the stack's
//! interface, `xia/1.0`, as `weft xia` has, so it is as live as that, and as little configured.
//!
//! The tool's options begin with one dash and may be shortened, so they and everything behind them are read here and
//! not by the reader of weft's own options. Where weft differs, the handbook says so ("The tool of Linux XIA").

mod context;
mod dst;
mod ether;
mod hid;
mod lines;
mod prefix;
mod read;
mod tables;
mod u4id;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use weft_xip::Names;

use crate::args::NodeArgs;
use crate::output::{Outcome, print_lines, say};
use context::Context;

/// Where the tool looks for the names of principals if it is not told.
const PRINCIPALS: &str = "/etc/xia/principals";

#[derive(Debug, clap::Args)]
pub(crate) struct XipArgs {
    /// The folder of hosts' keys; the private ones are in its folder `prv`
    #[arg(long, env = "WEFT_XIP_HID_DIR", default_value = "/etc/xia/hid", value_name = "DIR")]
    hid_dir: PathBuf,
    #[command(flatten)]
    node: NodeArgs,
    /// The tool's options, an object, a command, and what that takes; behind the options of weft
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Why a command came to nothing; each has the status with which the tool ends then.
#[derive(Debug, PartialEq, Eq)]
enum Failure {
    /// The words are no command: what is wrong, and how the object's commands are written.
    Usage(String, &'static str),
    /// A word is not what it should be, or something on this machine is missing.
    Wrong(String),
    /// The node refuses.
    Refused(String),
    /// Only how commands are written was asked for.
    Help(&'static str),
}

impl Failure {
    /// Says it on standard error; returns the status.
    fn say(&self) -> u8 {
        let usage = |usage: &&str| usage.lines().for_each(say);
        match self {
            Self::Usage(text, how) => {
                say(text);
                usage(how);
                255
            }
            Self::Wrong(text) => {
                say(text);
                1
            }
            Self::Refused(text) => {
                say(&format!("the node answers: {text}"));
                2
            }
            Self::Help(how) => {
                usage(how);
                1
            }
        }
    }
}

/// What a command prints.
type Printed = Result<Vec<String>, Failure>;

/// A command of an object, and what does it with the words behind it.
type Command = (&'static str, fn(&Context, &[&str]) -> Printed);

/// An object: its name, its commands in the order in which a shortened name is looked for, and how they are written.
struct Object {
    name: &'static str,
    commands: &'static [Command],
    usage: &'static str,
}

const OBJECTS: [Object; 9] = [
    Object { name: "ad", commands: tables::AD, usage: tables::AD_USAGE },
    Object { name: "dst", commands: dst::COMMANDS, usage: dst::USAGE },
    Object { name: "ether", commands: ether::COMMANDS, usage: ether::USAGE },
    Object { name: "hid", commands: hid::COMMANDS, usage: hid::USAGE },
    Object { name: "lpm", commands: tables::LPM, usage: tables::LPM_USAGE },
    Object { name: "serval", commands: &[], usage: "" },
    Object { name: "u4id", commands: u4id::COMMANDS, usage: u4id::USAGE },
    Object { name: "xdp", commands: tables::XDP, usage: tables::XDP_USAGE },
    Object { name: "zf", commands: tables::ZF, usage: tables::ZF_USAGE },
];

const USAGE: &str = "\
Usage: weft xip [OPTIONS] OBJECT { COMMAND | help }
       weft xip [-force] -batch FILE
where OBJECT is ad, dst, ether, hid, lpm, serval, u4id, xdp or zf,
      OPTIONS are -V[ersion], -s[tatistics], -d[etails], -o[neline], -t[imestamp], -b[atch] FILE,
      -force, --ppal-map FILE";

/// The tool's options.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    version: bool,
    force: bool,
    batch: Option<String>,
    principals: Option<String>,
}

/// Runs a command of the tool, or those of a file.
pub(crate) fn run(args: &XipArgs) -> Outcome {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    Ok(carry_out(args, &words).unwrap_or_else(|failure| failure.say()))
}

fn carry_out(args: &XipArgs, words: &[&str]) -> Result<u8, Failure> {
    let (options, words) = options(words)?;
    if options.version {
        let version = env!("CARGO_PKG_VERSION");
        print_lines([format!("xip utility, weft {version}")]).map_err(Failure::Wrong)?;
        return Ok(0);
    }
    let names = names(options.principals.as_deref())?;
    let context = Context::new(args.node.clone(), args.hid_dir.clone(), names);
    match &options.batch {
        Some(file) => batch(&context, file, options.force),
        None if words.is_empty() => Err(Failure::Usage("Object not specified".to_owned(), USAGE)),
        None => {
            print_lines(command(&context, words)?).map_err(Failure::Wrong)?;
            Ok(0)
        }
    }
}

/// Takes the options off the front.
fn options<'a>(mut words: &'a [&'a str]) -> Result<(Options, &'a [&'a str]), Failure> {
    let mut options = Options::default();
    while let Some((word, rest)) = words.split_first() {
        if *word == "--" {
            return Ok((options, rest));
        }
        if !word.starts_with('-') {
            break;
        }
        // Two dashes are as good as one.
        let word = if word.starts_with("--") { &word[1..] } else { word };
        words = rest;
        let mut value = || match words.split_first() {
            Some((value, rest)) => {
                words = rest;
                Ok(Some((*value).to_owned()))
            }
            None => Err(Failure::Usage(format!("Option \"{word}\" needs a file"), USAGE)),
        };
        let is = |option: &str| option.starts_with(word);
        // What these four change in the tool, it has nothing of for XIA.
        let ignored = ["-stats", "-statistics", "-details", "-oneline", "-timestamp"];
        if ignored.into_iter().any(is) {
        } else if is("-Version") {
            options.version = true;
        } else if is("-force") {
            options.force = true;
        } else if is("-batch") {
            options.batch = value()?;
        } else if is("-help") {
            return Err(Failure::Help(USAGE));
        } else if is("-ppal-map") {
            options.principals = value()?;
        } else {
            let text = format!("Option \"{word}\" is unknown, try \"xip -help\".");
            return Err(Failure::Wrong(text));
        }
    }
    Ok((options, words))
}

/// The names of principals: those of a file, or of the usual one if it is there.
fn names(file: Option<&str>) -> Result<Names, Failure> {
    let mut names = Names::new();
    let path = Path::new(file.unwrap_or(PRINCIPALS));
    let text = match fs::read_to_string(path) {
        Err(error) if file.is_none() && error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| {
            let path = path.display();
            Failure::Wrong(format!("Cannot open file \"{path}\" for reading: {error}"))
        })?,
    };
    for warning in names.load(&text) {
        say(&format!("{}: {warning}", path.display()));
    }
    Ok(names)
}

/// Carries out one command.
fn command(context: &Context, words: &[&str]) -> Printed {
    let Some((name, words)) = words.split_first() else {
        return Err(Failure::Usage("Object not specified".to_owned(), USAGE));
    };
    let Some(object) = OBJECTS.iter().find(|object| object.name.starts_with(name)) else {
        if "help".starts_with(name) {
            return Err(Failure::Help(USAGE));
        }
        let text = format!("Object \"{name}\" is unknown, try \"xip help\".");
        return Err(Failure::Usage(text, ""));
    };
    let name = object.name;
    if object.commands.is_empty() {
        return Err(Failure::Refused(format!(
            "weft has no principal `{name}`; `weft xia show` lists those that the node runs"
        )));
    }
    let Some((verb, words)) = words.split_first() else {
        let text = format!("Command not specified, try \"xip {name} help\".");
        return Err(Failure::Usage(text, ""));
    };
    match object.commands.iter().find(|(command, _)| command.starts_with(verb)) {
        Some((_, act)) => act(context, words).map_err(|failure| match failure {
            Failure::Usage(text, "") => Failure::Usage(text, object.usage),
            other => other,
        }),
        None if "help".starts_with(verb) => Err(Failure::Help(object.usage)),
        None => {
            let text = format!("Command \"{verb}\" is unknown, try \"xip {name} help\".");
            Err(Failure::Usage(text, ""))
        }
    }
}

/// Carries out the commands of a file, or of standard input for `-`, up to the first that fails, unless `force`.
fn batch(context: &Context, file: &str, force: bool) -> Result<u8, Failure> {
    let mut text = String::new();
    let read = match file {
        "-" => io::stdin().read_to_string(&mut text).map(drop),
        _ => fs::read_to_string(file).map(|content| text = content),
    };
    read.map_err(|error| {
        Failure::Wrong(format!("Cannot open file \"{file}\" for reading: {error}"))
    })?;
    let mut status = 0;
    for (number, line) in read::batch_lines(&text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match command(context, &words) {
            Ok(lines) => print_lines(lines).map_err(Failure::Wrong)?,
            Err(failure) => {
                failure.say();
                say(&format!("Command failed {file}:{number}"));
                status = 1;
                if !force {
                    break;
                }
            }
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(words: &'a [&'a str]) -> (Options, &'a [&'a str]) {
        options(words).unwrap()
    }

    #[test]
    fn options_may_be_short_and_have_one_dash_or_two() {
        let (options, rest) = read(&["-s", "--det", "-forc", "--ppal-map", "p", "ad", "-force"]);
        assert_eq!((options.force, options.principals.as_deref()), (true, Some("p")));
        assert_eq!(rest, ["ad", "-force"]);
        let (options, rest) = read(&["-b", "file"]);
        assert_eq!((options.batch.as_deref(), rest.len()), (Some("file"), 0));
        assert!(read(&["-V"]).0.version);
        assert_eq!(read(&["--", "-V"]), (Options::default(), &["-V"][..]));
    }

    #[test]
    fn mistakes_in_options_are_told() {
        let unknown = "Option \"-x\" is unknown, try \"xip -help\".".to_owned();
        assert_eq!(options(&["-x"]), Err(Failure::Wrong(unknown)));
        assert!(matches!(options(&["-batch"]), Err(Failure::Usage(..))));
        assert_eq!(options(&["-h"]), Err(Failure::Help(USAGE)));
    }

    #[test]
    fn objects_and_commands_are_found_by_their_first_letters() {
        let node = NodeArgs { node: Some("none".to_owned()), run_dir: None };
        let context = Context::new(node, PathBuf::new(), Names::new());
        let failure = |line: &str| {
            command(&context, &line.split_whitespace().collect::<Vec<_>>()).unwrap_err()
        };
        let text = |line: &str| match failure(line) {
            Failure::Usage(text, _) | Failure::Wrong(text) | Failure::Refused(text) => text,
            Failure::Help(how) => how.to_owned(),
        };
        assert_eq!(text("nonsense"), "Object \"nonsense\" is unknown, try \"xip help\".");
        assert_eq!(text("ad"), "Command not specified, try \"xip ad help\".");
        assert_eq!(text("a b"), "Command \"b\" is unknown, try \"xip ad help\".");
        assert_eq!(text("help"), USAGE);
        assert_eq!(text("h help"), hid::USAGE);
        assert_eq!(failure("l addl x"), {
            let text = "Wrong number of parameters".to_owned();
            Failure::Usage(text, tables::LPM_USAGE)
        });
        assert!(text("se showsockets").contains("weft has no principal `serval`"));
        assert_eq!(text("eth help"), ether::USAGE);
    }
}
