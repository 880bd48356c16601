//! The table of the state machine: what each event leads to in each state.
//!
//! One function for each state, its arms in the order of the RFC; what they call is in `actions`. There is no arm
//! for "any other event": each is named, so that a new one has to be thought of.
//!
//! Reference: RFC 4271 §8.2.2.

use super::actions::Blame;
use super::event::Event;
use super::session::Session;
use super::timers::Timer;
use super::{Ending, Output, State};
use crate::numbers::{cease, error_code, fsm_error};
use crate::wire::Notification;

impl Session {
    /// What `event` leads to on connection `at`.
    pub(super) fn next_state(&mut self, at: usize, event: Event) -> State {
        match self.machines[at].state {
            State::Idle => self.in_idle(at, &event),
            State::Connect => self.in_connect(at, event),
            State::Active => self.in_active(at, event),
            State::OpenSent => self.in_open_sent(at, event),
            State::OpenConfirm => self.in_open_confirm(at, event),
            State::Established => self.in_established(at, event),
        }
    }

    fn in_idle(&mut self, at: usize, event: &Event) -> State {
        match event {
            // 1, 3 to 7, and 13, which is followed by one of them.
            Event::ManualStart | Event::AutomaticStart | Event::IdleHoldExpires => self.begin(at),
            // 2, 8: "ignored"; 9 to 12, 14 to 28: "does not cause change of state".
            Event::ManualStop(_)
            | Event::AutomaticStop(_)
            | Event::ConnectRetryExpires
            | Event::HoldExpires
            | Event::KeepaliveExpires
            | Event::DelayOpenExpires
            | Event::ConnectAcked
            | Event::ConnectionConfirmed
            | Event::Replaced
            | Event::ConnectionFails
            | Event::Open(_)
            | Event::OpenWithDelay(_)
            | Event::HeaderError(_)
            | Event::OpenError(_)
            | Event::CollisionDump
            | Event::NotificationVersion(_)
            | Event::Notification(_)
            | Event::Keepalive
            | Event::Update(_)
            | Event::UpdateError(_)
            | Event::SendHoldExpires
            | Event::Refresh(_) => State::Idle,
        }
    }

    fn in_connect(&mut self, at: usize, event: Event) -> State {
        match event {
            // 1, 3 to 7
            Event::ManualStart | Event::AutomaticStart => State::Connect,
            // 2
            Event::ManualStop(_) => self.stop_quietly(at),
            // 9
            Event::ConnectRetryExpires => {
                self.release(at, Ending::Lost);
                self.connect(at)
            }
            // 12
            Event::DelayOpenExpires => self.send_open(at),
            // 16, 17
            Event::ConnectAcked | Event::ConnectionConfirmed => {
                self.delay_or_send_open(at, State::Connect)
            }
            // 18. Without DelayOpenTimer the RFC goes to Idle, and from there, after IdleHoldTimer, back to here.
            // Active is where the peer can reach us meanwhile; test `a_refused_connection_is_tried_again`.
            Event::ConnectionFails => self.wait_for_peer(at),
            // 20
            Event::OpenWithDelay(negotiated) => {
                self.send_open(at);
                self.confirm(at, negotiated)
            }
            // 21, 22: without SendNOTIFICATIONwithoutOPEN.
            Event::HeaderError(_) | Event::OpenError(_) => {
                self.fail(at, Ending::Lost, Blame::Error)
            }
            // 24
            Event::NotificationVersion(received) => self.version_refused(at, received),
            // 8
            Event::AutomaticStop(_) => self.fail(at, Ending::Lost, Blame::Nobody),
            // 10, 11, 13, 19, 23, 25 to 28
            Event::HoldExpires
            | Event::KeepaliveExpires
            | Event::IdleHoldExpires
            | Event::Replaced
            | Event::Open(_)
            | Event::CollisionDump
            | Event::Notification(_)
            | Event::Keepalive
            | Event::Update(_)
            | Event::UpdateError(_)
            | Event::SendHoldExpires
            | Event::Refresh(_) => self.fail(at, Ending::Lost, Blame::Error),
        }
    }

    fn in_active(&mut self, at: usize, event: Event) -> State {
        match event {
            // 1, 3 to 7
            Event::ManualStart | Event::AutomaticStart => State::Active,
            // 2
            Event::ManualStop(_) => self.stop_quietly(at),
            // 9. A passive session stays where it is; test `a_passive_session_never_connects`.
            Event::ConnectRetryExpires => self.connect(at),
            // 12
            Event::DelayOpenExpires => self.send_open(at),
            // 16, 17
            Event::ConnectAcked | Event::ConnectionConfirmed => {
                self.delay_or_send_open(at, State::Active)
            }
            // 18
            Event::ConnectionFails => self.fail(at, Ending::Lost, Blame::Error),
            // 20
            Event::OpenWithDelay(negotiated) => {
                self.send_open(at);
                self.confirm(at, negotiated)
            }
            // 21, 22
            Event::HeaderError(_) | Event::OpenError(_) => {
                self.fail(at, Ending::Lost, Blame::Error)
            }
            // 24
            Event::NotificationVersion(received) => self.version_refused(at, received),
            // 8
            Event::AutomaticStop(_) => self.fail(at, Ending::Lost, Blame::Nobody),
            // 10, 11, 13, 19, 23, 25 to 28
            Event::HoldExpires
            | Event::KeepaliveExpires
            | Event::IdleHoldExpires
            | Event::Replaced
            | Event::Open(_)
            | Event::CollisionDump
            | Event::Notification(_)
            | Event::Keepalive
            | Event::Update(_)
            | Event::UpdateError(_)
            | Event::SendHoldExpires
            | Event::Refresh(_) => self.fail(at, Ending::Lost, Blame::Error),
        }
    }

    fn in_open_sent(&mut self, at: usize, event: Event) -> State {
        match event {
            // 1, 3 to 7
            Event::ManualStart | Event::AutomaticStart => State::OpenSent,
            // 14 to 17: a second connection has a state machine of its own.
            Event::ConnectAcked | Event::ConnectionConfirmed | Event::Replaced => State::OpenSent,
            // 2
            Event::ManualStop(told) => self.stop(at, told),
            // 8
            Event::AutomaticStop(told) => self.fail_with(at, told, Blame::Nobody),
            // 10
            Event::HoldExpires => self.hold_expired(at),
            // 18
            Event::ConnectionFails => self.wait_for_peer(at),
            // 19
            Event::Open(negotiated) => self.confirm(at, negotiated),
            // 21, 22
            Event::HeaderError(error) | Event::OpenError(error) => {
                self.fail_with(at, error.notification(), Blame::Error)
            }
            // 23
            Event::CollisionDump => self.dump(at),
            // 24
            Event::NotificationVersion(received) => self.version_refused(at, received),
            // 25. The RFC answers with a NOTIFICATION here, although its §6.4 has none for errors in one.
            Event::Notification(received) => self.notified(at, received),
            // 9, 11 to 13, 20, 26 to 28
            Event::ConnectRetryExpires
            | Event::KeepaliveExpires
            | Event::DelayOpenExpires
            | Event::IdleHoldExpires
            | Event::OpenWithDelay(_)
            | Event::Keepalive
            | Event::Update(_)
            | Event::UpdateError(_)
            | Event::SendHoldExpires
            | Event::Refresh(_) => self.unexpected(at, fsm_error::OPEN_SENT),
        }
    }

    fn in_open_confirm(&mut self, at: usize, event: Event) -> State {
        match event {
            // 1, 3 to 7
            Event::ManualStart | Event::AutomaticStart => State::OpenConfirm,
            // 14 to 17: a second connection has a state machine of its own.
            Event::ConnectAcked | Event::ConnectionConfirmed | Event::Replaced => {
                State::OpenConfirm
            }
            // 2
            Event::ManualStop(told) => self.stop(at, told),
            // 8
            Event::AutomaticStop(told) => self.fail_with(at, told, Blame::Nobody),
            // 10
            Event::HoldExpires => self.hold_expired(at),
            // 11
            Event::KeepaliveExpires => {
                self.send_keepalive(at);
                State::OpenConfirm
            }
            // 18
            Event::ConnectionFails => self.fail(at, Ending::Lost, Blame::Error),
            // 25
            Event::Notification(received) => self.notified(at, received),
            // 24
            Event::NotificationVersion(received) => self.version_refused(at, received),
            // 21, 22
            Event::HeaderError(error) | Event::OpenError(error) => {
                self.fail_with(at, error.notification(), Blame::Error)
            }
            // 23
            Event::CollisionDump => self.dump(at),
            // 26
            Event::Keepalive => self.establish(at),
            // 9, 12, 13, 20, 27, 28; 19, since the OPEN of another connection is settled in `session`.
            Event::ConnectRetryExpires
            | Event::DelayOpenExpires
            | Event::IdleHoldExpires
            | Event::Open(_)
            | Event::OpenWithDelay(_)
            | Event::Update(_)
            | Event::UpdateError(_)
            | Event::SendHoldExpires
            | Event::Refresh(_) => self.unexpected(at, fsm_error::OPEN_CONFIRM),
        }
    }

    fn in_established(&mut self, at: usize, event: Event) -> State {
        match event {
            // 1, 3 to 7
            Event::ManualStart | Event::AutomaticStart => State::Established,
            // 2
            Event::ManualStop(told) => self.stop(at, told),
            // 8
            Event::AutomaticStop(told) => self.fail_with(at, told, Blame::Nobody),
            // 10
            Event::HoldExpires => self.hold_expired(at),
            // 11
            Event::KeepaliveExpires => {
                self.send_keepalive(at);
                State::Established
            }
            // 14 to 17: a second connection has a state machine of its own, unless the peer has restarted (RFC 4724 §5).
            Event::ConnectAcked | Event::ConnectionConfirmed => State::Established,
            Event::Replaced => {
                self.release(at, Ending::Replaced);
                State::Active
            }
            // 23
            Event::CollisionDump => self.dump(at),
            // 18
            Event::ConnectionFails => self.fail(at, Ending::Lost, Blame::Nobody),
            // 24, 25
            Event::NotificationVersion(received) | Event::Notification(received) => {
                self.notified(at, received)
            }
            // 26
            Event::Keepalive => {
                self.restart_hold(at);
                State::Established
            }
            // 27
            Event::Update(body) => {
                self.restart_hold(at);
                self.out.push(Output::Update(body));
                State::Established
            }
            // RFC 2918 §4
            Event::Refresh(refresh) => {
                self.restart_hold(at);
                self.out.extend(refresh.map(Output::Refresh));
                State::Established
            }
            // 28
            Event::UpdateError(told) => self.fail_with(at, told, Blame::Error),
            // 29
            Event::SendHoldExpires => {
                let told = Notification::new(error_code::SEND_HOLD_TIMER, 0, Vec::new());
                self.fail_with(at, told, Blame::Error)
            }
            // 21. The RFC has it with the next, although its §6.1 gives it an answer of its own.
            Event::HeaderError(error) => self.fail_with(at, error.notification(), Blame::Error),
            // 9, 12, 13, 20, 22; 19, since the OPEN of another connection is settled in `session`.
            Event::ConnectRetryExpires
            | Event::DelayOpenExpires
            | Event::IdleHoldExpires
            | Event::Open(_)
            | Event::OpenWithDelay(_)
            | Event::OpenError(_) => self.unexpected(at, fsm_error::ESTABLISHED),
        }
    }

    /// The timer that bounds the peer's silence has expired.
    fn hold_expired(&mut self, at: usize) -> State {
        let was_up = self.machines[at].state == State::Established;
        let told = Notification::new(error_code::HOLD_TIMER, 0, Vec::new());
        self.fail_with(at, told, if was_up { Blame::Nobody } else { Blame::Error })
    }

    /// A message that has no place in this state (RFC 6608).
    fn unexpected(&mut self, at: usize, subcode: u8) -> State {
        self.fail_with(at, Notification::new(error_code::FSM, subcode, Vec::new()), Blame::Error)
    }

    /// The other connection with the peer is kept.
    fn dump(&mut self, at: usize) -> State {
        self.fail_with(at, Notification::cease(cease::COLLISION), Blame::Wait)
    }

    /// The peer has ended the session.
    fn notified(&mut self, at: usize, received: Notification) -> State {
        let was_up = self.machines[at].state == State::Established;
        let blame = match (received.code, received.subcode) {
            (error_code::CEASE, cease::COLLISION) => Blame::Wait,
            // What an operator does, and a peer that has not heard from us.
            (
                error_code::CEASE,
                cease::ADMIN_SHUTDOWN
                | cease::PEER_DECONFIGURED
                | cease::ADMIN_RESET
                | cease::CONFIGURATION_CHANGE
                | cease::HARD_RESET
                | cease::BFD_DOWN,
            )
            | (error_code::HOLD_TIMER, _)
                if was_up =>
            {
                Blame::Nobody
            }
            _ => Blame::Error,
        };
        self.fail(at, Ending::Received(received), blame)
    }

    /// The peer speaks another version. RFC 4271 counts that only where no OPEN is on its way.
    fn version_refused(&mut self, at: usize, received: Notification) -> State {
        let machine = &self.machines[at];
        let is_odd = matches!(machine.state, State::Connect | State::Active)
            && !machine.timers.runs(Timer::DelayOpen);
        let blame = if is_odd { Blame::Error } else { Blame::Uncounted };
        self.fail(at, Ending::Received(received), blame)
    }
}
