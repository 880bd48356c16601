//! Descriptors that come with messages: `SCM_RIGHTS` in unix(7), cmsg(3).

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

/// The most descriptors that are taken from one message. The kernel closes what exceeds that.
pub(crate) const MOST: usize = 16;

/// Bytes that the kernel needs to hand over `MOST` descriptors.
// SAFETY: plain arithmetic.
const SPACE: usize =
    unsafe { libc::CMSG_SPACE((MOST * size_of::<RawFd>()) as libc::c_uint) } as usize;

/// Memory for the control data of one message, aligned as its header must be.
#[derive(Clone, Copy)]
#[repr(align(8))]
pub(crate) struct Control([u8; SPACE]);

/// What came with one message.
#[derive(Debug, Default)]
pub(crate) struct Rights {
    pub(crate) descriptors: Vec<OwnedFd>,
    /// The kernel had more than there was room for, here or in this process's table.
    pub(crate) truncated: bool,
}

impl Control {
    pub(crate) const EMPTY: Self = Self([0; SPACE]);

    /// Tells the kernel to put control data here. The memory must outlive the call for which `header`
    /// is used.
    pub(crate) fn prepare(&mut self, header: &mut libc::msghdr) {
        const { assert!(align_of::<Self>() >= align_of::<libc::cmsghdr>()) };
        header.msg_control = self.0.as_mut_ptr().cast();
        header.msg_controllen = self.0.len() as _;
    }
}

/// Takes over the descriptors that the kernel has left in the control data of `header`.
///
/// # Safety
/// The kernel must have filled in `header` in a call that received, the control data, if there is any,
/// must still be there, and this must be the only time that it is taken.
pub(crate) unsafe fn take(header: &libc::msghdr) -> Rights {
    let mut rights = Rights::default();
    if header.msg_control.is_null() {
        return rights;
    }
    rights.truncated = header.msg_flags & libc::MSG_CTRUNC != 0;
    // SAFETY: the caller vouches for the header; this walks the entries that the kernel wrote.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: null or an entry within the control data.
    while let Some(entry) = unsafe { next.as_ref() } {
        if (entry.cmsg_level, entry.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            // SAFETY: an entry of this kind holds descriptors from its data to its end; nobody else
            // owns them, as they are new in this process and are taken once.
            unsafe {
                let data = libc::CMSG_DATA(entry).cast::<RawFd>();
                let bytes = entry.cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                for place in 0..bytes / size_of::<RawFd>() {
                    let fd = data.add(place).read_unaligned();
                    rights.descriptors.push(OwnedFd::from_raw_fd(fd));
                }
            }
        }
        // SAFETY: as above.
        next = unsafe { libc::CMSG_NXTHDR(header, entry) };
    }
    rights
}
