mod pair;
mod random;
mod table;
mod times;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use weft_base::{Instant, Random};

use super::*;
use crate::numbers::{cease, error_code};
use crate::wire::{
    Capability, Families, Family, GracefulRestart, LongLived, MessageError, Open, Role, end_of_rib,
    keepalive,
};

const LOW: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const HIGH: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const OURS: ConnectionId = ConnectionId(1);
const THEIRS: ConnectionId = ConnectionId(2);

/// Of the speaker with the lower identifier.
fn settings() -> Settings {
    Settings::new(65001, LOW, PeerAs::Exactly(65002))
}

/// Of the other one.
fn peer_settings() -> Settings {
    Settings::new(65002, HIGH, PeerAs::Exactly(65001))
}

fn seconds(count: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(count)
}

/// A session whose peer is played by the test.
struct Played {
    session: Session,
    now: Instant,
}

impl Played {
    fn new(settings: Settings) -> Self {
        Self { session: Session::new(settings, Random::from_seed(1)), now: Instant::ZERO }
    }

    fn tell(&mut self, input: Input<'_>) -> Vec<Output> {
        let mut out = Vec::new();
        self.session.handle(self.now, input, &mut out);
        out
    }

    fn receive(&mut self, connection: ConnectionId, bytes: &[u8]) -> Vec<Output> {
        self.tell(Input::Received { connection, bytes })
    }

    fn receive_open(&mut self, connection: ConnectionId, settings: &Settings) -> Vec<Output> {
        self.receive(connection, &settings.open().emit())
    }

    /// Goes on to the deadline and tells that.
    fn wait(&mut self) -> Vec<Output> {
        self.now = self.session.deadline().unwrap();
        self.tell(Input::Tick)
    }

    fn opened(settings: Settings) -> Self {
        let mut played = Self::new(settings);
        played.tell(Input::Start);
        played.tell(Input::Opened { attempt: AttemptId(1), connection: OURS });
        assert_eq!(played.session.state(), State::OpenSent);
        played
    }

    fn established(settings: Settings, peer: &Settings) -> Self {
        let mut played = Self::opened(settings);
        played.receive_open(OURS, peer);
        assert_eq!(played.session.state(), State::OpenConfirm);
        played.receive(OURS, &keepalive());
        assert_eq!(played.session.state(), State::Established);
        played
    }
}

/// The NOTIFICATION among what was sent.
fn told(out: &[Output]) -> Option<Notification> {
    out.iter().find_map(|output| match output {
        Output::Send { bytes, .. } if bytes[18] == 3 => Some(Notification::parse(&bytes[19..])),
        _ => None,
    })
}

fn down(out: &[Output]) -> Option<(&Ending, bool)> {
    out.iter().find_map(|output| match output {
        Output::Down { ending, is_graceful } => Some((ending, *is_graceful)),
        _ => None,
    })
}

#[test]
fn a_session_comes_up_and_carries_updates() {
    let mut played = Played::opened(settings());
    let out = played.receive_open(OURS, &peer_settings());
    assert!(out.contains(&Output::Send { connection: OURS, bytes: keepalive() }));
    let out = played.receive(OURS, &keepalive());
    let up = out.iter().find_map(|output| match output {
        Output::Up { connection, negotiated, .. } => Some((connection, negotiated)),
        _ => None,
    });
    let (connection, negotiated) = up.unwrap();
    assert_eq!((*connection, negotiated.peer_as, negotiated.peer_identifier), (OURS, 65002, HIGH));
    assert_eq!(played.session.connection(), Some(OURS));
    assert_eq!(played.session.transitions(State::OpenConfirm, State::Established), 1);
    // Two messages in one piece.
    let end = end_of_rib(Family::IPV4_UNICAST);
    let out = played.receive(OURS, &[&end[..], &end].concat());
    assert_eq!(out, vec![Output::Update(vec![0; 4]); 2]);
    let refresh =
        RouteRefresh { family: Family::IPV4_UNICAST, kind: crate::wire::RefreshKind::Begin };
    assert_eq!(played.receive(OURS, &refresh.emit()), [Output::Refresh(refresh)]);
}

#[test]
fn a_stop_tells_the_peer_why() {
    let mut played = Played::established(settings(), &peer_settings());
    let out = played.tell(Input::Stop { subcode: cease::ADMIN_SHUTDOWN, text: "upgrade" });
    let sent = told(&out).unwrap();
    assert_eq!((sent.code, sent.subcode), (6, 2));
    assert_eq!(sent.shutdown_text().as_deref(), Some("upgrade"));
    assert_eq!(down(&out), Some((&Ending::Sent(sent), false)));
    assert!(out.contains(&Output::Close(OURS)));
    assert_eq!((played.session.state(), played.session.deadline()), (State::Idle, None));
    // A connection is refused now.
    assert_eq!(played.tell(Input::Accepted(THEIRS)), [Output::Close(THEIRS)]);
    assert!(played.tell(Input::Start).contains(&Output::Connect(AttemptId(2))));
    assert_eq!(
        played.tell(Input::Stop { subcode: cease::ADMIN_SHUTDOWN, text: "" })[0],
        Output::Transition(Transition {
            connection: None,
            from: State::Connect,
            to: State::Idle,
            event: "ManualStop"
        })
    );
    // What comes of an attempt that was given up is closed.
    let late = Input::Opened { attempt: AttemptId(2), connection: THEIRS };
    assert_eq!(played.tell(late), [Output::Close(THEIRS)]);
}

#[test]
fn a_reset_begins_again_at_once() {
    let mut played = Played::established(settings(), &peer_settings());
    played.now = seconds(1);
    let reset = Notification::cease(cease::ADMIN_RESET);
    let out = played.tell(Input::Reset(reset.clone()));
    assert_eq!(told(&out), Some(reset));
    assert!(out.contains(&Output::Connect(AttemptId(2))));
    assert_eq!(played.session.state(), State::Connect);
}

#[test]
fn a_session_that_was_fine_begins_again_at_once() {
    let mut played = Played::established(settings(), &peer_settings());
    played.now = seconds(1);
    let out = played.tell(Input::Lost(OURS));
    assert_eq!(down(&out), Some((&Ending::Lost, false)));
    assert!(out.contains(&Output::Connect(AttemptId(2))));
    // The peer may be faster.
    let out = played.tell(Input::Accepted(THEIRS));
    assert!(matches!(out[0], Output::Send { connection: THEIRS, .. }));
}

#[test]
fn after_a_very_short_session_only_the_peer_may_begin_again_at_once() {
    let mut played = Played::established(settings(), &peer_settings());
    let out = played.tell(Input::Lost(OURS));
    assert!(!out.iter().any(|output| matches!(output, Output::Connect(_))));
    assert_eq!(played.session.state(), State::Active);
    played.tell(Input::Accepted(THEIRS));
    assert_eq!(played.session.state(), State::OpenSent);
}

#[test]
fn an_update_that_is_wrong_ends_the_session() {
    let mut played = Played::established(settings(), &peer_settings());
    let error = MessageError::NetworkField.notification();
    let out = played.tell(Input::BadUpdate(error.clone()));
    assert_eq!(told(&out), Some(error));
    assert_eq!(played.session.state(), State::Idle);
    assert!(played.session.deadline().unwrap() > played.now);
}

fn restarting(notification: bool) -> GracefulRestart {
    let families = vec![(Family::IPV4_UNICAST, true)];
    GracefulRestart { restarted: false, notification, time: 120, families }
}

fn graceful(notification: bool) -> Played {
    let ours = Settings { graceful_restart: Some(restarting(notification)), ..settings() };
    let peer = Settings { graceful_restart: Some(restarting(true)), ..peer_settings() };
    Played::established(ours, &peer)
}

/// RFC 4724 §4.2, RFC 8538 §4.
#[test]
fn routes_may_be_kept_unless_the_peer_ends_the_session_for_good() {
    assert_eq!(down(&graceful(false).tell(Input::Lost(OURS))), Some((&Ending::Lost, true)));
    let shutdown = Notification::cease(cease::ADMIN_SHUTDOWN);
    let ending = |played: &mut Played, notification: &Notification| {
        down(&played.receive(OURS, &notification.emit())).unwrap().1
    };
    assert!(!ending(&mut graceful(false), &shutdown));
    assert!(ending(&mut graceful(true), &shutdown));
    assert!(!ending(&mut graceful(true), &shutdown.clone().into_hard_reset()));
    assert!(down(&graceful(true).tell(Input::Reset(shutdown))).unwrap().1);
    // Stopped by us: the peer is to forget our routes.
    let out = graceful(true).tell(Input::Stop { subcode: cease::ADMIN_SHUTDOWN, text: "bye" });
    let sent = told(&out).unwrap();
    assert!(sent.is_hard_reset());
    assert_eq!(sent.shutdown_text().as_deref(), Some("bye"));
    assert!(!down(&out).unwrap().1);
}

/// RFC 4724 §5.
#[test]
fn a_peer_that_has_restarted_replaces_its_connection() {
    let mut played = graceful(false);
    let out = played.tell(Input::Accepted(THEIRS));
    assert_eq!(down(&out), Some((&Ending::Replaced, true)));
    assert!(out.contains(&Output::Close(OURS)));
    assert_eq!(told(&out), None);
    assert_eq!(played.session.state(), State::OpenSent);
    // Without graceful restart the session stays.
    let mut played = Played::established(settings(), &peer_settings());
    played.tell(Input::Accepted(THEIRS));
    let out = played.receive_open(THEIRS, &peer_settings());
    assert_eq!(told(&out), Some(Notification::cease(cease::COLLISION)));
    assert!(out.contains(&Output::Close(THEIRS)));
    assert_eq!(played.session.connection(), Some(OURS));
}

/// Our connection and the peer's, where `open` comes first on `first`: which one is closed.
fn collide(ours: Settings, peer: &Settings, first: ConnectionId) -> ConnectionId {
    let mut played = Played::opened(ours);
    played.tell(Input::Accepted(THEIRS));
    let out = played.receive_open(first, peer);
    assert_eq!(told(&out), Some(Notification::cease(cease::COLLISION)));
    let closed = out.iter().find_map(|output| match output {
        Output::Close(connection) => Some(*connection),
        _ => None,
    });
    let closed = closed.unwrap();
    let kept = if closed == OURS { THEIRS } else { OURS };
    if first == closed {
        played.receive_open(kept, peer);
    }
    assert_eq!(played.session.state(), State::OpenConfirm);
    let out = played.receive(kept, &keepalive());
    assert!(
        out.iter()
            .any(|output| matches!(output, Output::Up { connection, .. } if *connection == kept))
    );
    closed
}

/// RFC 4271 §6.8, RFC 6286 §2.3.
#[test]
fn of_two_connections_that_of_the_higher_identifier_is_kept() {
    for first in [OURS, THEIRS] {
        assert_eq!(collide(settings(), &peer_settings(), first), OURS);
        let higher = Settings { identifier: Ipv4Addr::new(192, 0, 2, 3), ..settings() };
        assert_eq!(collide(higher, &peer_settings(), first), THEIRS);
        let equal = Settings { identifier: HIGH, ..settings() };
        assert_eq!(collide(equal, &peer_settings(), first), OURS);
    }
}

#[test]
fn of_two_connections_of_the_same_side_the_newer_is_kept() {
    let mut played = Played::new(Settings { is_passive: true, ..settings() });
    played.tell(Input::Start);
    played.tell(Input::Accepted(THEIRS));
    played.receive_open(THEIRS, &peer_settings());
    let newer = ConnectionId(3);
    played.tell(Input::Accepted(newer));
    assert_eq!(played.tell(Input::Accepted(ConnectionId(4))), [Output::Close(ConnectionId(4))]);
    let out = played.receive_open(newer, &peer_settings());
    assert!(out.contains(&Output::Close(THEIRS)));
    played.receive(newer, &keepalive());
    assert_eq!(played.session.connection(), Some(newer));
}

#[test]
fn a_connection_that_is_left_alone_becomes_the_only_one() {
    let mut played = Played::opened(settings());
    played.tell(Input::Accepted(THEIRS));
    played.tell(Input::Lost(OURS));
    assert_eq!(played.session.state(), State::OpenSent);
    played.receive_open(THEIRS, &peer_settings());
    played.receive(THEIRS, &keepalive());
    assert_eq!(played.session.connection(), Some(THEIRS));
    // The other way round.
    let mut played = Played::opened(settings());
    played.tell(Input::Accepted(THEIRS));
    played.tell(Input::Lost(THEIRS));
    assert_eq!(played.session.state(), State::OpenSent);
    played.receive_open(OURS, &peer_settings());
    played.receive(OURS, &keepalive());
    assert_eq!(played.session.connection(), Some(OURS));
}

/// What the peer is told when it sends this OPEN.
fn refused(ours: Settings, open: &Open) -> (u8, u8, Vec<u8>) {
    let mut played = Played::opened(ours);
    let out = played.receive(OURS, &open.emit());
    assert_eq!(played.session.state(), State::Idle);
    let told = told(&out).unwrap();
    (told.code, told.subcode, told.data)
}

#[test]
fn peers_that_do_not_fit_are_told_why() {
    let peer = peer_settings();
    let code = |ours: Settings, peer: &Settings| {
        let (code, subcode, _) = refused(ours, &peer.open());
        (code, subcode)
    };
    let wrong_as = Settings { peer_as: PeerAs::Exactly(65003), ..settings() };
    assert_eq!(code(wrong_as, &peer), (2, 2));
    let internal = Settings { peer_as: PeerAs::External, ..settings() };
    assert_eq!(code(internal, &Settings { local_as: 65001, ..peer.clone() }), (2, 2));
    let any = Settings { peer_as: PeerAs::Any, ..settings() };
    let twin = Settings { local_as: 65001, identifier: LOW, ..peer.clone() };
    assert_eq!(code(any, &twin), (2, 3));
    let patient = Settings { min_hold_time: 30, ..settings() };
    assert_eq!(code(patient, &Settings { hold_time: 20, ..peer.clone() }), (2, 6));
    // RFC 9234 §4.2.
    let customer = Settings { role: Some(Role::Customer), ..settings() };
    assert_eq!(
        code(customer.clone(), &Settings { role: Some(Role::Peer), ..peer.clone() }),
        (2, 11)
    );
    let strict = Settings { is_role_strict: true, ..customer };
    assert_eq!(code(strict, &peer), (2, 11));
    let six = Families::from_iter([Family::IPV6_UNICAST]);
    let needs_six = Settings { families: six, ..settings() };
    assert_eq!(refused(needs_six, &peer.open()), (2, 7, vec![1, 4, 0, 2, 0, 1]));
    // RFC 5065 §4: who is told the number of the confederation is in none of its members.
    let members = BTreeSet::from([65001, 65002]);
    let outside = Settings { local_as: 65000, peer_as: PeerAs::External, members, ..settings() };
    for member in [65001, 65002] {
        assert_eq!(code(outside.clone(), &Settings { local_as: member, ..peer.clone() }), (2, 2));
    }
    // RFC 6793 §3: a member with a long number needs members that can say it.
    let members = BTreeSet::from([70000, 65002]);
    let long = Settings { local_as: 70000, members, ..settings() };
    let mut short = peer.open();
    short.capabilities.retain(|one| !matches!(one, Capability::FourOctetAs(_)));
    assert_eq!(refused(long, &short), (2, 7, vec![65, 4, 0, 1, 0x11, 0x70]));
}

#[test]
fn what_both_can_do_is_agreed_on() {
    let families = Families::from_iter([Family::IPV4_UNICAST, Family::IPV6_UNICAST]);
    use crate::wire::AddPath;
    let ours = Settings {
        families,
        role: Some(Role::Customer),
        add_path: vec![
            (Family::IPV4_UNICAST, AddPath::Both),
            (Family::IPV6_UNICAST, AddPath::Send),
        ],
        extended_next_hop: Families::from_iter([Family::IPV4_UNICAST]),
        ..settings()
    };
    let peer = Settings {
        families: Families::from_iter(Family::ALL),
        role: Some(Role::Provider),
        hold_time: 9,
        add_path: vec![
            (Family::IPV4_UNICAST, AddPath::Send),
            (Family::IPV6_UNICAST, AddPath::Both),
        ],
        extended_next_hop: Families::from_iter([Family::IPV4_UNICAST, Family::IPV4_MULTICAST]),
        ..peer_settings()
    };
    let played = Played::established(ours, &peer);
    let agreed = played.session.negotiated().unwrap();
    let context = &agreed.context;
    assert_eq!(context.families, families);
    assert_eq!(context.add_path_receive.iter().collect::<Vec<_>>(), [Family::IPV4_UNICAST]);
    assert_eq!(context.add_path_send.iter().collect::<Vec<_>>(), [Family::IPV6_UNICAST]);
    assert_eq!(context.extended_next_hop.len(), 1);
    assert_eq!((context.send_limit, context.four_octet_as), (u16::MAX, true));
    assert_eq!((agreed.hold_time.as_secs(), agreed.keepalive.as_secs()), (9, 3));
    assert_eq!(agreed.peer_role, Some(Role::Provider));
    assert!(agreed.route_refresh && agreed.enhanced_refresh);
    assert!(agreed.graceful_restart.is_none() && agreed.long_lived.is_none());
}

/// RFC 9494 §3.1, §4.5: both must say it, and graceful restart with it.
#[test]
fn long_lives_are_agreed_on_with_graceful_restart_only() {
    let tuple = |family, stale_time| LongLived { family, forwarding: false, stale_time };
    let both = vec![tuple(Family::IPV4_UNICAST, 9), tuple(Family::IPV6_UNICAST, 8)];
    let (restarted, notification, families) = (false, false, Vec::new());
    let restart = Some(GracefulRestart { restarted, notification, time: 0, families });
    let says = |has_restart: bool, long_lived: Option<Vec<LongLived>>, settings| Settings {
        graceful_restart: restart.clone().filter(|_| has_restart),
        long_lived,
        ..settings
    };
    let agreed = |ours, peer| {
        let played = Played::established(says(true, ours, settings()), &peer);
        played.session.negotiated().unwrap().long_lived.clone()
    };
    let peer = |long_lived| says(true, long_lived, peer_settings());
    let first = vec![both[0]];
    assert_eq!(agreed(Some(Vec::new()), peer(Some(both.clone()))), Some(first));
    assert_eq!(agreed(Some(Vec::new()), peer(Some(Vec::new()))), Some(Vec::new()));
    assert_eq!(agreed(Some(Vec::new()), peer(None)), None);
    assert_eq!(agreed(None, peer(Some(both.clone()))), None);
    let mut open = peer(Some(both)).open();
    open.capabilities.retain(|one| !matches!(one, Capability::GracefulRestart(_)));
    assert!(open.capabilities.iter().any(|one| matches!(one, Capability::LongLived(_))));
    let mut played = Played::opened(says(true, Some(Vec::new()), settings()));
    played.receive(OURS, &open.emit());
    played.receive(OURS, &keepalive());
    assert_eq!(played.session.negotiated().unwrap().long_lived, None);
}

#[test]
fn a_speaker_of_another_version_is_not_answered() {
    let mut played = Played::opened(settings());
    let version = Notification::new(error_code::OPEN, 1, vec![0, 3]);
    let out = played.receive(OURS, &version.emit());
    assert_eq!((told(&out), played.session.connect_retry_counter()), (None, 0));
    assert_eq!(played.session.state(), State::Idle);
}
