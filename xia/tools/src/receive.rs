//! `weft xia receive`: takes what others push, and verifies it.
//!
//! Reference: Machado et al., "Linux XIA", §6.1 and Figure 4. The work is done by
//! [`weft_xia_push::receiver`]; here it gets a datagram socket, the disk, and words for people.

use std::path::Path;

use serde_json::json;
use weft_base::{Instant, Token};
use weft_runtime::{Action, Component, Event, Level};
use weft_xia_push::object::SenderKey;
use weft_xia_push::receiver::{
    ReceiveReport, Receiver, ReceiverConfig, ReceiverInput, ReceiverOutput,
};
use weft_xia_sockets::{Client, ClientEvent};
use weft_xip::Address;
use weft_xip::channel::BindRequest;

use crate::worker::Worker;

/// What to be reached by, and what to do with what comes.
#[derive(Clone, Debug)]
pub struct ReceiveOptions {
    /// The address that senders send to, or its sink.
    pub bind: BindRequest,
    /// Where objects go, and the limits.
    pub receiver: ReceiverConfig,
    /// Print reports as JSON, one object a line.
    pub json: bool,
}

/// The receive application.
pub struct Receive {
    worker: Worker<Receiver>,
    json: bool,
}

impl Receive {
    /// A receiver through the node whose socket is at `node`.
    #[must_use]
    pub fn new(node: &Path, options: ReceiveOptions) -> Self {
        let client = Client::new(Token(1), node, Some(options.bind));
        Self { worker: Worker::new(client, Receiver::new(options.receiver)), json: options.json }
    }

    fn client_event(&mut self, now: Instant, event: ClientEvent, out: &mut Vec<Action>) {
        match event {
            ClientEvent::Ready(address) => {
                if let Some(address) = address {
                    let line = format!("ready to receive at {address}");
                    out.push(Action::Report { level: Level::Info, line });
                }
                if !self.worker.started {
                    self.worker.started = true;
                    self.receiver(now, ReceiverInput::Start, out);
                }
            }
            ClientEvent::Failed(error) => {
                out.push(Action::Report { level: Level::Error, line: error });
                out.push(Action::Exit { status: 1 });
            }
            ClientEvent::Datagram { source, payload } => {
                let from = sender_key(source.as_ref());
                self.receiver(now, ReceiverInput::Datagram { packet: payload, from }, out);
            }
            ClientEvent::Detached => {
                let line = "the node went away; waiting for it to return".to_owned();
                out.push(Action::Report { level: Level::Warning, line });
            }
            ClientEvent::Rejected(_)
            | ClientEvent::Reply(_)
            | ClientEvent::CommandFailed(_)
            | ClientEvent::Congested
            | ClientEvent::Drained => {}
        }
    }

    /// Gives an input to the receiver and carries out what comes of it.
    fn receiver(&mut self, now: Instant, input: ReceiverInput, out: &mut Vec<Action>) {
        let mut outputs = Vec::new();
        self.worker.component.handle(now, input, &mut outputs);
        for output in outputs {
            self.carry_out(output, out);
        }
    }

    fn carry_out(&self, output: ReceiverOutput, out: &mut Vec<Action>) {
        match output {
            ReceiverOutput::Host(output) => out.push(output.into()),
            ReceiverOutput::Received(report) => {
                let line = if self.json { json_line(&report) } else { plain_line(&report) };
                out.push(Action::Print { line });
            }
            ReceiverOutput::Failed { name, text, .. } => {
                let line = format!("{name}: {text}");
                out.push(Action::Report { level: Level::Error, line });
            }
            ReceiverOutput::Done { failed, .. } => {
                out.push(Action::Exit { status: u8::from(failed > 0) });
            }
        }
    }
}

/// Who sent a datagram: the row in front of the sink of its source address, usually the host. The
/// sink is a socket, which is another one when the sender is started again, and then its object shall
/// go on; it is taken only if it stands alone.
fn sender_key(source: Option<&Address>) -> SenderKey {
    let who = source.map(|address| {
        let mut rows = address.rows().iter().rev();
        rows.nth(1).map_or_else(|| address.final_xid(), |row| row.xid)
    });
    SenderKey::new(who.map(|xid| xid.to_bytes()).as_ref().map_or(&[], |bytes| bytes.as_slice()))
}

fn plain_line(report: &ReceiveReport) -> String {
    let seconds = report.complete_after.as_secs_f64();
    let path = report.path.as_ref().map_or("standard output".into(), |path| path.to_string_lossy());
    format!(
        "received {} as {path}: {} bytes in {seconds:.3} s ({}), {} symbols used of {} received, \
         {} needed, sha256 {} verified",
        report.name,
        report.bytes,
        goodput(report),
        report.symbols_used,
        report.symbols_received,
        report.symbols_needed,
        report.sha256,
    )
}

/// File bits per second, from the first datagram to the last block.
fn goodput(report: &ReceiveReport) -> String {
    let seconds = report.complete_after.as_secs_f64();
    if seconds == 0.0 {
        return "at once".to_owned();
    }
    format!("{:.1} Mbit/s", report.bytes as f64 * 8.0 / seconds / 1e6)
}

fn json_line(report: &ReceiveReport) -> String {
    json!({
        "received": report.name,
        "path": report.path,
        "bytes": report.bytes,
        "sha256": report.sha256.to_string(),
        "symbols_needed": report.symbols_needed,
        "symbols_received": report.symbols_received,
        "symbols_used": report.symbols_used,
        "symbols_resumed": report.symbols_resumed,
        "duplicates": report.duplicates,
        "surplus": report.surplus,
        "blocks_decoded": report.blocks_decoded,
        "decode_failures": report.decode_failures,
        "seconds": report.complete_after.as_secs_f64(),
        "verified_after_seconds": report.elapsed.as_secs_f64(),
    })
    .to_string()
}

impl Component for Receive {
    type Input = Event;
    type Output = Action;

    fn handle(&mut self, now: Instant, event: Event, out: &mut Vec<Action>) {
        let mut outputs = Vec::new();
        let events = self.worker.handle(now, event, &mut outputs, out);
        outputs.into_iter().for_each(|output| self.carry_out(output, out));
        events.into_iter().for_each(|event| self.client_event(now, event, out));
    }

    fn deadline(&self) -> Option<Instant> {
        self.worker.deadline()
    }

    fn has_background_work(&self) -> bool {
        self.worker.has_background_work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &str) -> SenderKey {
        let address: Address = source.parse().expect("the test's addresses are right");
        sender_key(Some(&address))
    }

    #[test]
    fn a_sender_is_what_is_in_front_of_its_socket_and_without_that_the_socket() {
        let (host, other) = ("a1".repeat(20), "a2".repeat(20));
        let (socket, again) = ("b1".repeat(20), "b2".repeat(20));
        let first = key(&format!("hid-{host}-1:xdp-{socket}-0"));
        assert_eq!(first, key(&format!("hid-{host}-1:xdp-{again}-0")));
        assert_ne!(first, key(&format!("hid-{other}-1:xdp-{socket}-0")));
        // Its scope may end in something else than a host, or hold more than one.
        let domain = key(&format!("hid-{host}-1:ad-{host}-2:xdp-{socket}-0"));
        assert_eq!(domain, key(&format!("ad-{host}-1:xdp-{again}-0")));
        assert_ne!(domain, first);
        let bare = key(&format!("xdp-{socket}-0"));
        assert_ne!(bare, key(&format!("xdp-{again}-0")));
        assert_ne!(bare, sender_key(None));
    }
}
