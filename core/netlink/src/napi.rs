//! NAPI, by which the kernel takes packets from an interface's driver, and GRO, which joins them.
//!
//! A NAPI runs in the soft interrupt of whichever processor has something for it, or in a thread of its own, which
//! can be scheduled as every thread. Drivers make NAPIs when an interface comes up, and some anew when its features
//! or its programs at XDP change: settings and thread are new then. A veth has none before it has GRO or a program
//! at XDP.
//!
//! All is asked by netlink and nothing by sysfs: that shows the interfaces of the network namespace in which it was
//! mounted, and who writes there needs the rights of root on files.
//!
//! Reference: Linux kernel, Documentation/networking/napi.rst, Documentation/netlink/specs/netdev.yaml,
//! Documentation/networking/ethtool-netlink.rst; constants from linux/netdev.h and linux/ethtool_netlink.h.

use std::io;
use std::time::Duration;

use crate::generic::{Attributes, Generic, Request};
use crate::message::{attributes, number, text};
use crate::programs::Refusal;

const NETDEV: &str = "netdev";
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_CMD_NAPI_SET: u8 = 14;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_PID: u16 = 4;
const NETDEV_A_NAPI_DEFER_HARD_IRQS: u16 = 5;
const NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT: u16 = 6;
const NETDEV_A_NAPI_THREADED: u16 = 8;

const ETHTOOL: &str = "ethtool";
const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_WANTED: u16 = 3;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BITS_BIT: u16 = 1;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;
const ETHTOOL_A_BITSET_BIT_VALUE: u16 = 3;
/// The kernel's name of GRO (`NETIF_F_GRO_BIT`).
const GRO: &str = "rx-gro";

/// A NAPI of an interface, as the kernel tells of it. What this kernel does not tell cannot be set, either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Napi {
    /// Its number, which no other one has until this kernel ends.
    pub id: u32,
    /// The number of its thread, if it has one.
    pub thread: Option<u32>,
    /// Whether it has a thread. Told by Linux 6.17 and newer.
    pub threaded: Option<bool>,
    /// How often it may find nothing before it switches its interrupt on again. Told by Linux 6.13 and newer.
    pub defer_interrupts: Option<u32>,
    /// How long it waits then, and how long packets may wait to be joined with later ones. Told by Linux 6.13 and
    /// newer.
    pub flush_timeout: Option<Duration>,
}

/// A setting of a NAPI; see [`Napi`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NapiSetting {
    /// Whether it has a thread.
    Threaded(bool),
    /// See [`Napi::defer_interrupts`]; at most `i32::MAX`.
    DeferInterrupts(u32),
    /// See [`Napi::flush_timeout`].
    FlushTimeout(Duration),
}

/// A socket to ask about NAPI and GRO, for the network namespace in which it was opened.
#[derive(Debug)]
pub struct NapiControl {
    generic: Generic,
}

impl NapiControl {
    /// For the network namespace that the calling thread is in.
    ///
    /// # Errors
    /// Those of socket(2) and setsockopt(2).
    pub fn open() -> io::Result<Self> {
        Ok(Self { generic: Generic::open()? })
    }

    /// The number of an interface.
    ///
    /// # Errors
    /// `ENODEV` if there is none with this name.
    pub fn index(&self, interface: &str) -> io::Result<u32> {
        self.generic.index(interface)
    }

    /// The NAPIs of an interface, in order of their numbers; none while it is down.
    ///
    /// # Errors
    /// What the kernel says: `ENOENT` before Linux 6.8, which cannot be asked.
    pub fn napis(&mut self, interface: u32) -> Result<Vec<Napi>, Refusal> {
        let attributes =
            Attributes::default().with(NETDEV_A_NAPI_IFINDEX, &interface.to_ne_bytes());
        let request = Request { command: NETDEV_CMD_NAPI_GET, list: true, attributes };
        let told = self.ask(NETDEV, &request)?;
        let mut napis: Vec<_> = told.iter().filter_map(|one| napi(one)).collect();
        napis.sort_by_key(|napi| napi.id);
        Ok(napis)
    }

    /// Changes a setting of a NAPI.
    ///
    /// # Errors
    /// What the kernel says: `EPERM` without CAP_NET_ADMIN, `ENOENT` if it is gone.
    pub fn set(&mut self, napi: u32, setting: NapiSetting) -> Result<(), Refusal> {
        let attributes = Attributes::default().with(NETDEV_A_NAPI_ID, &napi.to_ne_bytes());
        let attributes = match setting {
            NapiSetting::Threaded(threaded) => {
                attributes.with(NETDEV_A_NAPI_THREADED, &u32::from(threaded).to_ne_bytes())
            }
            NapiSetting::DeferInterrupts(times) => {
                attributes.with(NETDEV_A_NAPI_DEFER_HARD_IRQS, &times.to_ne_bytes())
            }
            NapiSetting::FlushTimeout(time) => {
                // 64 bits of nanoseconds are 584 years.
                let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
                attributes.with(NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, &nanoseconds.to_ne_bytes())
            }
        };
        let request = Request { command: NETDEV_CMD_NAPI_SET, list: false, attributes };
        self.ask(NETDEV, &request).map(drop)
    }

    /// Whether an interface has GRO.
    ///
    /// # Errors
    /// What the kernel says: `ENODEV` if there is no such interface.
    pub fn gro(&mut self, interface: u32) -> Result<bool, Refusal> {
        let attributes = features_of(interface);
        let request = Request { command: ETHTOOL_MSG_FEATURES_GET, list: false, attributes };
        Ok(self.ask(ETHTOOL, &request)?.iter().any(|one| has_gro(one)))
    }

    /// Switches GRO of an interface.
    ///
    /// # Errors
    /// What the kernel says: `EPERM` without CAP_NET_ADMIN. An interface that cannot switch it leaves it as it is,
    /// which is no error.
    pub fn set_gro(&mut self, interface: u32, on: bool) -> Result<(), Refusal> {
        let name = [GRO.as_bytes(), &[0]].concat();
        let bit = Attributes::default().with(ETHTOOL_A_BITSET_BIT_NAME, &name);
        let bit = if on { bit.with(ETHTOOL_A_BITSET_BIT_VALUE, &[]) } else { bit };
        let bits = Attributes::default().with_nested(ETHTOOL_A_BITSET_BITS_BIT, &bit);
        let set = Attributes::default().with_nested(ETHTOOL_A_BITSET_BITS, &bits);
        let attributes = features_of(interface).with_nested(ETHTOOL_A_FEATURES_WANTED, &set);
        let request = Request { command: ETHTOOL_MSG_FEATURES_SET, list: false, attributes };
        self.ask(ETHTOOL, &request).map(drop)
    }

    fn ask(&mut self, family: &str, request: &Request) -> Result<Vec<Vec<u8>>, Refusal> {
        let family = self.generic.family(family)?;
        self.generic.ask(family, request)
    }
}

/// A request about the features of an interface.
fn features_of(interface: u32) -> Attributes {
    let header = Attributes::default().with(ETHTOOL_A_HEADER_DEV_INDEX, &interface.to_ne_bytes());
    Attributes::default().with_nested(ETHTOOL_A_FEATURES_HEADER, &header)
}

/// Reads what is told of one NAPI.
pub(crate) fn napi(told: &[u8]) -> Option<Napi> {
    let mut napi =
        Napi { id: 0, thread: None, threaded: None, defer_interrupts: None, flush_timeout: None };
    for (kind, value) in attributes(told) {
        match kind {
            NETDEV_A_NAPI_ID => napi.id = number(value)?,
            NETDEV_A_NAPI_PID => napi.thread = number(value),
            NETDEV_A_NAPI_DEFER_HARD_IRQS => napi.defer_interrupts = number(value),
            NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT => {
                napi.flush_timeout = long(value).map(Duration::from_nanos);
            }
            NETDEV_A_NAPI_THREADED => {
                napi.threaded = number(value).map(|threaded| threaded != 0);
            }
            _ => {}
        }
    }
    (napi.id > 0).then_some(napi)
}

/// A number that the kernel writes with 32 or 64 bits, as it needs them.
fn long(value: &[u8]) -> Option<u64> {
    match value.len() {
        8 => value.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes)),
        _ => number(value).map(u64::from),
    }
}

/// Whether GRO is among the features that are told as active.
pub(crate) fn has_gro(told: &[u8]) -> bool {
    let within = |bytes, wanted: u16| {
        attributes(bytes).filter(move |(kind, _)| *kind == wanted).map(|(_, value)| value)
    };
    within(told, ETHTOOL_A_FEATURES_ACTIVE)
        .flat_map(|set| within(set, ETHTOOL_A_BITSET_BITS))
        .flat_map(|bits| within(bits, ETHTOOL_A_BITSET_BITS_BIT))
        .flat_map(|bit| within(bit, ETHTOOL_A_BITSET_BIT_NAME))
        .any(|name| text(name) == GRO)
}

#[cfg(test)]
mod tests {
    use weft_port::testing::{Namespace, privileged};

    use super::*;

    #[test]
    fn gro_is_switched_and_a_veth_has_a_napi_with_it() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link add name one type veth peer name two");
        namespace.ip("link set one up");
        namespace.ip("link set two up");
        let mut control = namespace.run(|| NapiControl::open().unwrap());
        let one = control.index("one").unwrap();
        assert!(!control.gro(one).unwrap());
        assert_eq!(control.napis(one).unwrap(), []);
        control.set_gro(one, true).unwrap();
        assert!(control.gro(one).unwrap());
        assert!(!control.napis(one).unwrap().is_empty());
        control.set_gro(one, false).unwrap();
        assert!(!control.gro(one).unwrap());
        assert_eq!(control.napis(one).unwrap(), []);
        assert_eq!(control.gro(999).unwrap_err().code(), Some(libc::ENODEV));
        assert!(control.index("three").is_err());
    }

    #[test]
    fn settings_of_a_napi_are_changed_and_a_thread_comes_and_goes() {
        if !privileged() {
            return;
        }
        let namespace = Namespace::new();
        namespace.ip("link add name one type veth peer name two");
        namespace.ip("link set one up");
        let mut control = namespace.run(|| NapiControl::open().unwrap());
        let one = control.index("one").unwrap();
        control.set_gro(one, true).unwrap();
        let found = control.napis(one).unwrap()[0];
        // Kernels that tell of them let them be set.
        if let Some(before) = found.threaded {
            assert_eq!((before, found.thread), (false, None));
            control.set(found.id, NapiSetting::Threaded(true)).unwrap();
            let now = control.napis(one).unwrap()[0];
            assert!(now.threaded == Some(true) && now.thread.is_some());
            control.set(found.id, NapiSetting::Threaded(false)).unwrap();
        }
        if found.defer_interrupts.is_some() {
            let time = Duration::from_micros(20);
            control.set(found.id, NapiSetting::DeferInterrupts(3)).unwrap();
            control.set(found.id, NapiSetting::FlushTimeout(time)).unwrap();
            let now = control.napis(one).unwrap()[0];
            assert_eq!((now.defer_interrupts, now.flush_timeout), (Some(3), Some(time)));
        }
        let gone = control.set(u32::MAX, NapiSetting::DeferInterrupts(3)).unwrap_err();
        assert!(gone.code().is_some());
    }

    #[test]
    fn what_is_told_is_read_and_nonsense_is_not() {
        let told = Attributes::default()
            .with(NETDEV_A_NAPI_ID, &7_u32.to_ne_bytes())
            .with(NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, &(1_u64 << 33).to_ne_bytes())
            .with(999, b"new");
        let told = told.as_bytes();
        let read = napi(told).unwrap();
        assert_eq!((read.id, read.flush_timeout), (7, Some(Duration::from_nanos(1 << 33))));
        assert_eq!((read.thread, read.threaded, read.defer_interrupts), (None, None, None));
        for len in 0..told.len() {
            // What is cut off is not there.
            assert!(napi(&told[..len]).is_none_or(|napi| napi.id == 7));
            assert!(!has_gro(&told[..len]));
        }
    }
}
