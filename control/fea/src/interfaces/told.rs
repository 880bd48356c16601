//! What others are told of network interfaces: all at once, or what is different from before.

use weft_runtime::Interface;
use weft_xrl::{IpNet, Mac, XrlError, fea};

use super::Interfaces;
use crate::news::{News, Watched};

impl Interfaces {
    /// All interfaces.
    ///
    /// # Errors
    /// The kernel has not told of them.
    pub(crate) fn told(&self) -> Result<fea::InterfacesReply, XrlError> {
        let all = self.all().ok_or_else(|| {
            let note = "the kernel has not told of the interfaces; why, the log of the FEA says";
            XrlError::failed(note)
        })?;
        let all: Vec<_> = all.collect();
        Ok(fea::InterfacesReply {
            interfaces: all.iter().map(|one| interface(one)).collect(),
            addresses: all.iter().flat_map(|one| addresses(one)).collect(),
        })
    }
}

impl Watched for Interfaces {
    type Thing = u32;
    type Reply = fea::WatchInterfacesReply;
    const MOST: usize = 256;

    fn things(&self) -> impl Iterator<Item = u32> {
        self.present.keys().copied()
    }

    fn is_complete(&self) -> bool {
        self.complete
    }

    fn tell(&self, news: News<u32>) -> fea::WatchInterfacesReply {
        let there = |index: &u32| self.present.get(index);
        let gone = news.things.iter().copied().filter(|index| there(index).is_none()).collect();
        fea::WatchInterfacesReply {
            again: news.again,
            interfaces: news.things.iter().filter_map(there).map(interface).collect(),
            addresses: news.things.iter().filter_map(there).flat_map(addresses).collect(),
            gone,
            complete: news.complete,
        }
    }
}

fn interface(one: &Interface) -> fea::Interface {
    fea::Interface {
        name: one.name.clone(),
        index: one.index,
        kind: one.kind.clone(),
        mac: Mac(one.mac.unwrap_or_default()),
        mtu: one.mtu,
        up: one.up,
        running: one.running,
        master: one.master.unwrap_or_default(),
    }
}

fn addresses(one: &Interface) -> impl Iterator<Item = fea::Address> {
    one.addresses.iter().filter_map(|address| {
        // The kernel's prefixes are not longer than its addresses.
        let address = IpNet::new(address.ip, address.prefix_length).ok()?;
        Some(fea::Address { interface: one.index, address })
    })
}
