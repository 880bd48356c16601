//! The readers of what the kernel tells, for those who try them with anything.

use crate::ip_watch::IpWatch;
use crate::watch::Watch;
use crate::{InterfaceChange, IpChange, KernelRoute, RouteSpace, generic, napi, routes};

/// Whoever follows the kernel's IP, without a socket.
#[derive(Debug, Default)]
pub struct IpReader(IpWatch);

impl IpReader {
    /// One that has asked for everything, by requests that have the numbers 1, 2 and so on.
    #[must_use]
    pub fn asking() -> Self {
        let mut reader = Self::default();
        let _ = reader.0.resynchronise();
        reader
    }

    /// Takes a datagram of the kernel and appends what is different now. Returns a request to be sent, if there is
    /// one.
    pub fn handle(&mut self, datagram: &[u8], changes: &mut Vec<IpChange>) -> Option<Vec<u8>> {
        self.0.handle(datagram, changes)
    }

    /// Appends everything that was told.
    pub fn tell_again(&self, changes: &mut Vec<IpChange>) {
        self.0.tell_again(changes);
    }
}

/// Whoever follows the interfaces, without a socket.
#[derive(Debug, Default)]
pub struct InterfaceReader(Watch);

impl InterfaceReader {
    /// One that has asked for everything, by requests that have the numbers 1, 2 and so on.
    #[must_use]
    pub fn asking() -> Self {
        let mut reader = Self::default();
        let _ = reader.0.resynchronise();
        reader
    }

    /// Takes a datagram of the kernel and appends what is different now. Returns a request to be sent, if there is
    /// one.
    pub fn handle(
        &mut self,
        datagram: &[u8],
        changes: &mut Vec<InterfaceChange>,
    ) -> Option<Vec<u8>> {
        self.0.handle(datagram, changes)
    }
}

/// Reads the routes of a space from whatever a datagram tells.
#[must_use]
pub fn read_routes(space: RouteSpace, datagram: &[u8]) -> Vec<KernelRoute> {
    let mut told = Vec::new();
    routes::Reader::new(space).routes(datagram, &mut told);
    told
}

/// Reads an answer to the request number 1 about NAPIs and features; the numbers of the NAPIs, and how many messages
/// tell of GRO.
#[must_use]
pub fn read_napis(datagram: &[u8]) -> (Vec<u32>, usize) {
    let mut told = Vec::new();
    let _ = generic::read(datagram, 1, &mut told);
    let ids = told.iter().filter_map(|one| napi::napi(one)).map(|napi| napi.id).collect();
    (ids, told.iter().filter(|one| napi::has_gro(one)).count())
}
