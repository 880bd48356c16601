//! Where the process listens: sockets that it binds, inherits or is handed.

use std::io;

use weft_base::{Handle, Token};

use super::{Channels, place};
use crate::real::inherited;
use crate::real::listeners::Listener;
use crate::real::poller::{Interest, Poller, Source};
use crate::{ChannelAddress, Event};

impl Channels {
    /// Binds a listener and says what came of it.
    pub(in crate::real) fn listen(
        &mut self,
        token: Token,
        address: &ChannelAddress,
        poller: &Poller,
    ) -> Event {
        let inherited = self.inheritance.take(token, address);
        let bound = inherited.unwrap_or_else(|| Listener::bind(token, address));
        self.watch(token, address, bound, poller)
    }

    /// Listens with a socket that another process has opened.
    pub(in crate::real) fn adopt_listener(
        &mut self,
        token: Token,
        address: &ChannelAddress,
        handle: Handle,
        poller: &Poller,
    ) -> Event {
        let adopted = inherited::adopt(token, address, handle);
        self.watch(token, address, adopted, poller)
    }

    /// Accepts nobody any more at the listeners of a token.
    pub(in crate::real) fn close_listener(&mut self, token: Token, poller: &Poller) {
        let closed = self.listeners.extract_if(.., |_, listener| listener.token == token);
        closed.for_each(|(_, listener)| poller.remove(listener.fd()));
        self.connections.close_listener(token);
    }

    /// Waits for connections at a listener, if there is one.
    fn watch(
        &mut self,
        token: Token,
        address: &ChannelAddress,
        bound: Result<Listener, String>,
        poller: &Poller,
    ) -> Event {
        let bound = bound.and_then(|listener| {
            place(token, address)
                .map_or(Ok(()), |place| self.known_keys("listen at", place.address).map(drop))?;
            let bound = listener.address(address);
            self.wait_at(listener, poller)
                .map_err(|error| format!("cannot listen at {address}: {error}"))?;
            Ok(bound)
        });
        match bound {
            Ok(address) => Event::Listening { token, address },
            Err(error) => Event::ChannelFailed { token, error },
        }
    }

    /// Waits for connections at a socket that listens.
    pub(super) fn wait_at(&mut self, listener: Listener, poller: &Poller) -> io::Result<()> {
        let number = self.last_listener + 1;
        poller.add(listener.fd(), Source::Listener(number), Interest::Read)?;
        self.last_listener = number;
        self.listeners.insert(number, listener);
        Ok(())
    }
}
