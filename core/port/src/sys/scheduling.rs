//! How the kernel schedules a thread: `sched_setattr(2)` and `sched_getattr(2)`.

use std::io;

/// `struct sched_attr` of linux/sched/types.h, as it was first.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Attributes {
    pub(crate) size: u32,
    pub(crate) policy: u32,
    pub(crate) flags: u64,
    pub(crate) nice: i32,
    pub(crate) priority: u32,
    pub(crate) runtime: u64,
    pub(crate) deadline: u64,
    pub(crate) period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;

/// The attributes of a thread; of this one for 0.
pub(crate) fn attributes(thread: u32) -> io::Result<Attributes> {
    let mut found = Attributes::default();
    let place = std::ptr::from_mut(&mut found);
    // SAFETY: the kernel writes at most `SIZE` bytes, which is how long the attributes are, and all bytes are
    // attributes.
    let result = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, place, SIZE, 0_u32) };
    if result == 0 { Ok(found) } else { Err(io::Error::last_os_error()) }
}

/// Gives a thread attributes.
pub(crate) fn set_attributes(thread: u32, wanted: Attributes) -> io::Result<()> {
    let wanted = Attributes { size: SIZE, ..wanted };
    let place = std::ptr::from_ref(&wanted);
    // SAFETY: the kernel reads `SIZE` bytes, which is how long the attributes are.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, place, 0_u32) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
