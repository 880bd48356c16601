//! The routes of the kernel, for those who know where they lead.
//!
//! Reference: Handley et al. (XORP), §3 (the FEA hides how packets are forwarded) and §5 (the RIB, which tells it);
//! rtnetlink(7).
//!
//! What is told waits in a queue, each prefix once (`queue`), from where it goes to the kernel in pieces, one under way
//! at a time, so that nothing else waits for longer than a piece takes. No copy is kept of what the kernel has. Only when an owner begins anew is that read, and compared with what it tells (`claim`):
//! that which is there as it is wanted costs nothing, and in the end what nobody wanted goes. `table` has the life of a
//! table.
//!
//! The kernel forgets routes without a word when an interface goes, and sets nothing for one that is down. So whoever
//! has routes that may lead there is told to begin anew, and again when the interface is back and something was refused. So is
//! whoever has a table from which somebody else has deleted routes; and where either happens again and again, it takes longer and
//! longer until that is told (`amends`).

mod amends;
mod claim;
mod queue;
mod table;
#[cfg(test)]
mod tests;
mod wanted;

use std::collections::BTreeMap;
use std::time::Duration;

use amends::Cause;
use table::{Held, Owner, Table};
use wanted::Wanted;
use weft_base::{CounterGroup, Counters, Instant, KeyedHash, Random, Token};
use weft_runtime::{
    Action, Deletions, Interface, InterfaceAddress, InterfaceChange, Level, RouteChange,
    RouteOperation, RouteReply, RouteRequest, RouteSpace, RoutesTold,
};
use weft_xrl::profile::{Clock, Profile};
use weft_xrl::{Called, IpNet, Output, XrlError, fib};

/// The number of the protocol that routes of weft have in the kernel: one that linux/rtnetlink.h and iproute2
/// (etc/iproute2/rt_protos) give to nobody.
const PROTOCOL: u8 = 119;
/// The metric of routes of which nobody says one. FRR takes 20 and BIRD 32; what comes by DHCP has 100 or more.
const METRIC: u32 = 40;
/// What the kernel makes of the metric 0 of a route of IPv6 (linux/ipv6_route.h, `IP6_RT_PRIO_USER`), and tells of it.
const USUAL_IPV6: u32 = 1024;
/// How long routes stay without their owner, if it does not say.
const KEEP: Duration = Duration::from_secs(300);
/// How many changes the kernel is told at a time: less than a millisecond of work for it, of which a route of IPv4 took it
/// 3 µs and one of IPv6 4.7 µs on two busy cores of an AMD EPYC (KVM, Linux 6.18).
const AT_A_TIME: usize = 192;
/// The longest that an answer to `events` is kept back.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

weft_base::reasons! {
    /// What was done with routes of the kernel.
    pub(crate) enum RouteCount {
        Added = "added", "routes that the kernel did not have, and has taken";
        Replaced = "replaced", "routes that the kernel has taken in the place of others, or of none";
        Deleted = "deleted", "routes that the kernel has been told to delete";
        Same = "same", "routes that were told anew and that the kernel had as they are";
        Refused = "refused", "routes that the kernel has not taken";
        Read = "read", "routes that the kernel has told of, because somebody told everything anew";
        Begun = "begun", "beginnings of callers that tell everything anew";
        DeletedByOthers = "deleted-by-others", "routes that others have deleted";
        Lost = "lost", "times that the kernel might have something else than what it was told";
    }
}

weft_base::reasons! {
    /// Places that routes pass, for profiles.
    pub(crate) enum Point {
        Arrived = "arrived", "arriving at the FEA";
        Kernel = "kernel", "entering the kernel";
        Taken = "taken", "taken by the kernel, which has said so";
    }
}

/// See the module's text.
pub(crate) struct Fib {
    /// Of the queues.
    hash: KeyedHash,
    /// By number and version of IP.
    tables: BTreeMap<Which, Table>,
    jobs: BTreeMap<Token, Job>,
    last_token: u32,
    /// Whether the kernel tells what others delete.
    watches: bool,
    interfaces: BTreeMap<u32, Usable>,
    counters: Counters<RouteCount>,
    /// When routes pass which point.
    pub(crate) profile: Profile<Point>,
}

/// A table: its number, and whether it is of IPv6.
type Which = (u32, bool);

/// What the kernel does for a table.
#[derive(Clone, Copy)]
enum Job {
    Change(Which),
    /// At which of its beginnings.
    Dump(Which, u64),
    Watch,
}

/// What is left to do for a call.
enum Next {
    Begin(fib::Begin),
    Change(Which, Wanted),
    End(Which),
    /// Tell what there is, or wait for so long.
    Events(Which, Duration),
    /// Tell who has no table to begin.
    Unknown,
    List,
}

impl Fib {
    pub(crate) fn new(random: &mut Random) -> Self {
        Self {
            hash: KeyedHash::new(random),
            tables: BTreeMap::new(),
            jobs: BTreeMap::new(),
            last_token: 0,
            watches: false,
            interfaces: BTreeMap::new(),
            counters: Counters::new(),
            profile: Profile::default(),
        }
    }

    pub(crate) fn set_clock(&mut self, clock: Option<Clock>) {
        self.profile = Profile::new(clock);
    }

    /// Somebody calls.
    pub(crate) fn called(&mut self, now: Instant, mut called: Called, out: &mut Vec<Output>) {
        let next = called.read::<fib::Call>().and_then(|call| self.prepare(&called, call));
        match next {
            Ok(Next::Begin(request)) => self.begin(called, &request, out),
            Ok(Next::Change(key, wanted)) => self.tell(key, Held::Change(called, wanted), out),
            Ok(Next::End(key)) => self.tell(key, Held::End(called), out),
            Ok(Next::Events(key, wait)) => {
                if let Some(table) = self.tables.get_mut(&key) {
                    let until = (!wait.is_zero()).then(|| now + wait);
                    table.wait(called, until, out);
                }
            }
            // Nothing is known of what the caller has told, perhaps to an FEA before this one.
            Ok(Next::Unknown) => out.push(called.answer(Ok::<_, XrlError>(fib::EventsReply {
                again: true,
                refused: Vec::new(),
                omitted: 0,
            }))),
            Ok(Next::List) => out.push(called.answer(Ok::<_, XrlError>(self.list()))),
            Err(error) => out.push(called.fail(error)),
        }
    }

    /// Checks a call, and that the caller may have its table.
    fn prepare(&mut self, called: &Called, call: fib::Call) -> Result<Next, XrlError> {
        Ok(match call {
            fib::Call::Begin(request) => {
                self.take_over(called, (request.table, request.is_ipv6))?;
                Next::Begin(request)
            }
            fib::Call::Change(request) => {
                let key = (request.table, request.is_ipv6);
                self.have_arrived(&request);
                let wanted = Wanted::read(request)?;
                self.take_over(called, key)?;
                Next::Change(key, wanted)
            }
            fib::Call::End(fib::End { table, is_ipv6 }) => {
                self.take_over(called, (table, is_ipv6))?;
                Next::End((table, is_ipv6))
            }
            fib::Call::Events(fib::Events { table, is_ipv6, wait }) => {
                let wait = Duration::from_millis(wait.into()).min(LONGEST_WAIT);
                let known = self.tables.get(&(table, is_ipv6));
                match known.and_then(|table| Some((table, table.owner.as_ref()?))) {
                    Some((_, owner)) if *owner == Owner::of(called) => {
                        Next::Events((table, is_ipv6), wait)
                    }
                    Some((table, owner)) => return Err(taken(table, owner)),
                    None => Next::Unknown,
                }
            }
            fib::Call::Tables(_) => Next::List,
        })
    }

    /// For profiles: somebody tells these.
    fn have_arrived(&mut self, request: &fib::Change) {
        if self.profile.is_on(Point::Arrived) {
            let told = request.routes.iter().map(|route| (route.net, false));
            for (net, gone) in told.chain(request.gone.iter().map(|net| (*net, true))) {
                self.profile.mark_event(Point::Arrived, gone, || net);
            }
        }
    }

    /// Sees to it that the table is the caller's: one that nobody has becomes the caller's.
    fn take_over(&mut self, called: &Called, (table, is_ipv6): Which) -> Result<(), XrlError> {
        if table == 0 {
            return Err(XrlError::bad_args("there is no table 0: the main one is 254"));
        }
        let space = RouteSpace { is_ipv6, table, protocol: PROTOCOL };
        let table = self.tables.entry((table, is_ipv6));
        let table = table.or_insert_with(|| Table::new(space, METRIC, KEEP, self.hash));
        let caller = Owner::of(called);
        match &table.owner {
            Some(owner) if *owner != caller => return Err(taken(table, owner)),
            Some(_) => {}
            None => (table.owner, table.until, table.gone) = (Some(caller), None, None),
        }
        Ok(())
    }

    fn begin(&mut self, called: Called, request: &fib::Begin, out: &mut Vec<Output>) {
        let key = (request.table, request.is_ipv6);
        let Some(table) = self.tables.get_mut(&key) else { return };
        table.metric = match request.metric.unwrap_or(METRIC) {
            0 if request.is_ipv6 => USUAL_IPV6,
            metric => metric,
        };
        table.keep = request.keep.map_or(KEEP, |seconds| Duration::from_secs(seconds.into()));
        table.begin(Some(called), out);
        self.counters.add(RouteCount::Begun, 1);
        if !self.watches {
            self.watches = true;
            self.ask(Job::Watch, RouteRequest::Watch { protocol: PROTOCOL }, out);
        }
        self.dump(key, out);
    }

    /// Its owner tells something of a table.
    fn tell(&mut self, key: Which, call: Held, out: &mut Vec<Output>) {
        let Some(table) = self.tables.get_mut(&key) else { return };
        if let Some(call) = table.hold(call) {
            self.take(key, call);
            self.pump(key, out);
        }
    }

    /// Does what a call says that is not, or no longer, held back.
    fn take(&mut self, key: Which, call: Held) {
        let Some(table) = self.tables.get_mut(&key) else { return };
        match call {
            Held::Change(called, wanted) => {
                self.counters.add(RouteCount::Same, table.take(called, wanted));
            }
            Held::End(called) => table.end(called),
        }
    }

    fn list(&self) -> fib::TablesReply {
        let table = |((number, is_ipv6), table): (&Which, &Table)| fib::Table {
            table: *number,
            is_ipv6: *is_ipv6,
            owner: table.owner.as_ref().map(|owner| owner.caller.to_string()).unwrap_or_default(),
            metric: table.metric,
            state: table.state().to_owned(),
            waiting: u32::try_from(table.queue.len()).unwrap_or(u32::MAX),
            refused: u32::try_from(table.refused.len()).unwrap_or(u32::MAX),
        };
        fib::TablesReply { tables: self.tables.iter().map(table).collect() }
    }

    fn ask(&mut self, job: Job, request: RouteRequest, out: &mut Vec<Output>) {
        self.last_token = self.last_token.wrapping_add(1) & 0xff_ffff;
        let token = Token(self.last_token);
        self.jobs.insert(token, job);
        out.push(Output::World(Action::Routes { token, request }));
    }

    fn dump(&mut self, key: Which, out: &mut Vec<Output>) {
        let Some(table) = self.tables.get(&key) else { return };
        let job = Job::Dump(key, table.epoch);
        let request = RouteRequest::Dump { space: table.space };
        self.ask(job, request, out);
    }

    /// Gives the kernel the next piece, unless it has one.
    fn pump(&mut self, key: Which, out: &mut Vec<Output>) {
        let Some(table) = self.tables.get_mut(&key) else { return };
        table.advance(out);
        if table.in_flight.is_some() {
            return;
        }
        let changes = table.queue.take(AT_A_TIME);
        if changes.is_empty() {
            // What was left came and went while it waited.
            table.advance(out);
            if table.is_settled() && table.owner.is_none() && table.until.is_none() {
                self.tables.remove(&key);
            }
            return;
        }
        for change in &changes {
            let gone = matches!(change.operation, RouteOperation::Delete);
            self.profile.mark(Point::Kernel, gone, || net(&change.destination));
        }
        table.in_flight =
            Some(changes.iter().map(|change| (change.into(), count(change))).collect());
        let request = RouteRequest::Change { space: table.space, changes };
        self.ask(Job::Change(key), request, out);
    }

    /// The kernel has answered.
    pub(crate) fn answered(
        &mut self,
        now: Instant,
        token: Token,
        result: Result<RouteReply, String>,
        out: &mut Vec<Output>,
    ) {
        let goes_on = matches!(
            result,
            Ok(RouteReply::Told { told: RoutesTold::More | RoutesTold::Again, .. }
                | RouteReply::Deleted(_))
        );
        let job = match goes_on {
            true => self.jobs.get(&token).copied(),
            false => self.jobs.remove(&token),
        };
        match job {
            Some(Job::Change(key)) => self.changed(key, result, out),
            Some(Job::Dump(key, epoch)) => self.told(key, epoch, result, out),
            Some(Job::Watch) => match result {
                Ok(RouteReply::Deleted(deletions)) => self.deleted(now, &deletions),
                // It is answered so alone.
                Ok(_) => {}
                Err(line) => {
                    self.watches = false;
                    out.push(Output::World(Action::Report { level: Level::Warning, line }));
                }
            },
            None => {}
        }
    }

    /// Others have deleted routes.
    fn deleted(&mut self, now: Instant, deletions: &Deletions) {
        for table in self.tables.values_mut() {
            let of = deletions.routes.get(&table.space).copied();
            self.counters.add(RouteCount::DeletedByOthers, of.unwrap_or_default());
            if table.owner.is_some() && (of.is_some() || deletions.omitted) {
                table.amends.needed(Cause::Deleted, now);
            }
        }
    }

    fn changed(&mut self, key: Which, result: Result<RouteReply, String>, out: &mut Vec<Output>) {
        let Some(table) = self.tables.get_mut(&key) else { return };
        let changes = table.in_flight.take().unwrap_or_default();
        match result {
            Ok(RouteReply::Changed { refused }) => {
                let mut refused = refused.into_iter().peekable();
                for (place, (key, count)) in changes.into_iter().enumerate() {
                    if let Some((_, error)) = refused.next_if(|(refused, _)| *refused == place) {
                        self.counters.add(RouteCount::Refused, 1);
                        table.refuse(key, error, out);
                    } else {
                        self.counters.add(count, 1);
                        let gone = count == RouteCount::Deleted;
                        self.profile.mark(Point::Taken, gone, || net(&key.destination));
                        table.made(&key);
                    }
                }
            }
            // A change is answered so alone.
            Ok(RouteReply::Told { .. } | RouteReply::Deleted(_)) => {}
            Err(error) => {
                self.counters.add(RouteCount::Lost, 1);
                report(key, &error, out);
                table.lost_track(out);
            }
        }
        self.pump(key, out);
    }

    fn told(
        &mut self,
        key: Which,
        epoch: u64,
        result: Result<RouteReply, String>,
        out: &mut Vec<Output>,
    ) {
        let Some(table) = self.tables.get_mut(&key).filter(|table| table.epoch == epoch) else {
            return;
        };
        match result {
            Ok(RouteReply::Told { routes, told }) => {
                self.counters.add(RouteCount::Read, routes.len() as u64);
                let Some(claim) = table.reading() else { return };
                match told {
                    RoutesTold::Again => return claim.clear(),
                    RoutesTold::More => return claim.push(routes),
                    RoutesTold::All => claim.push(routes),
                }
                for call in table.read(out) {
                    self.take(key, call);
                }
            }
            // A dump is answered so alone.
            Ok(RouteReply::Changed { .. } | RouteReply::Deleted(_)) => {}
            Err(error) => {
                report(key, &error, out);
                table.unreadable(error, out);
            }
        }
        self.pump(key, out);
    }

    /// A caller is gone: its routes stay for a while, unless the node does not want it any more.
    pub(crate) fn left(
        &mut self,
        now: Instant,
        (session, removed): (u64, bool),
        out: &mut Vec<Output>,
    ) {
        let mut over = Vec::new();
        for (key, table) in &mut self.tables {
            if table.owner.as_ref().is_some_and(|owner| owner.session == session) {
                table.left(now);
            }
            if removed && table.gone == Some(session) {
                over.push(*key);
            }
        }
        over.into_iter().for_each(|key| self.take_away(key, out));
    }

    /// The routes of a table go, which nobody has any more.
    fn take_away(&mut self, key: Which, out: &mut Vec<Output>) {
        let Some(table) = self.tables.get_mut(&key) else { return };
        (table.until, table.gone) = (None, None);
        table.begin(None, out);
        self.dump(key, out);
    }

    /// What the kernel tells of an interface.
    pub(crate) fn interface(
        &mut self,
        now: Instant,
        change: &InterfaceChange,
        out: &mut Vec<Output>,
    ) {
        let (index, usable) = match change {
            InterfaceChange::Added(one) | InterfaceChange::Changed(one) => {
                (one.index, Usable::of(one))
            }
            InterfaceChange::Removed { index, .. } => (*index, Usable::default()),
            InterfaceChange::Complete => return,
        };
        let before = match usable == Usable::default() {
            true => self.interfaces.remove(&index),
            false => self.interfaces.insert(index, usable),
        };
        let before = before.unwrap_or_default();
        for ((_, is_ipv6), table) in &mut self.tables {
            // Without its last address an interface has no IP. Next hops that routes share, and the routes, go with the
            // carrier.
            let tells = |one: Usable| [one.up, one.running, one.up && one.has_ip(*is_ipv6)];
            let changes = || tells(before).into_iter().zip(tells(usable));
            if changes().any(|(before, now)| before && !now) {
                table.interface_lost(index, now);
            }
            if changes().any(|(before, now)| !before && now) {
                table.interface_found(now);
            }
            self.counters.add(RouteCount::Lost, table.make_amends(now, out).into());
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.tables.values().filter_map(Table::deadline).min()
    }

    /// Answers those who have waited long enough, and takes routes away whose owner has been gone for too long.
    pub(crate) fn expire(&mut self, now: Instant, out: &mut Vec<Output>) {
        let mut over = Vec::new();
        for (key, table) in &mut self.tables {
            self.counters.add(RouteCount::Lost, table.make_amends(now, out).into());
            table.expire(Some(now), out);
            if table.until.is_some_and(|until| until <= now) {
                let line = format!(
                    "nobody has come back for the routes of table {}: they are taken away",
                    key.0
                );
                out.push(Output::World(Action::Report { level: Level::Warning, line }));
                over.push(*key);
            }
        }
        over.into_iter().for_each(|key| self.take_away(key, out));
    }

    pub(crate) fn counters(&self) -> CounterGroup {
        CounterGroup::new("fea-routes", "what was done with routes of the kernel", &self.counters)
    }
}

/// The network of a route, whose length is that of a prefix of the kernel.
fn net(destination: &InterfaceAddress) -> IpNet {
    IpNet::new(destination.ip, destination.prefix_length).unwrap_or(destination.ip.into())
}

/// What is counted when a change was made.
fn count(change: &RouteChange) -> RouteCount {
    match change.operation {
        RouteOperation::Add(_) => RouteCount::Added,
        RouteOperation::Replace(_) => RouteCount::Replaced,
        RouteOperation::Delete => RouteCount::Deleted,
    }
}

fn report((table, _): Which, error: &str, out: &mut Vec<Output>) {
    let line = format!("the routes of table {table} may not be what they should: {error}");
    out.push(Output::World(Action::Report { level: Level::Warning, line }));
}

/// How far an interface can be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usable {
    up: bool,
    running: bool,
    has_ipv4: bool,
    has_ipv6: bool,
}

impl Usable {
    fn of(one: &Interface) -> Self {
        let has = |is_ipv6| one.addresses.iter().any(|address| address.ip.is_ipv6() == is_ipv6);
        Self { up: one.up, running: one.running, has_ipv4: has(false), has_ipv6: has(true) }
    }

    fn has_ip(self, is_ipv6: bool) -> bool {
        if is_ipv6 { self.has_ipv6 } else { self.has_ipv4 }
    }
}

fn taken(table: &Table, owner: &Owner) -> XrlError {
    let family = if table.space.is_ipv6 { "IPv6" } else { "IPv4" };
    let (number, caller) = (table.space.table, &owner.caller);
    XrlError::failed(format!(
        "table {number} of {family} is that of {caller}: take another one, or end that first"
    ))
}
