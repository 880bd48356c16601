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

/// Which destinations are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Those for multicast.
    pub multicast: bool,
    /// Only those that are within this prefix, and itself.
    pub within: Option<&'a str>,
    /// Behind this one, which the page before has said; the first ones without it.
    pub from: Option<&'a str>,
    /// So many: 1,000 if nothing is said, 10,000 at most.
    pub at_most: Option<u32>,
}

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
    /// Within what destinations are to be.
    #[error("`{0}` is no prefix, such as 192.0.2.0/24, without bits behind its length")]
    Within(String),
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

    /// The next destination within a prefix and its number: the one behind `last`, which is within it, or the first. It need not
    /// have a route.
    #[must_use]
    pub fn next_within(
        &self,
        version: Version,
        within: &Prefix,
        last: Option<&Prefix>,
    ) -> Option<(Prefix, u32)> {
        with!(self, version, table => next_within(table, within, last))
    }

    /// The destinations that are asked for.
    ///
    /// # Errors
    /// A text is no prefix.
    pub fn page(&self, asked: &Asked<'_>) -> Result<Page, PageError> {
        let behind = |text: &str| text.parse().map_err(|_| PageError::From(text.to_owned()));
        let behind = asked.from.map(behind).transpose()?.map(split);
        let whole = |text: &str| match text.parse::<IpNet>() {
            Ok(net) if net.trunc() == net => Ok(split(net)),
            _ => Err(PageError::Within(text.to_owned())),
        };
        let within = asked.within.map(whole).transpose()?;
        let first = within.or(behind).map_or(Version::V4, |(version, _)| version);
        // More than fit into a page are not counted.
        let most = asked.at_most.unwrap_or(PAGE).clamp(1, LONGEST) as usize;
        let mut page = Page { found: Vec::new(), next: None };
        let all = Version::both(false).into_iter().filter(|version| *version >= first);
        for version in all {
            let of_it = |one: Option<(Version, Prefix)>| {
                one.filter(|(of, _)| *of == version).map(|(_, prefix)| prefix)
            };
            let range = Range { behind: of_it(behind), within: of_it(within) };
            if within.is_some() && range.within.is_none() {
                break;
            }
            let version = version.with(asked.multicast);
            let found = &mut page.found;
            page.next = with!(self, version, table => append(table, version, &range, most, found));
            if page.next.is_some() {
                break;
            }
        }
        Ok(page)
    }
}

/// A part of a table.
struct Range {
    behind: Option<Prefix>,
    within: Option<Prefix>,
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
fn append<D: Destination<Index = PrefixIndex> + BitString, R: Copy + PartialEq>(
    table: &RouteTable<D, R>,
    version: Version,
    range: &Range,
    most: usize,
    found: &mut Vec<(Version, u32)>,
) -> Option<IpNet> {
    let has_routes = |number| table.candidates(number).next().is_some();
    let within = range.within.unwrap_or(Prefix::ALL);
    let mut last = range.behind;
    while found.len() < most {
        let (prefix, number) = next_within(table, &within, last.as_ref())?;
        last = Some(prefix);
        if has_routes(number) {
            found.push((version, number));
        }
    }
    last.map(|prefix| version.net(&prefix))
}

/// The next destination within a prefix, behind one within it or the first.
fn next_within<D: Destination<Index = PrefixIndex> + BitString, R: Copy + PartialEq>(
    table: &RouteTable<D, R>,
    within: &Prefix,
    last: Option<&Prefix>,
) -> Option<(Prefix, u32)> {
    if last.is_none()
        && let Some(number) = table.index().table().get(within)
    {
        return Some((*within, *number));
    }
    // Right behind a prefix come all that begin with it.
    let (net, number) = table.after(Some(&D::from_prefix(last.unwrap_or(within))))?;
    let prefix = net.prefix();
    within.contains(&prefix).then_some((prefix, number))
}
