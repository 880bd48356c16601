//! What only a process of its own can show: signals, standard input and output.
//!
//! The test program starts itself again with the name of a role in its environment.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use weft_base::{FileId, Token};

use super::Turn;
use crate::real::{Options, run};
use crate::{Action, DiskReply, DiskRequest, Event, Level, OpenMode};

const ROLE: &str = "WEFT_TEST_ROLE";
/// How much the wordy child prints: more than a pipe takes (64 KiB).
const WORDS: usize = 20_000;

/// Not a test of its own: what the child processes of the tests below do.
#[test]
fn role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let mut options = Options::default();
    let script: fn(&mut Turn<'_>) = match role.as_str() {
        "obedient" => obedient,
        "stubborn" => {
            options.grace = Duration::from_secs(3600);
            stubborn
        }
        "hanging" => {
            options.grace = Duration::from_millis(50);
            stubborn
        }
        "wordy" => {
            options.grace = Duration::from_secs(60);
            wordy
        }
        "brief" => {
            options.grace = Duration::ZERO;
            brief
        }
        "flooding" => flooding,
        "unwritable" => {
            let full = std::fs::File::create("/dev/full").unwrap();
            rustix::stdio::dup2_stdout(full).unwrap();
            brief
        }
        "endless" => endless,
        "listening" => listening,
        "working" => working,
        other => panic!("there is no role {other}"),
    };
    let process = super::Script { script, deadline: None, background: false, give_up: None };
    std::process::exit(run(Box::new(process), options).into());
}

fn print(turn: &mut Turn<'_>, line: &str) {
    turn.out.push(Action::Print { line: line.to_owned() });
}

fn obedient(turn: &mut Turn<'_>) {
    match turn.event {
        Event::Start => print(turn, "ready"),
        Event::Stop => {
            let line = "on my way \x1b[2J".to_owned();
            turn.out.push(Action::Report { level: Level::Warning, line });
            let line = "not shown".to_owned();
            turn.out.push(Action::Report { level: Level::Debug, line });
            turn.exit(7);
        }
        _ => {}
    }
}

fn stubborn(turn: &mut Turn<'_>) {
    match turn.event {
        Event::Start => print(turn, "ready"),
        Event::Stop => print(turn, "no"),
        _ => {}
    }
}

fn wordy(turn: &mut Turn<'_>) {
    match turn.event {
        Event::Start => {
            for number in 0..WORDS {
                print(turn, &format!("line {number}"));
            }
            *turn.deadline = Some(turn.now + Duration::from_millis(1));
        }
        Event::Tick => {
            *turn.deadline = None;
            let line = "all said".to_owned();
            turn.out.push(Action::Report { level: Level::Error, line });
        }
        Event::Stop => {
            let line = "leaving".to_owned();
            turn.out.push(Action::Report { level: Level::Error, line });
            turn.exit(0);
        }
        _ => {}
    }
}

/// Prints more than a pipe takes, and ends.
fn brief(turn: &mut Turn<'_>) {
    for number in 0..WORDS {
        print(turn, &format!("line {number}"));
    }
    turn.out.push(Action::Report { level: Level::Error, line: "leaving".to_owned() });
    turn.exit(0);
}

/// Prints more than the driver keeps for a reader (64 MiB).
fn flooding(turn: &mut Turn<'_>) {
    let line = "x".repeat((1 << 20) - 1);
    (0..66).for_each(|_| print(turn, &line));
    turn.exit(0);
}

fn endless(turn: &mut Turn<'_>) {
    print(turn, "more");
    *turn.deadline = Some(turn.now);
    if matches!(turn.event, Event::Stop) {
        turn.exit(4);
    }
}

/// Reads standard input and prints how much came, and a sign of life while nothing does.
fn listening(turn: &mut Turn<'_>) {
    let read = DiskRequest::Read { file: FileId(1), offset: 0, len: 1000 };
    let read = Action::Disk { token: Token(2), request: read };
    match &turn.event {
        Event::Start => {
            let request = DiskRequest::Open { path: "-".into(), mode: OpenMode::Read };
            turn.out.push(Action::Disk { token: Token(1), request });
            turn.out.push(read);
            *turn.deadline = Some(turn.now + Duration::from_millis(1));
        }
        Event::Tick => {
            *turn.deadline = None;
            print(turn, "waiting");
        }
        Event::Disk { result, .. } => match result.as_ref().unwrap() {
            DiskReply::Opened { len, .. } => assert_eq!(*len, None),
            DiskReply::Data { end: true, .. } => turn.exit(0),
            DiskReply::Data { bytes, .. } => {
                let line = format!("{} bytes", bytes.len());
                print(turn, &line);
                turn.out.push(read);
            }
            other => panic!("{other:?}"),
        },
        _ => {}
    }
}

/// Reports progress, and writes a file to standard output.
fn working(turn: &mut Turn<'_>) {
    match &turn.event {
        Event::Start => {
            let request = DiskRequest::Open { path: "-".into(), mode: OpenMode::Replace };
            turn.out.push(Action::Disk { token: Token(1), request });
        }
        Event::Disk { token: Token(1), result: Ok(DiskReply::Opened { file, .. }) } => {
            for done in [1, 50, 100] {
                let (label, note) = ("file".to_owned(), "by test".to_owned());
                turn.out.push(Action::Progress { label, done, total: Some(100), note });
            }
            let bytes = vec![b'x'; 200_000];
            let request = DiskRequest::Write { file: *file, offset: 0, bytes };
            turn.out.push(Action::Disk { token: Token(2), request });
            print(turn, "printed after");
        }
        Event::Disk { token: Token(2), result: Ok(DiskReply::Done) } => turn.exit(0),
        other => panic!("{other:?}"),
    }
}

/// A child process in one of the roles, ended when dropped.
struct Actor {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
}

impl Actor {
    fn start(role: &str) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut child = Command::new(program)
            .args(["--exact", "real::tests::children::role", "--nocapture", "--quiet"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stdin, stdout, stderr }
    }

    /// Reads standard output up to and with `line`.
    fn wait_for(&mut self, line: &str) {
        await_line(self.stdout.as_mut().unwrap(), line);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; returns the status and the rest of both outputs.
    fn finish(mut self) -> (i32, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(rest) = &mut self.stdout {
            rest.read_to_string(&mut stdout).unwrap();
        }
        self.stderr.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code().unwrap(), stdout, stderr)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn await_line(from: &mut impl BufRead, line: &str) {
    let found = from.lines().any(|read| read.unwrap() == line);
    assert!(found, "the output ended before `{line}`");
}

#[test]
fn a_signal_is_a_stop_and_the_process_chooses_its_status() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut actor = Actor::start("obedient");
        actor.wait_for("ready");
        actor.signal(signal);
        let (status, _, stderr) = actor.finish();
        assert_eq!((status, stderr.as_str()), (7, "warning: on my way \u{fffd}[2J\n"));
    }
}

#[test]
fn a_second_signal_ends_a_process_that_does_not_stop() {
    let mut actor = Actor::start("stubborn");
    actor.wait_for("ready");
    actor.signal(Signal::TERM);
    actor.wait_for("no");
    actor.signal(Signal::INT);
    assert_eq!(actor.finish(), (130, String::new(), String::new()));
}

#[test]
fn the_end_of_the_grace_period_ends_a_process_that_does_not_stop() {
    let mut actor = Actor::start("hanging");
    actor.wait_for("ready");
    actor.signal(Signal::TERM);
    let (status, stdout, stderr) = actor.finish();
    assert_eq!((status, stdout.as_str()), (143, "no\n"));
    let sentence = "error: the process did not end within 50ms of SIGTERM: ended anyway\n";
    assert_eq!(stderr, sentence);
}

#[test]
fn output_that_nobody_reads_yet_does_not_block_the_loop_and_is_not_lost() {
    let mut actor = Actor::start("wordy");
    // This comes from a timer after all is printed, while the pipe is full.
    await_line(&mut actor.stderr, "error: all said");
    actor.signal(Signal::TERM);
    // Now the process has exited, and only the driver waits for a reader.
    await_line(&mut actor.stderr, "error: leaving");
    let (status, stdout, _) = actor.finish();
    assert_eq!(status, 0);
    let lines: Vec<&str> = stdout.lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(lines.len(), WORDS);
    assert_eq!(lines[WORDS - 1], format!("line {}", WORDS - 1));
}

#[test]
fn output_is_waited_for_after_the_grace_period() {
    let mut actor = Actor::start("brief");
    await_line(&mut actor.stderr, "error: leaving");
    let (status, stdout, stderr) = actor.finish();
    let lines = stdout.lines().filter(|line| line.starts_with("line ")).count();
    assert_eq!((status, lines, stderr.as_str()), (0, WORDS, ""));
}

#[test]
fn a_signal_ends_the_wait_for_a_reader_and_the_loss_is_said() {
    let mut actor = Actor::start("brief");
    await_line(&mut actor.stderr, "error: leaving");
    actor.signal(Signal::INT);
    let mut line = String::new();
    actor.stderr.read_line(&mut line).unwrap();
    let (status, ..) = actor.finish();
    assert_eq!(status, 130);
    let said = line.starts_with("error: standard output was not read: ");
    assert!(said && line.ends_with(" bytes of output are lost\n"), "{line}");
}

#[test]
fn output_beyond_the_limit_is_lost_and_that_is_an_error() {
    let (status, _, stderr) = Actor::start("flooding").finish();
    let sentence = "error: standard output was read too slowly: 2 lines of output are lost\n";
    assert_eq!((status, stderr.as_str()), (1, sentence));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let (status, _, stderr) = Actor::start("unwritable").finish();
    let sentence = "error: leaving\nerror: cannot write to `standard output`: the disk is full; \
                    free some space\n";
    assert_eq!((status, stderr.as_str()), (1, sentence));
}

#[test]
fn a_reader_of_the_output_that_goes_away_stops_the_process_quietly() {
    let mut actor = Actor::start("endless");
    actor.wait_for("more");
    drop(actor.stdout.take());
    assert_eq!(actor.finish(), (4, String::new(), String::new()));
}

#[test]
fn standard_input_is_waited_for_without_blocking_the_loop() {
    let mut actor = Actor::start("listening");
    actor.wait_for("waiting");
    let mut stdin = actor.stdin.take().unwrap();
    stdin.write_all(&[0; 1500]).unwrap();
    actor.wait_for("1000 bytes");
    actor.wait_for("500 bytes");
    stdin.write_all(b"more").unwrap();
    actor.wait_for("4 bytes");
    drop(stdin);
    assert_eq!(actor.finish().0, 0);
}

#[test]
fn progress_is_one_final_line_without_a_terminal_and_output_keeps_its_order() {
    let actor = Actor::start("working");
    let (status, stdout, stderr) = actor.finish();
    assert_eq!(status, 0);
    assert_eq!(stderr, "file [####################] 100 % 100/100 by test\n");
    let output = stdout.split_once('x').unwrap().1;
    assert_eq!(output, format!("{}printed after\n", "x".repeat(199_999)));
}
