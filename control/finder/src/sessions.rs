//! The sessions of callers: each lasts as long as its process is connected to the Finder, whatever becomes
//! of those that it calls.

use weft_base::{ChannelId, Instant};
use weft_runtime::Action;
use weft_xrl::{ErrorCode, XrlError, finder, finder_client};

use crate::Finder;
use crate::clients::{Asked, Identity, refuse};

impl Finder {
    /// Whether a session still is; who asks is told of its end.
    pub(crate) fn session(
        &mut self,
        channel: ChannelId,
        session: u64,
    ) -> Result<finder::SessionReply, XrlError> {
        if !matches!(self.identity(channel)?, Identity::Owner) {
            return Err(XrlError::failed("only the manager may ask for sessions"));
        }
        // Who has not said hello yet has no number.
        let found = self.clients.which(|client| session != 0 && client.session == session);
        for caller in &found {
            if let Some(client) = self.clients.get_mut(*caller) {
                client.granted_by.insert(channel);
            }
        }
        Ok(finder::SessionReply { present: !found.is_empty() })
    }

    pub(crate) fn drop_clients(
        &mut self,
        now: Instant,
        channels: Vec<ChannelId>,
        out: &mut Vec<Action>,
    ) {
        for channel in channels {
            let note = "what this process may do has changed";
            refuse(channel, XrlError::new(ErrorCode::SendFailedTransient, note), out);
            self.gone(now, channel, out);
        }
    }

    /// A process is gone.
    pub(crate) fn gone(&mut self, now: Instant, channel: ChannelId, out: &mut Vec<Action>) {
        let Some(mut client) = self.clients.remove(channel) else { return };
        self.tables.forget_cache(channel);
        for instance in self.tables.of_channel(channel) {
            self.unregister(now, &instance, out);
        }
        let removed = self.tables.is_removed(client.identity.as_ref());
        for server in &client.granted_by {
            let removed = removed.then_some(true);
            let revoke = finder_client::Revoke { session: client.session, removed };
            self.clients.ask(now, *server, revoke, Asked::Notice, out);
        }
        let (sent, unsent) = client.outgoing.abandon();
        for asked in sent.into_iter().chain(unsent.into_iter().map(|call| call.owner)) {
            let note = "the component is gone";
            self.asked(asked, Err(XrlError::new(ErrorCode::ResolveFailed, note)), out);
        }
    }
}
