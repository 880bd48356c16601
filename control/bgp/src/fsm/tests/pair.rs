//! Two sessions, back to back, over a network with delays.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What reaches a session.
#[derive(Clone, Debug)]
enum Arrival {
    Opened(AttemptId, ConnectionId),
    Accepted(ConnectionId),
    Bytes(ConnectionId, Vec<u8>),
    Lost(ConnectionId),
}

impl Arrival {
    fn connection(&self) -> ConnectionId {
        match self {
            Self::Opened(_, id) | Self::Accepted(id) | Self::Bytes(id, _) | Self::Lost(id) => *id,
        }
    }
}

struct World {
    sessions: [Session; 2],
    now: Instant,
    agenda: BTreeMap<(Instant, u64), (usize, Arrival)>,
    count: u64,
    /// What reaches a side on a connection comes in order.
    last: BTreeMap<(usize, u64), Instant>,
    cancelled: BTreeSet<(usize, u64)>,
    closed: BTreeSet<u64>,
    updates: [usize; 2],
    downs: [usize; 2],
    random: Random,
    /// The longest delay in nanoseconds, and the shortest.
    delays: (u64, u64),
}

impl World {
    fn new(settings: [Settings; 2], seed: u64, delays: (u64, u64)) -> Self {
        let random = Random::from_seed(seed);
        let [a, b] = settings;
        let sessions = [Session::new(a, random.fork("a")), Session::new(b, random.fork("b"))];
        Self {
            sessions,
            now: Instant::ZERO,
            agenda: BTreeMap::new(),
            count: 0,
            last: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            closed: BTreeSet::new(),
            updates: [0; 2],
            downs: [0; 2],
            random,
            delays,
        }
    }

    fn delay(&mut self) -> Duration {
        let (most, least) = self.delays;
        Duration::from_nanos(least + self.random.below(most - least + 1))
    }

    fn schedule(&mut self, at: Instant, side: usize, arrival: Arrival) {
        let last = self.last.entry((side, arrival.connection().0)).or_default();
        *last = at.max(*last);
        self.count += 1;
        self.agenda.insert((*last, self.count), (side, arrival));
    }

    fn tell(&mut self, side: usize, input: Input<'_>) {
        let mut out = Vec::new();
        self.sessions[side].handle(self.now, input, &mut out);
        for output in out {
            self.carry_out(side, output);
        }
    }

    fn carry_out(&mut self, side: usize, output: Output) {
        let at = self.now + self.delay();
        match output {
            Output::Connect(attempt) => {
                self.count += 1;
                let connection = ConnectionId(self.count);
                let back = at + self.delay();
                let accepted = at + self.delay();
                self.schedule(accepted, 1 - side, Arrival::Accepted(connection));
                self.schedule(back, side, Arrival::Opened(attempt, connection));
            }
            Output::CancelConnect(attempt) => {
                self.cancelled.insert((side, attempt.0));
            }
            Output::Send { connection, bytes } => {
                self.schedule(at, 1 - side, Arrival::Bytes(connection, bytes));
                self.tell(side, Input::Sent(connection));
            }
            Output::Close(connection) => {
                self.closed.insert(connection.0);
                self.schedule(at, 1 - side, Arrival::Lost(connection));
            }
            Output::Update(_) => self.updates[side] += 1,
            Output::Down { .. } => self.downs[side] += 1,
            Output::Up { .. } | Output::Failed(_) | Output::Refresh(_) | Output::Transition(_) => {}
        }
    }

    /// The next thing that is due; false if that is after `end`.
    fn step(&mut self, end: Instant) -> bool {
        let deadlines = self.sessions.iter().filter_map(Session::deadline);
        let arrival = self.agenda.keys().next().map(|(at, _)| *at);
        let Some(next) = deadlines.chain(arrival).min().filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next)
            && let Some((_, (side, arrival))) = self.agenda.pop_first()
        {
            match arrival {
                Arrival::Opened(attempt, connection)
                    if self.cancelled.contains(&(side, attempt.0)) =>
                {
                    let at = self.now + self.delay();
                    self.schedule(at, 1 - side, Arrival::Lost(connection));
                }
                Arrival::Opened(attempt, connection) => {
                    self.tell(side, Input::Opened { attempt, connection });
                }
                Arrival::Accepted(connection) => self.tell(side, Input::Accepted(connection)),
                Arrival::Bytes(connection, bytes) => {
                    // In two pieces, so that messages are put together.
                    let (front, back) = bytes.split_at(bytes.len() / 2);
                    self.tell(side, Input::Received { connection, bytes: front });
                    self.tell(side, Input::Received { connection, bytes: back });
                }
                Arrival::Lost(connection) => self.tell(side, Input::Lost(connection)),
            }
        } else {
            self.tell(0, Input::Tick);
            self.tell(1, Input::Tick);
        }
        true
    }

    fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    fn connections(&self) -> [Option<ConnectionId>; 2] {
        [self.sessions[0].connection(), self.sessions[1].connection()]
    }
}

const MILLI: u64 = 1_000_000;

#[test]
fn both_begin_at_the_same_time_and_one_connection_is_kept() {
    let constant = (10 * MILLI, 10 * MILLI);
    let mut world = World::new([settings(), peer_settings()], 1, constant);
    world.tell(0, Input::Start);
    world.tell(1, Input::Start);
    world.run_until(Instant::from_nanos(100 * MILLI));
    let [a, b] = world.connections();
    assert!(a.is_some() && a == b, "{a:?} {b:?}");
    // The second attempt is that of the side with the higher identifier.
    let ids: Vec<_> =
        world.last.keys().map(|(_, id)| *id).collect::<BTreeSet<_>>().into_iter().collect();
    assert_eq!((ids.len(), a.unwrap().0), (2, ids[1]));
    assert_eq!((world.closed.len(), world.downs), (1, [0, 0]));
    // It stays for hours.
    world.run_until(seconds(3 * 3600));
    assert_eq!((world.connections(), world.downs), ([a, b], [0, 0]));
}

#[test]
fn whatever_the_delays_both_agree_on_one_connection() {
    for seed in 0..2000 {
        let mut world = World::new([settings(), peer_settings()], seed, (50 * MILLI, MILLI / 10));
        let late = Instant::ZERO + world.delay();
        world.tell(0, Input::Start);
        world.run_until(late);
        world.tell(1, Input::Start);
        world.run_until(seconds(10));
        let [a, b] = world.connections();
        assert!(a.is_some() && a == b, "seed {seed}: {a:?} {b:?}");
        let sessions = &world.sessions;
        assert_eq!(sessions.each_ref().map(Session::state), [State::Established; 2], "seed {seed}");
        // And it works: each hears what the other sends.
        for side in [0, 1] {
            let bytes = end_of_rib(Family::IPV4_UNICAST);
            world.carry_out(side, Output::Send { connection: a.unwrap(), bytes });
        }
        world.run_until(seconds(20));
        assert_eq!(world.updates, [1, 1], "seed {seed}");
    }
}

#[test]
fn a_lost_connection_is_replaced_within_moments() {
    for seed in 0..300 {
        let mut world = World::new([settings(), peer_settings()], seed, (5 * MILLI, MILLI));
        world.tell(0, Input::Start);
        world.tell(1, Input::Start);
        world.run_until(seconds(10));
        let before = world.connections()[0].expect("they are up");
        world.tell(0, Input::Lost(before));
        world.tell(1, Input::Lost(before));
        world.run_until(seconds(15));
        let [a, b] = world.connections();
        assert!(a.is_some() && a == b && a != Some(before), "seed {seed}: {a:?} {b:?}");
    }
}

#[test]
fn a_speaker_that_is_stopped_and_started_comes_back() {
    let mut world = World::new([settings(), peer_settings()], 3, (5 * MILLI, MILLI));
    world.tell(0, Input::Start);
    world.tell(1, Input::Start);
    world.run_until(seconds(5));
    world.tell(0, Input::Stop { subcode: cease::ADMIN_SHUTDOWN, text: "a moment" });
    world.run_until(seconds(60));
    assert_eq!(world.connections(), [None, None]);
    assert_eq!(world.downs, [1, 1]);
    world.tell(0, Input::Start);
    world.run_until(seconds(61));
    let [a, b] = world.connections();
    assert!(a.is_some() && a == b);
}
