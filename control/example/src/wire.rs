//! Hellos as bytes.
//!
//! ```text
//! version(1) count(1) hold(2)      hold: after how many milliseconds of silence the sender is gone; 0: it goes now
//! address(4)…                      the neighbours that it hears on this link, `count` of them
//! network(4) length(1) hops(1)…    its routes, up to the end; 16 hops are out of reach
//! ```

use std::net::Ipv4Addr;
use std::time::Duration;

use ipnet::Ipv4Net;

const VERSION: u8 = 1;
/// So many hops are out of reach.
pub const INFINITY: u8 = 16;
/// Neighbours on a link at most.
pub const MOST_NEIGHBOURS: usize = 128;
/// Bytes of a datagram at most: it fits into every link that IPv6 may use, too.
const LONGEST: usize = 1200;

/// Why bytes are no hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It ends too early, or in the middle of something.
    #[error("it has not as many bytes as it says")]
    Length,
    /// It is of another version.
    #[error("it is of version {0}, and only {VERSION} is known")]
    Version(u8),
    /// It names more neighbours than there may be.
    #[error("it names {0} neighbours, more than {MOST_NEIGHBOURS}")]
    Neighbours(u8),
    /// A route of it is none.
    #[error("{0}/{1} at {2} hops is no route")]
    Route(Ipv4Addr, u8, u8),
}

/// What a router says on a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// How long to believe it.
    pub hold: Duration,
    /// Whom it hears.
    pub heard: Vec<Ipv4Addr>,
    /// How many hops it has to where.
    pub routes: Vec<(Ipv4Net, u8)>,
}

impl Hello {
    /// Reads a datagram.
    ///
    /// # Errors
    /// It is no hello: nothing in it is believed.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let (head, rest) = bytes.split_first_chunk::<4>().ok_or(WireError::Length)?;
        let [version, count, hold @ ..] = *head;
        if version != VERSION {
            return Err(WireError::Version(version));
        }
        if usize::from(count) > MOST_NEIGHBOURS {
            return Err(WireError::Neighbours(count));
        }
        let heard = rest.split_at_checked(4 * usize::from(count)).ok_or(WireError::Length)?;
        let (addresses, (routes, left)) = (heard.0.as_chunks().0, heard.1.as_chunks::<6>());
        if !left.is_empty() {
            return Err(WireError::Length);
        }
        let route = |&[a, b, c, d, length, hops]: &[u8; 6]| {
            let address = Ipv4Addr::new(a, b, c, d);
            let net = Ipv4Net::new(address, length).ok().filter(|net| net.trunc() == *net);
            let net = net.filter(|_| hops <= INFINITY);
            net.map(|net| (net, hops)).ok_or(WireError::Route(address, length, hops))
        };
        Ok(Self {
            hold: Duration::from_millis(u16::from_be_bytes(hold).into()),
            heard: addresses.iter().map(|&octets: &[u8; 4]| octets.into()).collect(),
            routes: routes.iter().map(route).collect::<Result<_, _>>()?,
        })
    }

    /// The datagrams that say it: as many as its routes need, and one at least. Of neighbours beyond
    /// [`MOST_NEIGHBOURS`], and of a time to hold beyond 65,535 ms, nothing is said.
    #[must_use]
    pub fn write(&self) -> Vec<Vec<u8>> {
        let heard = &self.heard[..self.heard.len().min(MOST_NEIGHBOURS)];
        let hold = u16::try_from(self.hold.as_millis()).unwrap_or(u16::MAX);
        // There are no more than fit a byte.
        let mut head = vec![VERSION, heard.len() as u8];
        head.extend(hold.to_be_bytes());
        heard.iter().for_each(|address| head.extend(address.octets()));
        let mut parts = self.routes.chunks((LONGEST - head.len()) / 6);
        let first = parts.next().unwrap_or_default();
        let datagram = |routes: &[(Ipv4Net, u8)]| {
            let mut bytes = head.clone();
            for (net, hops) in routes {
                bytes.extend(net.network().octets());
                bytes.extend([net.prefix_len(), *hops]);
            }
            bytes
        };
        std::iter::once(first).chain(parts).map(datagram).collect()
    }
}
