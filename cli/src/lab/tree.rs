//! `weft lab tree`: writes the lab file of a multicast tree of any size.
//!
//! A zFilter holds some twenty links, so the tree is one *virtual link*: every router has its
//! branches under the one identifier `tree`, and every receiver is local to it (Jokela et al.,
//! "LIPSIN", SIGCOMM 2009, on virtual links). A packet's filter needs that one identifier only.

use std::fmt::Write;

use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches};

use crate::output::print_lines;

/// How many nodes a tree may have. Ten times as many as the largest that was ever run.
const MOST_NODES: u64 = 200_000;

/// The options of `weft lab tree`, of which it is known that the tree is not too large.
#[derive(Debug)]
pub(crate) struct TreeArgs(Shape);

impl clap::Args for TreeArgs {
    fn augment_args(command: Command) -> Command {
        Shape::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Shape::augment_args_for_update(command)
    }
}

impl FromArgMatches for TreeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Shape::from_arg_matches(matches)?.checked().map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The shape of the tree and what is sent through it.
#[derive(Debug, clap::Args)]
struct Shape {
    /// Branches of each node that is not a receiver
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=60))]
    fan_out: u32,
    /// Links between the server and each receiver
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=6))]
    depth: u32,
    /// Loss of each link
    #[arg(long, default_value = "1%")]
    loss: String,
    /// How much is pushed, of random bytes
    #[arg(long, default_value = "16MiB")]
    size: String,
    /// Datagrams per second in bits
    #[arg(long, default_value = "100Mbit/s")]
    rate: String,
    /// The seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Shape {
    /// How many nodes the tree has, receivers and the server included.
    fn nodes(&self) -> u64 {
        let level = |depth| u64::from(self.fan_out).saturating_pow(depth);
        (0..=self.depth).map(level).fold(0, u64::saturating_add)
    }

    fn checked(self) -> Result<Self, clap::Error> {
        let nodes = self.nodes();
        if nodes <= MOST_NODES {
            return Ok(self);
        }
        let message = format!(
            "a tree of fan-out {} and depth {} has {nodes} nodes, and at most {MOST_NODES} are \
             written: choose a smaller fan-out or depth",
            self.fan_out, self.depth
        );
        Err(clap::Error::raw(ErrorKind::ValueValidation, message))
    }
}

/// One node: the numbers of the branches that lead to it, joined by hyphens.
struct Place {
    name: String,
    depth: u32,
}

/// Prints the lab file.
pub(crate) fn print(args: &TreeArgs) -> Result<(), String> {
    print_lines(lab_file(&args.0).lines())
}

fn lab_file(args: &Shape) -> String {
    let places = places(args);
    let receivers: Vec<&Place> = places.iter().filter(|place| place.depth == args.depth).collect();
    let mut text = format!(
        "# A tree of depth {} with {} receivers, written by `weft lab tree`.\nversion 1;\nlab tree {{\n    \
         seed {};\n    alias files xdp \"weft tree files\";\n    alias all zf tree;\n    \
         file payload size {};\n    link-defaults {{ loss {}; delay 1ms; }}\n",
        args.depth,
        receivers.len(),
        args.seed,
        args.size,
        args.loss
    );
    for place in &places {
        push_node(&mut text, place, args);
    }
    push_scenario(&mut text, &receivers, args);
    text.push_str("}\n");
    text
}

/// All nodes, the server first, parents before children.
fn places(args: &Shape) -> Vec<Place> {
    let mut places = vec![Place { name: "server".to_owned(), depth: 0 }];
    let mut next = 0;
    while next < places.len() {
        if places[next].depth < args.depth {
            for branch in 1..=args.fan_out {
                let (name, depth) = (child_name(&places[next], branch), places[next].depth + 1);
                places.push(Place { name, depth });
            }
        }
        next += 1;
    }
    places
}

fn child_name(parent: &Place, branch: u32) -> String {
    if parent.depth == 0 { format!("n{branch}") } else { format!("{}-{branch}", parent.name) }
}

fn push_node(text: &mut String, place: &Place, args: &Shape) {
    let branches = 1..=if place.depth < args.depth { args.fan_out } else { 0 };
    let mut interfaces: Vec<String> =
        branches.clone().map(|branch| format!("down{branch}")).collect();
    if place.depth > 0 {
        interfaces.insert(0, "up".to_owned());
    }
    let routes = branches
        .clone()
        .map(|branch| format!(" route link tree via @{};", child_name(place, branch)));
    let mut links: String = routes.collect();
    if place.depth == args.depth {
        links.push_str(" local link tree;");
    }
    let name = &place.name;
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "    node {name} {{ kind weft; config {{ xia {{ interface {}; principal hid; principal xdp; \
         principal zf {{{links} }} }} }} }}",
        interfaces.join(" ")
    );
    for branch in branches {
        let child = child_name(place, branch);
        let _ = writeln!(text, "    link {name}:down{branch} {child}:up;");
    }
}

fn push_scenario(text: &mut String, receivers: &[&Place], args: &Shape) {
    text.push_str("    scenario default {\n");
    let mut step = |line: String| {
        let _ = writeln!(text, "        {line};");
    };
    for place in receivers {
        let name = &place.name;
        step(format!(
            "run {name} \"weft xia receive {name} --bind @files --count 1\" as rx-{name}"
        ));
    }
    step("# Neighbour discovery repeats what was lost; then every router knows its branches\n        after 60s".to_owned());
    let rate = &args.rate;
    step(format!(
        "run server \"weft xia push payload --to @all-1:@files-0 --rate {rate}\" as sender"
    ));
    for place in receivers {
        step(format!("wait-exit rx-{} timeout 1h", place.name));
    }
    step("stop sender".to_owned());
    let files = receivers.iter().map(|place| format!(" {0}/payload", place.name));
    step(format!("expect-files-equal payload{}", files.collect::<String>()));
    text.push_str("    }\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(fan_out: u32, depth: u32) -> Shape {
        let (loss, size, rate) = ("1%".to_owned(), "1MiB".to_owned(), "10Mbit/s".to_owned());
        Shape { fan_out, depth, loss, size, rate, seed: 4 }
    }

    #[test]
    fn trees_that_are_too_large_are_refused() {
        assert_eq!(shape(10, 5).checked().unwrap().nodes(), 111_111);
        assert_eq!(shape(1, 6).checked().unwrap().nodes(), 7);
        let error = shape(60, 6).checked().unwrap_err().to_string();
        assert!(error.contains("has 47446779661 nodes"), "{error}");
        assert!(error.contains("choose a smaller fan-out or depth"), "{error}");
        assert!(shape(60, 3).checked().is_err());
    }

    #[test]
    fn the_file_that_is_written_is_a_lab() {
        let args = shape(3, 2);
        let lab = crate::lab::parse("tree", lab_file(&args).as_bytes(), Default::default(), None);
        let lab = lab.unwrap();
        assert_eq!(lab.nodes().count(), 1 + 3 + 9);
        assert_eq!(lab.seed(), 4);
    }
}
