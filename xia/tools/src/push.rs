//! `weft xia push`: a file or a live stream to many receivers.
//!
//! Reference: Machado et al., "Linux XIA", §6.1 and Figure 4. The work is done by
//! [`weft_xia_push::sender`]; here it gets a datagram socket, the disk, and words for people.

use std::path::Path;

use serde_json::json;
use weft_base::{Instant, Random, Token};
use weft_runtime::{Action, Component, Event, Level};
use weft_xia_push::sender::{SendSummary, Sender, SenderConfig, SenderInput, SenderOutput};
use weft_xia_sockets::{Client, ClientEvent};
use weft_xip::channel::BindRequest;
use weft_xip::{Address, XidType};

use crate::text::check_destination;
use crate::worker::Worker;

/// What to push and where to.
#[derive(Clone, Debug)]
pub struct PushOptions {
    /// Where to; it must end in a datagram sink or a zFilter.
    pub to: Address,
    /// The file and how it is sent.
    pub sender: SenderConfig,
    /// How far datagrams may go, in hops.
    pub hop_limit: u8,
    /// Print the summary as JSON.
    pub json: bool,
}

/// The push application.
pub struct Push {
    to: Address,
    json: bool,
    worker: Worker<Sender>,
    rejected: Option<String>,
}

impl Push {
    /// A push through the node whose socket is at `node`.
    ///
    /// # Errors
    /// Says which option cannot be used.
    pub fn new(node: &Path, options: PushOptions, random: Random) -> Result<Self, String> {
        check_destination(&options.to)?;
        let sender = Sender::new(options.sender, random).map_err(|error| error.to_string())?;
        let mut client = Client::new(Token(1), node, Some(BindRequest::Any(XidType::XDP)));
        client.set_hop_limit(options.hop_limit);
        Ok(Self {
            to: options.to,
            json: options.json,
            worker: Worker::new(client, sender),
            rejected: None,
        })
    }

    fn client_event(&mut self, now: Instant, event: ClientEvent, out: &mut Vec<Action>) {
        match event {
            ClientEvent::Ready(_) => {
                let started = std::mem::replace(&mut self.worker.started, true);
                let input = if started { SenderInput::Drained } else { SenderInput::Start };
                self.sender(now, input, out);
            }
            ClientEvent::Failed(error) => fail(error, out),
            ClientEvent::Congested => self.sender(now, SenderInput::Congested, out),
            ClientEvent::Drained => self.sender(now, SenderInput::Drained, out),
            ClientEvent::Detached => {
                let line = "the node went away; waiting for it to return".to_owned();
                out.push(Action::Report { level: Level::Warning, line });
                self.sender(now, SenderInput::Congested, out);
            }
            ClientEvent::Rejected(reason) => {
                if self.rejected.as_ref() != Some(&reason) {
                    let line = format!("datagrams are not delivered: {reason}");
                    out.push(Action::Report { level: Level::Warning, line });
                    self.rejected = Some(reason);
                }
            }
            ClientEvent::Datagram { .. }
            | ClientEvent::Reply(_)
            | ClientEvent::CommandFailed(_) => {}
        }
    }

    /// Gives an input to the sender and carries out what comes of it.
    fn sender(&mut self, now: Instant, input: SenderInput, out: &mut Vec<Action>) {
        let mut outputs = Vec::new();
        self.worker.component.handle(now, input, &mut outputs);
        for output in outputs {
            self.carry_out(output, out);
        }
    }

    fn carry_out(&mut self, output: SenderOutput, out: &mut Vec<Action>) {
        match output {
            SenderOutput::Datagram(packet) => {
                self.worker.client.send(&self.to, packet, out);
            }
            SenderOutput::Host(output) => out.push(output.into()),
            SenderOutput::Done(summary) => {
                out.push(Action::Print { line: self.summary_line(&summary) });
                out.push(Action::Exit { status: 0 });
            }
            SenderOutput::Failed(error) => fail(error, out),
        }
    }

    fn summary_line(&self, summary: &SendSummary) -> String {
        let bytes = summary.total.as_ref().map(|total| total.length);
        let sha256 = summary.total.as_ref().map(|total| total.sha256.to_string());
        let seconds = summary.elapsed.as_secs_f64();
        if self.json {
            return json!({
                "sent": summary.name, "bytes": bytes, "sha256": sha256,
                "source_symbols": summary.source_symbols,
                "repair_symbols": summary.repair_symbols, "rounds": summary.rounds,
                "datagram_bytes": summary.datagram_bytes, "seconds": seconds,
            })
            .to_string();
        }
        format!(
            "sent {}: {} bytes, {} source and {} repair symbols in {seconds:.3} s, sha256 {}",
            summary.name,
            bytes.map_or("unknown".to_owned(), |bytes| bytes.to_string()),
            summary.source_symbols,
            summary.repair_symbols,
            sha256.unwrap_or_else(|| "unknown".to_owned()),
        )
    }
}

fn fail(error: String, out: &mut Vec<Action>) {
    out.push(Action::Report { level: Level::Error, line: error });
    out.push(Action::Exit { status: 1 });
}

impl Component for Push {
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
    use crate::parse_address;

    fn push_to(to: &str) -> Result<Push, String> {
        let options = PushOptions {
            to: parse_address(to).expect("the test's addresses are right"),
            sender: SenderConfig::new("file"),
            hop_limit: 128,
            json: false,
        };
        Push::new(Path::new("node"), options, Random::from_seed(1))
    }

    #[test]
    fn only_where_datagrams_are_received_is_pushed_to() {
        let id = "ab".repeat(20);
        for good in [format!("xdp-{id}"), format!("zf-{id}"), format!("hid-{id}-1:xdp-{id}-0")] {
            assert!(push_to(&good).is_ok(), "{good}");
        }
        for bad in [format!("hid-{id}"), format!("xdp-{id}-1:ad-{id}-0")] {
            let error = push_to(&bad).err().unwrap_or_default();
            assert!(error.contains(&bad) && error.contains("datagram sink"), "{bad}: {error}");
        }
    }
}
