//! Connections that are to become flows, and the channels that they make.

use std::io;

use weft_base::ChannelId;
use weft_flow::Flow;

use super::Channels;
use crate::Event;
use crate::address::ChannelKind;
use crate::real::channel::{Channel, State, Transport};
use crate::real::flows::{Became, FlowEnd, Pending};
use crate::real::poller::{Interest, Poller, Source};
use crate::real::{DriverDrop, Drops, listeners};

impl Channels {
    /// Waits for what makes a flow of a connection.
    pub(super) fn wait_for(&mut self, pending: Pending, poller: &Poller) -> io::Result<()> {
        let id = ChannelId(self.last_channel + 1);
        poller.add(pending.fd(), Source::Channel(id), Interest::Read)?;
        self.last_channel = id.0;
        self.pending.insert(id, pending);
        Ok(())
    }

    /// A connection that is to become a flow is ready for its next step.
    pub(super) fn advance(
        &mut self,
        id: ChannelId,
        pending: Pending,
        poller: &Poller,
        drops: &mut Drops,
    ) -> Option<Event> {
        // What fails has closed its socket, which nobody else has, so that it is not watched any more.
        let (flow, event) = match pending.advance(drops) {
            Became::Pending(again) => {
                self.pending.insert(id, again);
                return None;
            }
            Became::Accepted(token, flow) => {
                let peer = listeners::process(flow.peer());
                (flow, Event::Accepted { token, channel: id, peer })
            }
            Became::Connected(token, flow) => (flow, Event::Connected { token, channel: id }),
            Became::Nothing => return None,
            Became::Failed(token, error) => return Some(Event::ChannelFailed { token, error }),
        };
        match self.open_flow(id, flow, poller) {
            Ok(()) => Some(event),
            Err(error) => {
                drops.add(DriverDrop::ConnectionRefused, 1);
                let Event::Connected { token, .. } = event else { return None };
                let error = format!("cannot wait for a flow: {error}");
                Some(Event::ChannelFailed { token, error })
            }
        }
    }

    /// Opens the channel of a flow, of which one descriptor is watched already.
    fn open_flow(&mut self, id: ChannelId, flow: Flow, poller: &Poller) -> io::Result<()> {
        poller.add(flow.room_fd(), Source::Room(id), Interest::Read)?;
        let transport = Transport::Flow(FlowEnd::new(flow, self.queue_limit));
        self.open.insert(id, Channel::new(ChannelKind::Flow, transport, State::Open));
        Ok(())
    }
}
