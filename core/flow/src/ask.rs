//! How an application attaches to a stack.
//!
//! It makes the shared memory, which is its own and charged to it, and a pair of sockets, and sends the
//! descriptors with its hello; the stack answers with a welcome in plain bytes (`wire`). Nothing here
//! waits but for a place in the stack's queue of connections, and that only as long as it is told to.
//!
//! Reference: unix(7), `SCM_RIGHTS`; cmsg(3).

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    recv, sendmsg, socketpair,
};
use weft_port::datagrams::peer_credentials;
use weft_port::unix::{self, SocketType};

use crate::bell::Bell;
use crate::error::Error;
use crate::flow::Flow;
use crate::layout::{Kind, Sizes};
use crate::segment::{self, Ends, Side};
use crate::wire::{Hello, LONGEST_WELCOME, Welcome};

/// A connection to a stack that has not answered yet.
pub struct Asking {
    path: PathBuf,
    socket: OwnedFd,
    hello: Hello,
    ends: Ends,
    room: OwnedFd,
}

/// What came of asking again.
#[derive(Debug)]
pub enum Asked {
    /// The stack has said nothing yet.
    NotYet(Asking),
    /// It has attached.
    Flow(Flow),
}

impl Asking {
    /// Connects to the stack whose control socket is at `path` and says what is wanted. Waits for a
    /// place in a queue of connections that is full for as long as `patience`; zero: not at all.
    ///
    /// # Errors
    /// [`Error::NoStack`], or [`Error::System`] for want of memory or descriptors.
    pub fn connect(
        path: &Path,
        kind: Kind,
        wanted: Sizes,
        patience: Duration,
    ) -> Result<Self, Error> {
        let socket = unix::connect(path, SocketType::SEQPACKET, patience)
            .map_err(|text| Error::NoStack { text })?;
        let sizes = wanted.choose(kind);
        let file = segment::create(sizes).map_err(Error::system("memfd_create(2)"))?;
        let ends = segment::rings(file.as_fd(), sizes, Side::Application)
            .map_err(Error::system("mmap(2)"))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (room, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(Error::system("socketpair(2)"))?;
        let hello = Hello { kind, sizes };
        match send_hello(&socket, hello, &[file.as_fd(), theirs.as_fd()]) {
            // A stack that refuses everybody may have hung up, and what it said can still be read.
            Ok(()) | Err(Errno::PIPE | Errno::CONNRESET) => {}
            Err(errno) => return Err(Error::system("sendmsg(2)")(errno)),
        }
        Ok(Self { path: path.to_owned(), socket, hello, ends, room })
    }

    /// The descriptor to wait for (readable) before [`Asking::advance`]. The flow's is the same.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads the stack's answer. Never waits.
    ///
    /// # Errors
    /// [`Error::NoStack`] if the stack has gone, [`Error::Refused`], [`Error::NotAFlow`],
    /// [`Error::System`].
    pub fn advance(self) -> Result<Asked, Error> {
        let mut bytes = [0; LONGEST_WELCOME + 1];
        let len = loop {
            match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((len, _)) => break len,
                // The stack hung up and had not read all, which is said once; its answer comes next.
                Err(Errno::CONNRESET | Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Asked::NotYet(self)),
                Err(errno) => return Err(Error::system("recv(2)")(errno)),
            }
        };
        let shown = self.path.display();
        if len == 0 {
            let text = format!("the process that listens at `{shown}` closed the connection");
            return Err(Error::NoStack { text });
        }
        let not_a_flow = |what| Error::NotAFlow { what };
        match Welcome::parse(&bytes[..len]).map_err(not_a_flow)? {
            Welcome::Refused(text) => Err(Error::Refused { path: shown.to_string(), text }),
            Welcome::Attached(sizes) if sizes == self.hello.sizes => {
                let peer = peer_credentials(self.fd()).map_err(Error::system("getsockopt(2)"))?;
                let Self { socket, hello: Hello { kind, sizes }, ends, room, .. } = self;
                let bells = (Bell::new(socket), Bell::new(room));
                Ok(Asked::Flow(Flow::new((kind, sizes, peer), ends, bells)))
            }
            Welcome::Attached(_) => Err(not_a_flow("it has taken rings of other sizes")),
        }
    }
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Says hello. A new connection has room for it.
fn send_hello(socket: &OwnedFd, hello: Hello, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::NOBUFS);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&hello.emit())], &mut control, flags).map(|_| ())
}
