//! How a stack attaches an application.
//!
//! The application connects to the stack's control socket and says hello with the memory that it has made
//! (`ask`). The stack's side never waits: an [`Attaching`] is asked again when its descriptor is ready. It
//! only receives descriptors and sends none, so that its process can be forbidden to call sendmsg(2).
//!
//! Whatever an application sends is checked before it is used: two descriptors, of which the first is
//! memory that can never fail (`segment`), and the second a connected socket of the right type whose other
//! end belongs to the process that has connected. A socket of somebody else's would make this process
//! speak, as itself, to whoever that is.
//!
//! Reference: unix(7), `SCM_RIGHTS` and `SO_PEERCRED`; cmsg(3); recvmsg(2), `MSG_CTRUNC`.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::sockopt::{socket_domain, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketType, recvmsg, send,
};
use weft_port::datagrams::{Credentials, peer_credentials};

use crate::bell::Bell;
use crate::dispose::dispose;
use crate::error::Error;
use crate::flow::Flow;
use crate::layout::Limits;
use crate::segment::{self, Ends};
use crate::wire::{FIXED, Hello, Welcome};

/// A connection whose application has not said yet what it wants.
#[derive(Debug)]
pub struct Attaching {
    socket: OwnedFd,
    peer: Credentials,
}

/// What came of asking an [`Attaching`].
#[derive(Debug)]
pub enum Attached {
    /// The application has said nothing yet.
    NotYet(Attaching),
    /// Here it is.
    Flow(Flow),
}

impl Attaching {
    /// What the other end of an accepted connection (`SOCK_SEQPACKET`) may become.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn new(socket: OwnedFd) -> Result<Self, Error> {
        let peer = peer_credentials(socket.as_fd()).map_err(Error::system("getsockopt(2)"))?;
        Ok(Self { socket, peer })
    }

    /// The descriptor to wait for (readable) before [`Attaching::advance`]. The flow's is the same.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Who connected, as the kernel says.
    #[must_use]
    pub fn peer(&self) -> Credentials {
        self.peer
    }

    /// Reads what the application says and makes a flow of it, if its rings are within `limits`. Never
    /// waits.
    ///
    /// # Errors
    /// Whoever connected does not attach, or there is no memory to map; it has been told why where
    /// that is possible.
    pub fn advance(self, limits: &Limits) -> Result<Attached, Error> {
        let mut bytes = [0; FIXED + 1];
        let (len, came) = match receive(self.fd(), &mut bytes) {
            Ok((0, came)) => {
                dispose(came.descriptors);
                return Err(Error::Closed);
            }
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Attached::NotYet(self)),
            Err(errno) => return Err(Error::system("recvmsg(2)")(errno)),
        };
        let peer = self.peer;
        let checked = Hello::parse(&bytes[..len]).and_then(|hello| {
            limits.check(hello.kind, hello.sizes)?;
            Ok((hello, came.check(hello, peer)?))
        });
        let (hello, ends) = match checked {
            Ok(checked) => checked,
            Err(text) => {
                self.refuse(text);
                dispose(came.descriptors);
                return Err(Error::NotAFlow { what: "it was told why" });
            }
        };
        let [_memory, room] = came.pair().ok_or(Error::NotAFlow { what: "it has no socket" })?;
        let welcome = Welcome::Attached(hello.sizes).emit();
        send(&self.socket, &welcome, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)
            .map_err(Error::system("send(2)"))?;
        let bells = (Bell::new(self.socket), Bell::new(room));
        Ok(Attached::Flow(Flow::new((hello.kind, hello.sizes, peer), ends, bells)))
    }

    /// Tells the application that it does not get a flow, and why; one sentence without an end.
    pub fn refuse(self, why: String) {
        let bytes = Welcome::Refused(why).emit();
        // An application that is gone need not know.
        let _ = send(&self.socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }
}

/// The descriptors that came with a hello.
struct Came {
    descriptors: Vec<OwnedFd>,
    /// There were more, or this process has no room for them.
    truncated: bool,
}

impl Came {
    /// Checks that these are memory and a socket, and maps the memory; an error is a sentence for the
    /// application, without an end.
    fn check(&self, hello: Hello, peer: Credentials) -> Result<Ends, String> {
        let (memory, room) = match (&self.descriptors[..], self.truncated) {
            ([memory, room], false) => (memory, room),
            ([] | [_], true) => {
                return Err("it has no descriptors left: try again later".to_owned());
            }
            (_, true) => return Err("a greeting has two descriptors, not more".to_owned()),
            (others, false) => {
                return Err(format!("a greeting has two descriptors and not {}", others.len()));
            }
        };
        let is_socket = socket_domain(room) == Ok(AddressFamily::UNIX)
            && socket_type(room) == Ok(SocketType::SEQPACKET);
        if !is_socket {
            return Err("the second descriptor is no Unix socket of type SOCK_SEQPACKET".to_owned());
        }
        if !peer_credentials(room.as_fd()).is_ok_and(|other| other == peer) {
            return Err("the second descriptor is connected to somebody else, or nobody".to_owned());
        }
        segment::take_over(memory.as_fd(), hello.sizes).map_err(|unfit| unfit.to_string())
    }

    fn pair(self) -> Option<[OwnedFd; 2]> {
        self.descriptors.try_into().ok()
    }
}

/// Receives one message, and up to two descriptors with it. What exceeds that the kernel closes.
fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> Result<(usize, Came), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let truncated = received.flags.contains(ReturnFlags::CTRUNC);
    Ok((received.bytes, Came { descriptors, truncated }))
}
