//! `weft bgp replay`: opens a session with a router, and announces what a file in the form of MRT holds.
//!
//! It is a peer as any other to the router, and keeps nothing: what is read is told, page by page, as fast as the router takes it.
//!
//! Reference: RFC 6396; RFC 4271.

mod batch;
mod source;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::json;
use weft_bgp::numbers::cease;
use weft_bgp::wire::{Families, Family, Notification, end_of_rib};
use weft_config::FromWord;

use super::session::{CHUNK, Ends, PORT, Piece, Session, Unopened};
use crate::output::{Outcome, json_lines, print_lines, say};
use batch::{Batch, Teller};
use source::{Source, Step};

/// How long a router that closes connections, or takes none, is tried again: it may be about to open one itself.
const PATIENCE: Duration = Duration::from_secs(10);
const AGAIN: Duration = Duration::from_millis(200);
/// Batches that wait for the router; the file is read no further meanwhile.
const AHEAD: usize = 4;
/// How long the router may take to close the connection when it was told that the session ends.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(crate) struct ReplayArgs {
    /// The file; `-` for standard input
    file: PathBuf,
    /// The router, which has to have this machine as a peer
    #[arg(long, value_name = "ADDRESS")]
    to: IpAddr,
    /// The port where it listens
    #[arg(long, default_value_t = PORT)]
    port: u16,
    /// The number of this end's autonomous system; it comes in front of paths that do not begin with it, if the router is in another one
    #[arg(long = "as", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    autonomous_system: u32,
    /// The address to speak from [default: as the kernel chooses]
    #[arg(long, value_name = "ADDRESS")]
    local: Option<IpAddr>,
    /// The identifier of this end [default: its address, or the last four octets of that]
    #[arg(long, value_name = "ADDRESS")]
    router_id: Option<Ipv4Addr>,
    /// Only what this peer of the file has announced; of several the first that has announced a prefix [default: the first entry of each prefix]
    #[arg(long, value_name = "ADDRESS")]
    from_peer: Vec<IpAddr>,
    /// Next hops of IPv4 or IPv6, instead of this end's address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "keep_next_hop")]
    next_hop: Vec<IpAddr>,
    /// Leave the next hops as they are in the file
    #[arg(long)]
    keep_next_hop: bool,
    /// End the session after this time, such as 10min [default: when the command is interrupted]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    hold: Option<Duration>,
    /// End the session as soon as everything has been announced
    #[arg(long, conflicts_with = "hold")]
    leave: bool,
    /// Print what was announced as JSON
    #[arg(long)]
    json: bool,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    Duration::from_word(text).map_err(|error| error.to_string())
}

pub(super) fn run(args: &ReplayArgs) -> Outcome {
    let name = args.file.display().to_string();
    let file: Box<dyn Read> = if args.file == Path::new("-") {
        Box::new(io::stdin())
    } else {
        Box::new(File::open(&args.file).map_err(|error| format!("{name}: {error}"))?)
    };
    let mut source = Source::new(BufReader::new(file), &args.from_peer);
    // What is no such file is said before anybody is called.
    let mut next = None;
    let first = Batch::take(&mut next, &mut source).map_err(|why| format!("{name}: {why}"))?;
    if first.is_empty() {
        let passed_over = source.passed_over();
        return Err(format!(
            "{name}: there is nothing to announce in it ({passed_over} records passed over)"
        ));
    }
    let session = open(args)?;
    let local = session.local().map_err(|error| format!("the connection: {error}"))?;
    // Own addresses come behind those that were given.
    let own = args.next_hop.iter().copied().chain([local]).collect();
    let teller = Teller {
        context: *session.context(),
        autonomous_system: args.autonomous_system,
        next_hops: (!args.keep_next_hop).then_some(own),
        left_out: BTreeMap::new(),
    };
    let mut replay = Replay { session, teller, announced: 0, chunk: vec![0; CHUNK] };
    let told = replay.tell(first, &mut next, &mut source);
    if let Err(Ended::File(why)) = &told {
        // What was told goes with the session.
        replay.leave("the file cannot be read to its end");
        return Err(format!("{name}: {why}"));
    }
    told.map_err(|ended| ended.why(args.to))?;
    print_lines(replay.lines(args, source.passed_over()))?;
    let until = match (args.leave, args.hold) {
        (true, _) => Some(Instant::now()),
        (false, hold) => hold.and_then(|hold| Instant::now().checked_add(hold)),
    };
    replay.hold(until).map_err(|why| Ended::Session(why).why(args.to))?;
    replay.leave("the replay has ended");
    Ok(0)
}

/// Opens the session.
fn open(args: &ReplayArgs) -> Result<Session<u64>, String> {
    let ends = Ends {
        local: args.local,
        router: SocketAddr::new(args.to, args.port),
        autonomous_system: args.autonomous_system,
        identifier: args.router_id,
        families: Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]),
        // It has forgotten them.
        offers_refresh: false,
        hears_paths: false,
    };
    let until = Instant::now() + PATIENCE;
    loop {
        match Session::open(&ends) {
            Ok(session) => return Ok(session),
            Err(Unopened::Connection(_)) if Instant::now() < until => std::thread::sleep(AGAIN),
            Err(why) => {
                let hint = match &why {
                    Unopened::Connection(_) => {
                        ": does BGP run there, and is this address one of its peers?"
                    }
                    Unopened::Refused(_) | Unopened::Wrong(_) => "",
                };
                return Err(format!("{} opens no session: {why}{hint}", ends.router));
            }
        }
    }
}

/// Why not all was announced.
enum Ended {
    /// The file cannot be read.
    File(String),
    /// The session has ended.
    Session(String),
}

impl Ended {
    fn why(self, router: IpAddr) -> String {
        match self {
            Self::File(why) => why,
            Self::Session(why) => format!("the session with {router} has ended: {why}"),
        }
    }
}

/// A session that a file is told in.
struct Replay {
    session: Session<u64>,
    teller: Teller,
    /// Routes that the router has been sent.
    announced: u64,
    chunk: Vec<u8>,
}

impl Replay {
    /// Announces everything, and says that it was all (RFC 4724 §2).
    fn tell(
        &mut self,
        first: Batch,
        next: &mut Option<Step>,
        source: &mut Source<impl Read>,
    ) -> Result<(), Ended> {
        let shows_progress = io::stderr().is_terminal();
        let mut batch = first;
        while !batch.is_empty() {
            let (bytes, note) = self.teller.tell(batch);
            if !bytes.is_empty() {
                self.session.push(Piece { bytes: bytes.into(), note });
            }
            self.exchange_while(|session| session.waiting() >= AHEAD).map_err(Ended::Session)?;
            if shows_progress {
                eprint!("\r{} routes", self.announced);
            }
            batch = Batch::take(next, source).map_err(Ended::File)?;
        }
        for family in self.session.context().families.iter() {
            self.session.push(Piece { bytes: end_of_rib(family).into(), note: 0 });
        }
        self.exchange_while(Session::is_sending).map_err(Ended::Session)?;
        if shows_progress {
            eprint!("\r");
        }
        Ok(())
    }

    /// Sends and receives as long as that is so.
    fn exchange_while(&mut self, goes_on: impl Fn(&Session<u64>) -> bool) -> Result<(), String> {
        while goes_on(&self.session) {
            self.exchange(None)?;
        }
        Ok(())
    }

    /// Stays a peer of the router; forever without an end.
    fn hold(&mut self, until: Option<Instant>) -> Result<(), String> {
        while until.is_none_or(|until| Instant::now() < until) {
            self.exchange(until)?;
        }
        Ok(())
    }

    /// Waits for something to do, until then at most, and does it. What the router announces is read, and forgotten.
    fn exchange(&mut self, until: Option<Instant>) -> Result<(), String> {
        let session = &mut self.session;
        let mut wanted = PollFlags::IN;
        wanted.set(PollFlags::OUT, session.is_sending());
        let mut fds = [PollFd::from_borrowed_fd(session.fd(), wanted)];
        let deadline = until.map_or(session.deadline(), |until| until.min(session.deadline()));
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Err(error) if error != rustix::io::Errno::INTR => return Err(error.to_string()),
            _ => {}
        }
        let announced = &mut self.announced;
        let sent = session.send(|note, _, _| *announced += note);
        // A router that ends the session says why, although nothing can be sent any more.
        session.receive(&mut self.chunk, |_, _, _| {})?;
        if let Some(silence) = session.silent_for() {
            return Err(format!("the router has said nothing for {} seconds", silence.as_secs()));
        }
        sent
    }

    /// Tells the router that the session ends, and why.
    fn leave(&mut self, why: &str) {
        let bytes = Notification::cease_with_text(cease::ADMIN_SHUTDOWN, why).emit();
        self.session.push(Piece { bytes: bytes.into(), note: 0 });
        let until = Instant::now() + FAREWELL;
        // The router closes the connection when it has read everything.
        while Instant::now() < until && self.exchange(Some(until)).is_ok() {}
    }

    /// What was announced.
    fn lines(&self, args: &ReplayArgs, passed_over: u64) -> Vec<String> {
        let left_out = &self.teller.left_out;
        if args.json {
            return json_lines(&json!({
                "announced": self.announced, "left-out": left_out, "records-passed-over": passed_over,
            }));
        }
        for (why, count) in left_out {
            say(&format!("{count} routes were left out: {why}"));
        }
        if passed_over > 0 {
            say(&format!("{passed_over} records were passed over"));
        }
        vec![format!("{} routes announced to {}", self.announced, args.to)]
    }
}
