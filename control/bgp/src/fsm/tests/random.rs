//! A session that is told anything, in any order, keeps what it promises.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::wire::RefreshKind;

/// What the world knows.
#[derive(Default)]
struct World {
    attempt: Option<AttemptId>,
    /// Connections that are neither closed nor lost.
    live: BTreeSet<u64>,
    /// All there were.
    count: u64,
    up: Option<u64>,
}

impl World {
    /// One of the live connections, or one that is not.
    fn pick(&self, choice: u8) -> ConnectionId {
        let all: Vec<_> = self.live.iter().copied().collect();
        ConnectionId(all.get(usize::from(choice) % (all.len() + 1)).copied().unwrap_or(9999))
    }

    fn check(&mut self, output: &Output) {
        match output {
            Output::Connect(attempt) => assert_eq!(self.attempt.replace(*attempt), None),
            Output::CancelConnect(attempt) => assert_eq!(self.attempt.take(), Some(*attempt)),
            Output::Send { connection, .. } => assert!(self.live.contains(&connection.0)),
            Output::Close(connection) => assert!(self.live.remove(&connection.0)),
            Output::Up { connection, .. } => {
                assert!(self.live.contains(&connection.0));
                assert_eq!(self.up.replace(connection.0), None);
            }
            Output::Down { .. } => assert!(self.up.take().is_some()),
            Output::Failed(_) => assert!(self.live.is_empty(), "another connection goes on"),
            Output::Update(_) | Output::Refresh(_) => assert!(self.up.is_some()),
            Output::Transition(transition) => assert_ne!(transition.from, transition.to),
        }
    }
}

fn message(choice: u8) -> Vec<u8> {
    let refresh = RouteRefresh { family: Family::IPV4_UNICAST, kind: RefreshKind::Request };
    let restarts = Settings { graceful_restart: Some(restarting(true)), ..peer_settings() };
    match choice % 16 {
        0 | 1 => peer_settings().open().emit(),
        2 | 3 => restarts.open().emit(),
        // An OPEN, and the KEEPALIVE that follows.
        4..=6 => [restarts.open().emit(), keepalive()].concat(),
        7..=11 => keepalive(),
        12 => end_of_rib(Family::IPV4_UNICAST),
        13 => Notification::cease(choice / 16).emit(),
        14 => refresh.emit(),
        _ => vec![choice; 19],
    }
}

/// Tells the session one thing of which the world is as random.
fn tell(world: &mut World, played: &mut Played, what: u8, choice: u8) -> Vec<Output> {
    match what % 16 {
        0 | 1 => played.tell(Input::Start),
        2 if choice < 64 => {
            played.tell(Input::Stop { subcode: cease::ADMIN_SHUTDOWN, text: "bye" })
        }
        2 if choice < 128 => played.tell(Input::Reset(Notification::cease(cease::ADMIN_RESET))),
        2 => played.tell(Input::BadUpdate(MessageError::NetworkField.notification())),
        3..=5 => {
            let attempt = world.attempt.take().unwrap_or(AttemptId(9999));
            if choice < 100 {
                return played.tell(Input::OpenFailed(attempt));
            }
            world.count += 1;
            world.live.insert(world.count);
            played.tell(Input::Opened { attempt, connection: ConnectionId(world.count) })
        }
        6 => {
            world.count += 1;
            world.live.insert(world.count);
            played.tell(Input::Accepted(ConnectionId(world.count)))
        }
        7 if choice > 128 => {
            let connection = world.pick(choice);
            let out = played.tell(Input::Lost(connection));
            // Nothing is sent on it; closing it is allowed.
            assert!(told(&out).is_none());
            out
        }
        8 if choice > 100 => {
            played.now = played.session.deadline().unwrap_or(played.now);
            played.tell(Input::Tick)
        }
        9 => {
            played.now += Duration::from_millis(u64::from(choice) * 10);
            played.tell(Input::Tick)
        }
        10 => played.tell(Input::Sent(world.pick(choice))),
        _ => {
            let connection = world.pick(what / 16);
            played.receive(connection, &message(choice))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn promises_are_kept(
        inputs in prop::collection::vec(any::<(u8, u8)>(), 0..120),
        (is_passive, has_delay, is_graceful, is_high) in any::<(bool, bool, bool, bool)>(),
    ) {
        let settings = Settings {
            is_passive,
            delay_open: has_delay.then_some(Duration::from_secs(5)),
            graceful_restart: is_graceful.then(|| restarting(true)),
            identifier: if is_high { Ipv4Addr::new(192, 0, 2, 9) } else { LOW },
            ..settings()
        };
        let (mut world, mut played) = (World::default(), Played::new(settings));
        played.tell(Input::Start).iter().for_each(|output| world.check(output));
        for (what, choice) in inputs {
            for output in tell(&mut world, &mut played, what, choice) {
                world.check(&output);
            }
            let session = &played.session;
            prop_assert_eq!(session.connection().map(|id| id.0), world.up);
            prop_assert!(world.live.len() <= 2);
            prop_assert!(session.deadline().is_none_or(|deadline| deadline > played.now));
            // Who waits for something waits for it only so long, or for the peer alone.
            let is_waiting = matches!(session.state(), State::Connect | State::OpenSent | State::OpenConfirm);
            prop_assert!(!is_waiting || session.deadline().is_some() || world.attempt.is_some());
        }
        let out = played.tell(Input::Stop { subcode: cease::PEER_DECONFIGURED, text: "" });
        out.iter().for_each(|output| world.check(output));
        prop_assert_eq!((played.session.state(), played.session.deadline()), (State::Idle, None));
        prop_assert!(world.live.is_empty() && world.attempt.is_none() && world.up.is_none());
    }
}
