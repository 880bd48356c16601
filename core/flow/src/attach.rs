//! How an application and a stack come to share a flow.
//!
//! The application connects to the stack's control socket and says what it wants; the stack makes the
//! shared memory and answers with its descriptor (`wire`). The stack's side never waits: an [`Attaching`] is
//! asked again when its descriptor is ready. It takes nothing but 16 bytes from an application, and no
//! descriptor ever: without room for them the kernel drops those that are sent.
//!
//! Reference: unix(7), `SCM_RIGHTS` and `SO_PEERCRED`; cmsg(3).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    recvmsg, send, sendmsg, socket_with, socketpair,
};
use weft_port::datagrams::{Credentials, peer_credentials};

use crate::bell::Bell;
use crate::error::Error;
use crate::flow::Flow;
use crate::layout::{Kind, Limits, Sizes};
use crate::segment::{self, Side};
use crate::wire::{FIXED, Hello, LONGEST_WELCOME, Welcome};

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

    /// The descriptor to wait for (readable) before [`Attaching::advance`].
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Who connected, as the kernel says.
    #[must_use]
    pub fn peer(&self) -> Credentials {
        self.peer
    }

    /// Reads what the application wants and gives it a flow within `limits`. Never waits.
    ///
    /// # Errors
    /// Whoever connected does not attach, or there are no descriptors or no memory; it has been told
    /// why where that is possible.
    pub fn advance(self, limits: &Limits) -> Result<Attached, Error> {
        let mut bytes = [0; FIXED + 1];
        let len = match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Error::Closed),
            Ok((len, _)) => len,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Attached::NotYet(self)),
            Err(errno) => return Err(Error::system("recv(2)")(errno)),
        };
        match Hello::parse(&bytes[..len]) {
            Ok(hello) => {
                let sizes = limits.grant(hello.kind, hello.sizes);
                self.grant(hello.kind, sizes).map(Attached::Flow)
            }
            Err(text) => {
                self.refuse(text);
                Err(Error::NotAFlow { what: "it was told why" })
            }
        }
    }

    /// Tells the application that it does not get a flow, and why; one sentence without an end.
    pub fn refuse(self, why: String) {
        let bytes = Welcome::Refused(why).emit();
        // An application that is gone need not know.
        let _ = send(&self.socket, &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    fn grant(self, kind: Kind, sizes: Sizes) -> Result<Flow, Error> {
        let made = (|| {
            let file = segment::create(sizes).map_err(Error::system("memfd_create(2)"))?;
            let rings =
                segment::rings(&file, sizes, Side::Stack).map_err(Error::system("mmap(2)"))?;
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .map_err(Error::system("socketpair(2)"))?;
            Ok((file, rings, pair))
        })();
        let (file, rings, (room, theirs)) = match made {
            Ok(made) => made,
            Err(error) => {
                self.refuse("it has no descriptors or no memory left: try again later".to_owned());
                return Err(error);
            }
        };
        let Self { socket, peer } = self;
        send_welcome(&socket, sizes, &[file.as_fd(), theirs.as_fd()])
            .map_err(Error::system("sendmsg(2)"))?;
        Ok(Flow::new((kind, sizes, peer), rings, (Bell::new(socket), Bell::new(room))))
    }
}

fn send_welcome(socket: &OwnedFd, sizes: Sizes, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let bytes = Welcome::Attached(sizes).emit();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags)?;
    Ok(())
}

/// Attaches to the stack whose control socket is at `path`; waits for it no longer than `patience`
/// for each step.
pub(crate) fn attach(
    path: &Path,
    kind: Kind,
    wanted: Sizes,
    patience: Duration,
) -> Result<Flow, Error> {
    let socket = connect_to(path, patience)?;
    let hello = Hello { kind, sizes: wanted }.emit();
    // A stack that refuses everybody may have hung up, and what it said can still be read.
    let _ = send(&socket, &hello, SendFlags::NOSIGNAL);
    let (welcome, fds) = receive_welcome(&socket, patience)?;
    if welcome.is_empty() {
        let shown = path.display();
        let text = format!("the process that listens at `{shown}` closed the connection");
        return Err(Error::NoStack { text });
    }
    let sizes = match Welcome::parse(&welcome, kind).map_err(not_a_flow)? {
        Welcome::Attached(sizes) => sizes,
        Welcome::Refused(text) => {
            return Err(Error::Refused { path: path.display().to_string(), text });
        }
    };
    let Ok([file, room]) = <[OwnedFd; 2]>::try_from(fds) else {
        return Err(not_a_flow("its answer has not the two descriptors that it should"));
    };
    if !segment::is_sound(file.as_fd(), sizes) {
        return Err(not_a_flow("the shared memory is not sealed, or has another size"));
    }
    let rings =
        segment::rings(&file, sizes, Side::Application).map_err(Error::system("mmap(2)"))?;
    let peer = peer_credentials(socket.as_fd()).map_err(Error::system("getsockopt(2)"))?;
    Ok(Flow::new((kind, sizes, peer), rings, (Bell::new(socket), Bell::new(room))))
}

fn not_a_flow(what: &'static str) -> Error {
    Error::NotAFlow { what }
}

/// Waits for the answer; returns its bytes, none if the stack hung up, and its descriptors.
fn receive_welcome(socket: &OwnedFd, patience: Duration) -> Result<(Vec<u8>, Vec<OwnedFd>), Error> {
    let mut bytes = [0; LONGEST_WELCOME + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let len = loop {
        match recvmsg(socket, &mut slices, &mut control, flags) {
            Ok(message) => break message.bytes,
            // The stack hung up and had not read all, which is said once; its answer comes next.
            Err(Errno::CONNRESET | Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_readable(socket.as_fd(), Some(patience))?,
            Err(errno) => return Err(Error::system("recvmsg(2)")(errno)),
        }
    };
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok((bytes[..len].to_vec(), fds))
}

/// Waits until `fd` can be read or its other end is closed; `None`: for ever.
pub(crate) fn wait_readable(fd: BorrowedFd<'_>, timeout: Option<Duration>) -> Result<(), Error> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    // A time too long for the kernel is as good as none.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) => Err(Error::TimedOut),
        // Whoever was interrupted looks, and waits again for what is left of the time.
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(Error::system("poll(2)")(errno)),
    }
}

fn connect_to(path: &Path, patience: Duration) -> Result<OwnedFd, Error> {
    let shown = path.display();
    let no_stack = |text: String| Error::NoStack { text };
    let address = SocketAddrUnix::new(path)
        .map_err(|_| no_stack(format!("`{shown}` is too long for a socket: 107 bytes at most")))?;
    // It may sleep in connect(2), as long as there is patience; later calls say that they must not.
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(Error::system("socket(2)"))?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience.max(Duration::from_millis(1))))
        .map_err(Error::system("setsockopt(2)"))?;
    connect(&socket, &address).map_err(|errno| {
        no_stack(match errno {
            Errno::NOENT => format!("nobody listens at `{shown}`: is the node running?"),
            Errno::CONNREFUSED => {
                format!("the process that listened at `{shown}` is gone: start the node again")
            }
            Errno::ACCESS | Errno::PERM => {
                format!(
                    "this user may not connect to `{shown}`: join the socket's group, or be root"
                )
            }
            Errno::AGAIN => {
                format!("the process at `{shown}` does not accept connections now: try again later")
            }
            Errno::PROTOTYPE => format!("`{shown}` is a socket of another kind"),
            errno => format!("cannot connect to `{shown}`: {errno}"),
        })
    })?;
    Ok(socket)
}
