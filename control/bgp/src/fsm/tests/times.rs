//! When things happen, to the nanosecond.

use super::*;

/// Asserts that the next deadline is `span` after `from`, times a factor between 0.75 and 1.
#[track_caller]
fn is_jittered(played: &Played, from: Instant, span: u64) {
    let after = played.session.deadline().unwrap() - from;
    let span = Duration::from_secs(span);
    assert!(after <= span && after >= span.mul_f64(0.75), "{after:?} instead of up to {span:?}");
}

#[test]
fn a_refused_connection_is_tried_again() {
    let mut played = Played::new(settings());
    let out = played.tell(Input::Start);
    assert_eq!(out[0], Output::Connect(AttemptId(1)));
    is_jittered(&played, Instant::ZERO, 120);
    played.now = seconds(5);
    let out = played.tell(Input::OpenFailed(AttemptId(1)));
    assert_eq!(out.len(), 1);
    assert_eq!(played.session.state(), State::Active);
    is_jittered(&played, seconds(5), 120);
    let out = played.wait();
    assert_eq!(out[0], Output::Connect(AttemptId(2)));
    // An attempt of which nothing is heard is given up after as long.
    let tried = played.now;
    is_jittered(&played, tried, 120);
    let out = played.wait();
    assert_eq!(out, [Output::CancelConnect(AttemptId(2)), Output::Connect(AttemptId(3))]);
    assert_eq!(played.session.state(), State::Connect);
}

#[test]
fn a_passive_session_never_connects() {
    let mut played = Played::new(Settings { is_passive: true, ..settings() });
    let out = played.tell(Input::Start);
    assert!(!out.iter().any(|output| matches!(output, Output::Connect(_))));
    assert_eq!((played.session.state(), played.session.deadline()), (State::Active, None));
    played.tell(Input::Accepted(THEIRS));
    assert_eq!(played.session.state(), State::OpenSent);
    played.tell(Input::Lost(THEIRS));
    assert_eq!((played.session.state(), played.session.deadline()), (State::Active, None));
}

#[test]
fn the_open_is_awaited_for_four_minutes() {
    let mut played = Played::opened(settings());
    assert_eq!(played.session.deadline(), Some(seconds(240)));
    played.now = seconds(240) - Duration::from_nanos(1);
    assert_eq!(played.tell(Input::Tick), []);
    let out = played.wait();
    assert_eq!(told(&out).unwrap().code, error_code::HOLD_TIMER);
    assert_eq!(played.session.state(), State::Idle);
}

#[test]
fn silence_ends_the_session_after_the_hold_time() {
    let mut played = Played::opened(settings());
    played.now = seconds(10);
    played.receive_open(OURS, &Settings { hold_time: 30, ..peer_settings() });
    played.now = seconds(11);
    played.receive(OURS, &keepalive());
    played.now = seconds(12);
    played.receive(OURS, &end_of_rib(Family::IPV4_UNICAST));
    let mut keepalives = vec![seconds(10)];
    let out = loop {
        let out = played.wait();
        if out != [Output::Send { connection: OURS, bytes: keepalive() }] {
            break out;
        }
        let (last, now) = (*keepalives.last().unwrap(), played.now);
        assert!(now - last <= Duration::from_secs(10) && now - last >= Duration::from_millis(7500));
        keepalives.push(now);
    };
    assert_eq!(played.now, seconds(42));
    assert!((4..=5).contains(&keepalives.len()));
    let sent = told(&out).unwrap();
    assert_eq!((sent.code, sent.subcode), (error_code::HOLD_TIMER, 0));
    assert_eq!(down(&out), Some((&Ending::Sent(sent), false)));
}

#[test]
fn without_a_hold_time_there_is_no_timer() {
    let peer = Settings { hold_time: 0, ..peer_settings() };
    let played = Played::established(settings(), &peer);
    assert_eq!(played.session.deadline(), None);
}

#[test]
fn keepalives_come_at_most_once_a_second() {
    let peer = Settings { hold_time: 3, ..peer_settings() };
    let often = Settings { keepalive: Some(Duration::from_millis(1)), ..settings() };
    let played = Played::established(often, &peer);
    assert_eq!(played.session.negotiated().unwrap().keepalive, Duration::from_secs(1));
    let seldom = Settings { keepalive: Some(Duration::from_secs(50)), ..settings() };
    let played = Played::established(seldom, &peer_settings());
    assert_eq!(played.session.negotiated().unwrap().keepalive, Duration::from_secs(30));
}

/// RFC 9687 §3: the longer of eight minutes and twice the hold time.
#[test]
fn a_peer_that_takes_nothing_is_left() {
    for (hold_time, span) in [(90, 480), (300, 600)] {
        let patient = Settings { hold_time, ..settings() };
        let mut played = Played::established(patient, &Settings { hold_time, ..peer_settings() });
        played.now = seconds(50);
        played.tell(Input::Sent(OURS));
        let out = loop {
            // It is heard, but takes nothing.
            played.receive(OURS, &keepalive());
            let out = played.wait();
            if told(&out).is_some() {
                break out;
            }
        };
        assert_eq!(played.now, seconds(50 + span));
        assert_eq!(told(&out).unwrap().code, error_code::SEND_HOLD_TIMER);
    }
}

/// The session begins again, and the peer sends what cannot be read.
fn err(played: &mut Played, number: u64) {
    let connection = ConnectionId(100 + number);
    played.tell(Input::Accepted(connection));
    let out = played.receive(connection, &[0; 19]);
    assert_eq!(told(&out).unwrap().code, error_code::HEADER);
    assert_eq!(played.session.state(), State::Idle);
}

#[test]
fn after_each_error_nothing_happens_for_longer() {
    let mut played = Played::new(Settings { is_passive: true, ..settings() });
    played.tell(Input::Start);
    for (number, span) in [1, 2, 4, 8, 16, 32, 64, 120, 120, 120].into_iter().enumerate() {
        err(&mut played, number as u64);
        is_jittered(&played, played.now, span);
        // Refused meanwhile.
        assert_eq!(played.tell(Input::Accepted(THEIRS)), [Output::Close(THEIRS)]);
        played.wait();
        assert_eq!(played.session.state(), State::Active);
    }
    // A session that was up for two minutes makes up for all of them, one that was up for less for none.
    for (up, span) in [(119, 120), (120, 1)] {
        let connection = ConnectionId(200 + up);
        played.tell(Input::Accepted(connection));
        played.receive_open(connection, &Settings { hold_time: 0, ..peer_settings() });
        played.receive(connection, &keepalive());
        played.now += Duration::from_secs(up);
        played.receive(connection, &[0; 19]);
        is_jittered(&played, played.now, span);
        played.wait();
    }
}

#[test]
fn an_operator_does_not_wait_for_the_pause_after_an_error() {
    let mut played = Played::new(settings());
    played.tell(Input::Start);
    err(&mut played, 0);
    assert!(played.tell(Input::Start).contains(&Output::Connect(AttemptId(2))));
    is_jittered(&played, Instant::ZERO, 120);
}

#[test]
fn the_peer_may_have_time_to_send_its_open_first() {
    let slow = Settings { delay_open: Some(Duration::from_secs(8)), ..settings() };
    let mut played = Played::new(slow.clone());
    played.tell(Input::Start);
    let opened = Input::Opened { attempt: AttemptId(1), connection: OURS };
    assert_eq!(played.tell(opened), []);
    is_jittered(&played, Instant::ZERO, 8);
    let out = played.wait();
    assert!(matches!(&out[0], Output::Send { bytes, .. } if bytes[18] == 1));
    assert_eq!(played.session.state(), State::OpenSent);

    let mut played = Played::new(slow);
    played.tell(Input::Start);
    played.tell(Input::Opened { attempt: AttemptId(1), connection: OURS });
    played.now = seconds(1);
    let out = played.receive_open(OURS, &peer_settings());
    let types: Vec<_> = out
        .iter()
        .filter_map(|output| match output {
            Output::Send { bytes, .. } => Some(bytes[18]),
            _ => None,
        })
        .collect();
    assert_eq!((types, played.session.state()), (vec![1, 4], State::OpenConfirm));
}

#[test]
fn who_has_lost_both_of_two_connections_waits_for_the_peer_for_a_moment() {
    let mut played = Played::opened(settings());
    let out = played.receive(OURS, &Notification::cease(cease::COLLISION).emit());
    assert_eq!((played.session.state(), told(&out)), (State::Active, None));
    is_jittered(&played, Instant::ZERO, 1);
    assert!(played.wait().contains(&Output::Connect(AttemptId(2))));
}
