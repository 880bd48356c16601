//! What the state machine does when it changes its state, or does not.
//!
//! Reference: RFC 4271 §8.2.2 (the actions), §8.1.1 (DampPeerOscillations), §10 (times).

use std::time::Duration;

use super::negotiate::Negotiated;
use super::session::{PRIMARY, Session};
use super::timers::{Timer, jittered};
use super::{AttemptId, ConnectionId, Ending, Output, State};
use crate::wire::{Notification, keepalive};

/// HoldTimer while the peer's OPEN is awaited: "a large value", for which the RFC suggests four minutes.
const OPEN_HOLD: Duration = Duration::from_secs(240);

/// Whose fault the end of a connection is, which decides when there is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blame {
    /// Something is wrong that may be wrong again: IdleHoldTimer, each time longer.
    Error,
    /// As with an error, but ConnectRetryCounter stays as it is.
    Uncounted,
    /// A session that was fine has ended: the next one begins at once.
    Nobody,
    /// The next connection may begin at once, but the peer is to open it, for a moment: another one was kept, or
    /// the session was so short that connecting again and again would help nobody.
    Wait,
}

impl Session {
    /// Idle is left: "initializes all BGP resources, sets ConnectRetryCounter to zero". The second connection
    /// begins when there is one already.
    pub(super) fn begin(&mut self, at: usize) -> State {
        if at != PRIMARY {
            return State::Active;
        }
        self.retries = 0;
        self.machines[at].timers.stop_all();
        if std::mem::take(&mut self.waits_for_peer) && !self.settings.is_passive {
            // Both sides may wait now, so not for long.
            self.start_connect_retry(at, self.settings.idle_hold);
            return State::Active;
        }
        self.connect(at)
    }

    /// Opens a connection and starts ConnectRetryTimer; if passive, waits for the peer.
    pub(super) fn connect(&mut self, at: usize) -> State {
        self.cancel_attempt();
        if self.settings.is_passive {
            return State::Active;
        }
        self.start_connect_retry(at, self.settings.connect_retry);
        self.attempts += 1;
        let attempt = AttemptId(self.attempts);
        self.attempt = Some(attempt);
        self.out.push(Output::Connect(attempt));
        State::Connect
    }

    /// "Continues to listen for a connection that may be initiated by the remote BGP peer".
    pub(super) fn wait_for_peer(&mut self, at: usize) -> State {
        self.release(at, Ending::Lost);
        if at != PRIMARY {
            // The first one listens, too.
            return State::Idle;
        }
        if !self.settings.is_passive {
            self.start_connect_retry(at, self.settings.connect_retry);
        }
        State::Active
    }

    fn start_connect_retry(&mut self, at: usize, span: Duration) {
        let span = jittered(span.min(self.settings.connect_retry), &mut self.random);
        self.machines[at].timers.start(Timer::ConnectRetry, self.now + span);
    }

    /// Gives up the attempt that is under way, if any.
    pub(super) fn cancel_attempt(&mut self) {
        self.out.extend(self.attempt.take().map(Output::CancelConnect));
    }

    /// There is a connection: OPEN is sent at once, or when the peer has had its time.
    pub(super) fn delay_or_send_open(&mut self, at: usize, here: State) -> State {
        let Some(delay) = self.settings.delay_open else { return self.send_open(at) };
        let deadline = self.now + jittered(delay, &mut self.random);
        let timers = &mut self.machines[at].timers;
        timers.stop(Timer::ConnectRetry);
        timers.start(Timer::DelayOpen, deadline);
        here
    }

    pub(super) fn send_open(&mut self, at: usize) -> State {
        let open = self.settings.open();
        self.send(at, open.emit());
        self.machines[at].open = Some(Box::new(open));
        let deadline = self.now + OPEN_HOLD;
        let timers = &mut self.machines[at].timers;
        timers.stop(Timer::ConnectRetry);
        timers.stop(Timer::DelayOpen);
        timers.start(Timer::Hold, deadline);
        State::OpenSent
    }

    /// The peer's OPEN is there: answers with KEEPALIVE.
    pub(super) fn confirm(&mut self, at: usize, negotiated: Box<Negotiated>) -> State {
        let machine = &mut self.machines[at];
        machine.timers.stop(Timer::DelayOpen);
        machine.timers.stop(Timer::ConnectRetry);
        if self.settings.extended_message
            && let Some(link) = &mut machine.link
        {
            link.cutter.allow_extended();
        }
        machine.negotiated = Some(negotiated);
        self.send_keepalive(at);
        self.restart_hold(at);
        State::OpenConfirm
    }

    /// Sends a KEEPALIVE and starts KeepaliveTimer, unless the hold time is zero.
    pub(super) fn send_keepalive(&mut self, at: usize) {
        self.send(at, keepalive());
        let span = self.machines[at].negotiated.as_ref().map(|negotiated| negotiated.keepalive);
        if let Some(span) = span.filter(|span| !span.is_zero()) {
            let deadline = self.now + jittered(span, &mut self.random);
            self.machines[at].timers.start(Timer::Keepalive, deadline);
        }
    }

    /// The peer has been heard.
    pub(super) fn restart_hold(&mut self, at: usize) {
        let machine = &mut self.machines[at];
        let Some(negotiated) = &machine.negotiated else { return };
        if negotiated.hold_time.is_zero() {
            machine.timers.stop(Timer::Hold);
        } else {
            machine.timers.start(Timer::Hold, self.now + negotiated.hold_time);
        }
    }

    /// The peer has taken something.
    pub(super) fn restart_send_hold(&mut self, at: usize) {
        let machine = &mut self.machines[at];
        let Some(negotiated) = &machine.negotiated else { return };
        if let Some(span) = self.settings.send_hold(negotiated.hold_time) {
            machine.timers.start(Timer::SendHold, self.now + span);
        }
    }

    /// Routes can be exchanged. No other connection is needed any more.
    pub(super) fn establish(&mut self, at: usize) -> State {
        self.restart_hold(at);
        self.restart_send_hold(at);
        self.cancel_attempt();
        self.up_since = Some(self.now);
        let machine = &self.machines[at];
        if let (Some(link), Some(negotiated), Some(open)) =
            (&machine.link, &machine.negotiated, &machine.open)
        {
            let (negotiated, open) = (negotiated.clone(), open.clone());
            self.out.push(Output::Up { connection: link.id, negotiated, open });
        }
        State::Established
    }

    pub(super) fn send(&mut self, at: usize, bytes: Vec<u8>) {
        if let Some(connection) = self.connection_at(at) {
            self.out.push(Output::Send { connection, bytes });
        }
    }

    /// The connection of a state machine.
    pub(super) fn connection_at(&self, at: usize) -> Option<ConnectionId> {
        self.machines[at].link.as_ref().map(|link| link.id)
    }

    /// Stops the timers, closes the connection, and takes the routes down if they were up.
    pub(super) fn release(&mut self, at: usize, ending: Ending) {
        let machine = &mut self.machines[at];
        machine.timers.stop_all();
        let negotiated = machine.negotiated.take();
        let link = machine.link.take();
        machine.open = None;
        if let Some(link) = &link {
            self.out.push(Output::Close(link.id));
        }
        if machine.state == State::Established
            && let Some(negotiated) = negotiated
        {
            let is_graceful = is_graceful(&negotiated, &ending);
            self.out.push(Output::Down { ending, is_graceful });
        } else if link.is_some() && self.machines.iter().all(|other| other.link.is_none()) {
            self.out.push(Output::Failed(ending));
        }
    }

    /// ManualStop where no OPEN was sent.
    pub(super) fn stop_quietly(&mut self, at: usize) -> State {
        self.release(at, Ending::Lost);
        self.retries = 0;
        State::Idle
    }

    /// ManualStop where the peer has to be told. With graceful restart it is to forget our routes.
    pub(super) fn stop(&mut self, at: usize, told: Notification) -> State {
        let hard = self.machines[at].negotiated.as_ref().is_some_and(|n| n.graceful_notification);
        let told = if hard { told.into_hard_reset() } else { told };
        self.send(at, told.emit());
        self.release(at, Ending::Sent(told));
        self.retries = 0;
        State::Idle
    }

    /// Ends the connection with a NOTIFICATION.
    pub(super) fn fail_with(&mut self, at: usize, told: Notification, blame: Blame) -> State {
        self.send(at, told.emit());
        self.fail(at, Ending::Sent(told), blame)
    }

    /// Ends the connection: "sets the ConnectRetryTimer to zero, releases all BGP resources, drops the TCP
    /// connection, increments the ConnectRetryCounter by 1, performs peer oscillation damping".
    pub(super) fn fail(&mut self, at: usize, ending: Ending, blame: Blame) -> State {
        let mut blame = blame;
        if self.machines[at].state == State::Established
            && let Some(since) = self.up_since.take()
        {
            let up = self.now - since;
            if up >= self.settings.max_idle_hold {
                self.errors = 0;
            }
            if blame == Blame::Nobody && up < self.settings.idle_hold {
                blame = Blame::Wait;
            }
        }
        self.release(at, ending);
        if blame != Blame::Uncounted {
            self.retries = self.retries.saturating_add(1);
        }
        if at == PRIMARY {
            self.hold_idle(blame);
        }
        State::Idle
    }

    /// Starts IdleHoldTimer: with no error it expires at once, with further ones later and later.
    fn hold_idle(&mut self, blame: Blame) {
        self.waits_for_peer = blame == Blame::Wait;
        let span = match blame {
            Blame::Nobody | Blame::Wait => Duration::ZERO,
            Blame::Error | Blame::Uncounted => {
                let times = 1u32.checked_shl(self.errors).unwrap_or(u32::MAX);
                self.errors = self.errors.saturating_add(1);
                let span = self.settings.idle_hold.saturating_mul(times);
                jittered(span.min(self.settings.max_idle_hold), &mut self.random)
            }
        };
        self.machines[PRIMARY].timers.start(Timer::IdleHold, self.now + span);
    }
}

/// Whether routes may be kept: RFC 4724 §4.2 where the connection was lost, RFC 8538 §4 where it was ended. RFC 9494 §4.2:
/// a family may be kept for a long time that is not kept for a short one.
fn is_graceful(negotiated: &Negotiated, ending: &Ending) -> bool {
    let has_families =
        negotiated.graceful_restart.as_ref().is_some_and(|peer| !peer.families.is_empty());
    let mut long_lived = negotiated.long_lived.iter().flatten();
    (has_families || long_lived.any(|tuple| tuple.stale_time > 0))
        && match ending {
            Ending::Lost | Ending::Replaced => true,
            Ending::Sent(told) | Ending::Received(told) => {
                negotiated.graceful_notification && !told.is_hard_reset()
            }
        }
}
