//! A socket for ordinary programs: blocking calls over a flow, one thread at a time.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use weft_base::Packet;
use weft_flow::{Client, Error, Kind, LONGEST, Options};
use weft_xip::Address;
use weft_xip::channel::{self, BindRequest, Response};
use weft_xip::numbers::DEFAULT_HOP_LIMIT;

/// Why a call on an [`XdpSocket`] failed.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// There is no node at this path, or this user may not talk to it.
    #[error("{0}; start a node with `weft run` or name it with --node")]
    NoNode(Error),
    /// The node went away.
    #[error("the node closed the connection: attach again when it is back")]
    Closed,
    /// Nothing came, or nothing could leave, within the time that [`XdpSocket::set_timeout`] set.
    #[error("the node was not ready in time")]
    TimedOut,
    /// The node refused, for this reason.
    #[error("{0}")]
    Refused(String),
    /// Anything else that happened to the flow.
    #[error("the flow to the node failed: {0}")]
    Flow(Error),
}

impl From<Error> for SocketError {
    fn from(error: Error) -> Self {
        match error {
            Error::Closed => Self::Closed,
            Error::TimedOut => Self::TimedOut,
            error @ (Error::NoStack { .. } | Error::Refused { .. } | Error::NotAFlow { .. }) => {
                Self::NoNode(error)
            }
            error => Self::Flow(error),
        }
    }
}

/// A datagram socket, bound to an address of the node on this machine.
///
/// ```no_run
/// use std::path::Path;
/// use weft_xia_sockets::XdpSocket;
/// use weft_xip::{Address, XidType, channel::BindRequest};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Path::new("/run/weft/host/xia.sock");
/// let mut socket = XdpSocket::bind(node, BindRequest::Any(XidType::XDP))?;
/// let server: Address = "hid-0123456789012345678901234567890123456789-1:\
///                        xdp-9876543210987654321098765432109876543210-0".parse()?;
/// socket.send_to(b"hello", &server)?;
/// let (answer, from) = socket.recv_from()?;
/// # let _ = (answer, from); Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct XdpSocket {
    client: Client,
    address: Address,
    hop_limit: u8,
    timeout: Option<Duration>,
    buffer: Vec<u8>,
}

impl XdpSocket {
    /// Attaches to the node whose socket is at `node` and binds as `request` says. A node that does not
    /// answer is waited for five seconds.
    ///
    /// # Errors
    /// There is no node, or it refuses the bind.
    pub fn bind(node: &Path, request: BindRequest) -> Result<Self, SocketError> {
        Self::bind_within(node, request, Options::new(Kind::Datagram).patience)
    }

    /// The same, with the time to wait for each of attaching and binding.
    ///
    /// # Errors
    /// There is no node, or it refuses the bind.
    pub fn bind_within(
        node: &Path,
        request: BindRequest,
        patience: Duration,
    ) -> Result<Self, SocketError> {
        let options = Options { patience, ..Options::new(Kind::Datagram) };
        let mut client = Client::connect(node, &options)?;
        let mut buffer = vec![0; LONGEST];
        let address = bind(&mut client, &mut buffer, request, patience)?;
        Ok(Self { client, address, hop_limit: DEFAULT_HOP_LIMIT, timeout: None, buffer })
    }

    /// The address that others reach this socket by.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sets how far datagrams may go, in hops.
    pub fn set_hop_limit(&mut self, hop_limit: u8) {
        self.hop_limit = hop_limit;
    }

    /// The descriptor to wait for (readable) after [`XdpSocket::send_to`] with a timeout of zero has said
    /// [`SocketError::TimedOut`]: when it is ready, send again.
    #[must_use]
    pub fn room_fd(&self) -> BorrowedFd<'_> {
        self.client.room_fd()
    }

    /// Sets how long [`XdpSocket::recv_from`] waits for a datagram, and [`XdpSocket::send_to`] for room;
    /// `None`: for ever; zero: not at all.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// Sends a datagram. That it left says nothing about its arrival.
    ///
    /// # Errors
    /// There was no room in time; the node went away.
    pub fn send_to(&mut self, payload: &[u8], destination: &Address) -> Result<(), SocketError> {
        let mut message = Packet::from_slice(payload);
        channel::emit_send(self.hop_limit, destination, &mut message);
        self.client.send(message.bytes(), self.timeout)?;
        Ok(())
    }

    /// Waits for a datagram; returns its payload and its source, if the sender gave one.
    ///
    /// # Errors
    /// Nothing came in time; the node went away; [`SocketError::Refused`] says that an earlier
    /// datagram could not leave the node, or was dropped on its way.
    pub fn recv_from(&mut self) -> Result<(Vec<u8>, Option<Address>), SocketError> {
        loop {
            match receive(&mut self.client, &mut self.buffer, self.timeout)? {
                Response::Datagram { source, payload } => {
                    return Ok((payload.bytes().to_vec(), source));
                }
                Response::Rejected(reason) | Response::Failed(reason) => {
                    return Err(SocketError::Refused(reason));
                }
                Response::Bound(_) | Response::Reply { .. } => {}
            }
        }
    }

    /// After [`SocketError::Closed`]: waits for the node to return, for as long as `timeout` for each of
    /// attaching and binding, and binds to the same address. The descriptor is another one afterwards.
    ///
    /// # Errors
    /// The node is still away, or refuses the bind.
    pub fn reattach(&mut self, timeout: Duration) -> Result<(), SocketError> {
        self.client.reattach(timeout)?;
        let request = BindRequest::Address(self.address);
        self.address = bind(&mut self.client, &mut self.buffer, request, timeout)?;
        Ok(())
    }
}

/// The descriptor to wait for (readable) in a loop of one's own. When it is ready, call
/// [`XdpSocket::recv_from`] with a timeout of zero until it says [`SocketError::TimedOut`], and only then
/// wait again.
impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.client.fd()
    }
}

fn bind(
    client: &mut Client,
    buffer: &mut [u8],
    request: BindRequest,
    patience: Duration,
) -> Result<Address, SocketError> {
    client.send(request.emit().bytes(), Some(patience))?;
    match receive(client, buffer, Some(patience))? {
        Response::Bound(address) => Ok(address),
        Response::Failed(reason) => Err(SocketError::Refused(reason)),
        other => Err(SocketError::Refused(format!("unexpected answer to a bind: {other:?}"))),
    }
}

fn receive(
    client: &mut Client,
    buffer: &mut [u8],
    timeout: Option<Duration>,
) -> Result<Response, SocketError> {
    let len = client.receive(buffer, timeout)?;
    let message = Packet::from_slice(&buffer[..len]);
    Response::parse(message).map_err(|error| SocketError::Refused(error.to_string()))
}
