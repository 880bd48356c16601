//! What operators ask for: the routes that serve an address, or all of them, page by page.
//!
//! Reference: Handley et al. (XORP), §5.3: whoever walks through a table keeps his place while it changes. A page says
//! behind which prefix the next one begins, so that nothing has to be kept for who may never ask again, and a full
//! table stalls nobody.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{IpRoutes, Version, split, split_for, with};
use crate::{BitString, Destination, Prefix, PrefixIndex, RouteTable};

/// Destinations in a page, if nobody says how many.
const PAGE: u32 = 1000;
/// Destinations in a page at most.
const LONGEST: u32 = 10_000;

/// Some destinations that have routes, in order: those of IPv4 first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Their numbers.
    pub found: Vec<(Version, u32)>,
    /// Behind which the next page begins; none if this is the last.
    pub next: Option<IpNet>,
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// What is to be served.
    #[error("`{0}` is neither a prefix nor an address, such as 192.0.2.0/24")]
    Prefix(String),
    /// Where the page is to begin.
    #[error("`{0}` is no prefix behind which to go on: the page before says it")]
    From(String),
}

impl<R: Copy + PartialEq> IpRoutes<R> {
    /// The destination that serves an address or prefix, perhaps for multicast: the longest that contains it and has
    /// routes; none if there is none.
    ///
    /// # Errors
    /// The text is neither.
    pub fn serving(
        &self,
        multicast: bool,
        text: &str,
    ) -> Result<Option<(Version, u32)>, PageError> {
        let net = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
        let net = net.map_err(|_| PageError::Prefix(text.to_owned()))?;
        let (version, name) = split_for(net, multicast);
        let found = with!(self, version, table => serving(table, name));
        Ok(found.map(|number| (version, number)))
    }

    /// The destinations behind `from`, or the first ones, perhaps for multicast: 1,000, or as many as is said, at most
    /// 10,000.
    ///
    /// # Errors
    /// The text is no prefix.
    pub fn page(
        &self,
        multicast: bool,
        from: Option<&str>,
        at_most: Option<u32>,
    ) -> Result<Page, PageError> {
        let from = from.map(|text| text.parse().map_err(|_| PageError::From(text.to_owned())));
        let (first, behind) = match from.transpose()?.map(split) {
            Some((version, prefix)) => (version, Some(prefix)),
            None => (Version::V4, None),
        };
        // More than fit into a page are not counted.
        let most = at_most.unwrap_or(PAGE).clamp(1, LONGEST) as usize;
        let mut page = Page { found: Vec::new(), next: None };
        let all = Version::both(false).into_iter().filter(|version| *version >= first);
        for version in all {
            let behind = behind.filter(|_| version == first);
            let version = version.with(multicast);
            let found = &mut page.found;
            page.next = with!(self, version, table => append(table, version, behind, most, found));
            if page.next.is_some() {
                break;
            }
        }
        Ok(page)
    }
}

fn serving<D: Destination<Index = PrefixIndex> + BitString, R: Copy + PartialEq>(
    table: &RouteTable<D, R>,
    mut name: Prefix,
) -> Option<u32> {
    loop {
        let (length, number) = table.index().table().longest(&name)?;
        // Of one that is only still to be heard of nothing is left.
        if table.candidates(*number).next().is_some() {
            return Some(*number);
        }
        name = name.truncate(length.checked_sub(1)?);
    }
}

/// Appends destinations until there are `most`; then returns the last.
fn append<D: Destination + BitString, R: Copy + PartialEq>(
    table: &RouteTable<D, R>,
    version: Version,
    behind: Option<Prefix>,
    most: usize,
    found: &mut Vec<(Version, u32)>,
) -> Option<IpNet> {
    let mut last = behind.map(|prefix| D::from_prefix(&prefix));
    while found.len() < most {
        let (net, number) = table.after(last.as_ref())?;
        last = Some(net);
        if table.candidates(number).next().is_some() {
            found.push((version, number));
        }
    }
    last.map(|net| version.net(&net.prefix()))
}
