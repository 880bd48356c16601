//! Waking the other side, and hearing it: one byte on a Unix socket.
//!
//! Why not an eventfd: both sides would hold one and the same open file. A hostile side could take
//! `O_NONBLOCK` off it (`fcntl(F_SETFL)` works on what is shared), fill its counter, and the next write of
//! this side, the stack's only thread perhaps, would sleep for ever; there is no flag that keeps one
//! write(2) to an eventfd from blocking. Each end of a pair of sockets is a file of its own, and
//! `MSG_DONTWAIT` holds for one call. The test `the_other_side_cannot_make_a_waking_block` tries it. A
//! socket also tells when the other side is gone, so that one descriptor says all there is to know.
//!
//! Reference: unix(7), eventfd(2), send(2), recv(2).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::wire::WAKE;

/// One end of a pair of sockets that carry wakings.
pub(crate) struct Bell {
    socket: OwnedFd,
    /// Wakings that we asked for and have not heard.
    owed: u32,
}

/// What was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Perhaps wakings.
    Wakes,
    /// The other side is gone.
    End,
    /// Something that the other side must not say; what, in words.
    Nonsense(&'static str),
}

impl Bell {
    pub(crate) fn new(socket: OwnedFd) -> Self {
        Self { socket, owed: 0 }
    }

    /// Wakes the other side. Should it be gone, that is heard later; should it have left so many wakings
    /// unheard that there is no room for one more, it needs none.
    pub(crate) fn ring(&self) {
        let _ = send(&self.socket, &[WAKE], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// Notes that the other side owes so many wakings more.
    pub(crate) fn expect(&mut self, more: i8) {
        self.owed = self.owed.saturating_add_signed(i32::from(more));
    }

    /// Takes note of the wakings that have come, so that the socket is not ready any more because of
    /// them.
    pub(crate) fn hush(&mut self) -> Heard {
        loop {
            // One byte more than a waking, to see what is longer.
            let mut bytes = [0; 2];
            match recv(&self.socket, &mut bytes, RecvFlags::DONTWAIT) {
                Ok((1, _)) if bytes[0] == WAKE => {
                    let Some(owed) = self.owed.checked_sub(1) else {
                        return Heard::Nonsense("it wakes whom nobody has to wake");
                    };
                    self.owed = owed;
                    if owed == 0 {
                        return Heard::Wakes;
                    }
                }
                Ok((0, _)) => return Heard::End,
                Ok(_) => return Heard::Nonsense("it says something else than a waking"),
                Err(Errno::AGAIN) => return Heard::Wakes,
                Err(Errno::INTR) => {}
                // The other side is gone and had not heard all: what is left comes next.
                Err(Errno::CONNRESET) => {}
                Err(_) => return Heard::End,
            }
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{OFlags, fcntl_setfl};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (Bell, Bell) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        (Bell::new(a), Bell::new(b))
    }

    #[test]
    fn wakings_that_were_asked_for_are_heard_and_no_others() {
        let (mut here, there) = pair();
        assert_eq!(here.hush(), Heard::Wakes);
        here.expect(1);
        here.expect(1);
        there.ring();
        there.ring();
        assert_eq!(here.hush(), Heard::Wakes);
        assert_eq!(here.owed, 0);
        there.ring();
        assert!(matches!(here.hush(), Heard::Nonsense(_)));
    }

    #[test]
    fn other_words_are_nonsense() {
        for words in [&b"x"[..], b"ww", b"wake up"] {
            let (mut here, there) = pair();
            here.expect(1);
            send(&there, words, SendFlags::empty()).unwrap();
            assert!(matches!(here.hush(), Heard::Nonsense(_)), "{words:?}");
        }
    }

    #[test]
    fn the_end_is_heard_behind_what_was_said_before() {
        let (mut here, there) = pair();
        here.expect(1);
        there.ring();
        // Something that the other side has not heard when it goes.
        here.ring();
        drop(there);
        assert_eq!(here.hush(), Heard::Wakes);
        assert_eq!(here.hush(), Heard::End);
        here.ring();
    }

    #[test]
    fn the_other_side_cannot_make_a_waking_block() {
        let (mut here, there) = pair();
        // All that the holder of the other end can do to its file, and it never listens.
        fcntl_setfl(&there, OFlags::empty()).unwrap();
        for _ in 0..100_000 {
            here.ring();
        }
        assert_eq!(here.hush(), Heard::Wakes);
    }
}
