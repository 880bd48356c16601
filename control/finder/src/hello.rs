//! Who connects, and what that may call: processes by their secrets, users of this machine by the kernel's
//! word, and operators on other machines by the word of the gateway.

use weft_base::{ChannelId, Instant};
use weft_keys::KeyHash;
use weft_runtime::{Action, Peer};
use weft_xrl::frame::{Credential, Frame, PROTOCOL, Secret, same};
use weft_xrl::{Access, ErrorCode, GATEWAY, XrlError, finder};

use crate::Finder;
use crate::clients::{Client, Identity, WINDOW, introduce};
use crate::operators::Operators;

impl Finder {
    /// Finds out who connects.
    pub(crate) fn hello(
        &mut self,
        channel: ChannelId,
        version: u16,
        window: u32,
        credential: Credential,
        out: &mut Vec<Action>,
    ) -> Result<(), XrlError> {
        if version != PROTOCOL {
            let note = format!("the Finder speaks version {PROTOCOL}, not {version}");
            return Err(XrlError::new(ErrorCode::SendFailed, note));
        }
        let Some(peer) = self.clients.get_mut(channel).map(|client| client.peer) else {
            return Ok(());
        };
        let refused = |note: String| XrlError::new(ErrorCode::ResolveFailed, note);
        let identity = match (credential, peer) {
            (Credential::Secret(secret), _) if same(&secret, &self.settings.owner) => {
                Identity::Owner
            }
            (Credential::Secret(secret), _) => match self.tables.process_of(&secret) {
                Some(instance) => Identity::Process(instance.clone()),
                None if self.tables.processes.is_none() => {
                    let note = "the manager has not said yet which processes there are";
                    return Err(XrlError::new(ErrorCode::SendFailedTransient, note));
                }
                None => return Err(refused("the secret is not one of this node".to_owned())),
            },
            (Credential::SecretFor(secret, key), _) => self.guest(&secret, key)?,
            (Credential::None, Peer::Process { uid, .. }) => match self.access_of(uid) {
                Some(access) => Identity::Operator(uid, access),
                None => return Err(self.no_operator(uid)),
            },
            (Credential::None, Peer::Address(address) | Peer::Key { address, .. }) => {
                return Err(refused(format!("who connects from {address} needs a secret")));
            }
            (Credential::Ticket(_) | Credential::TicketFor(..), _) => {
                return Err(refused("a ticket is for components, not for the Finder".to_owned()));
            }
        };
        let session = self.keys.number();
        let Some(client) = self.clients.get_mut(channel) else { return Ok(()) };
        client.session = session;
        client.outgoing.set_window(window);
        let welcome = Frame::Welcome { version: PROTOCOL, window: WINDOW, name: identity.name() };
        client.identity = Some(identity);
        out.push(Action::Send { channel, message: welcome.emit() });
        introduce(channel, out);
        Ok(())
    }

    /// For whom the gateway speaks. Nobody else's word counts.
    fn guest(&self, secret: &Secret, key: KeyHash) -> Result<Identity, XrlError> {
        let processes = self.tables.processes.as_ref();
        let Some(processes) = processes else {
            let note = "the manager has not said yet which processes there are";
            return Err(XrlError::new(ErrorCode::SendFailedTransient, note));
        };
        let process = self.tables.process_of(secret).and_then(|instance| processes.get(instance));
        if process.is_none_or(|process| process.class != GATEWAY) {
            let note = "only the gateway of this node may speak for others";
            return Err(XrlError::new(ErrorCode::ResolveFailed, note));
        }
        let access = self.operators.remote(&key).cloned().ok_or_else(|| {
            let note = format!(
                "who has the key {key} may not call this node's components: its statement \
                 `operators` does not name that key"
            );
            XrlError::new(ErrorCode::ResolveFailed, note)
        })?;
        Ok(Identity::Remote(key, access))
    }

    pub(crate) fn set_operators(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: finder::SetOperators,
        out: &mut Vec<Action>,
    ) -> Result<(), XrlError> {
        if self.identity(channel)? != Identity::Owner {
            return Err(XrlError::failed("only the manager says who may call"));
        }
        let finder::SetOperators { operators, remote } = request;
        self.operators = Operators::new(operators, remote.unwrap_or_default())?;
        let changed = |client: &Client| match &client.identity {
            Some(Identity::Operator(uid, access)) => self.access_of(*uid).as_ref() != Some(access),
            Some(Identity::Remote(key, access)) => self.operators.remote(key) != Some(access),
            _ => false,
        };
        let channels = self.clients.which(changed);
        self.drop_clients(now, channels, out);
        Ok(())
    }

    /// What a user of this machine may call.
    fn access_of(&self, uid: u32) -> Option<Access> {
        if uid == 0 || uid == self.settings.operator {
            return Some(Access::everything());
        }
        self.operators.access(uid, &*self.settings.users).cloned()
    }

    fn no_operator(&self, uid: u32) -> XrlError {
        if self.tables.processes.is_none() {
            let note = "the manager has not said yet who may call";
            return XrlError::new(ErrorCode::SendFailedTransient, note);
        }
        let operator = self.settings.operator;
        let note = format!(
            "the user {uid} may not call this node's components: root, the user that runs the node \
             (uid {operator}) and those that its statement `operators` names may"
        );
        XrlError::new(ErrorCode::ResolveFailed, note)
    }
}
