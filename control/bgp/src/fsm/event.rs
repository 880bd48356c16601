//! The events of a connection's state machine.
//!
//! Reference: RFC 4271 §8.1; RFC 9687 §3.1 (event 29).

use super::negotiate::Negotiated;
use super::timers::Timer;
use crate::wire::{MessageError, Notification, RouteRefresh};

/// What happens to a connection. Events that begin a session are the same with and without passivity and
/// damping (4 to 7), which are settings.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// 1: ManualStart (4 if passive).
    ManualStart,
    /// 2: ManualStop, with what the peer is told.
    ManualStop(Notification),
    /// 3: AutomaticStart (5 if passive, 6 and 7 with damping).
    AutomaticStart,
    /// 8: AutomaticStop, with what the peer is told.
    AutomaticStop(Notification),
    /// 9: ConnectRetryTimer_Expires.
    ConnectRetryExpires,
    /// 10: HoldTimer_Expires.
    HoldExpires,
    /// 11: KeepaliveTimer_Expires.
    KeepaliveExpires,
    /// 12: DelayOpenTimer_Expires.
    DelayOpenExpires,
    /// 13: IdleHoldTimer_Expires.
    IdleHoldExpires,
    /// 16: Tcp_CR_Acked.
    ConnectAcked,
    /// 17: TcpConnectionConfirmed.
    ConnectionConfirmed,
    /// 17 as RFC 4724 §5 has it: a peer that may restart has opened a connection beside this one.
    Replaced,
    /// 18: TcpConnectionFails.
    ConnectionFails,
    /// 19: BGPOpen.
    Open(Box<Negotiated>),
    /// 20: BGPOpen with DelayOpenTimer running.
    OpenWithDelay(Box<Negotiated>),
    /// 21: BGPHeaderErr.
    HeaderError(MessageError),
    /// 22: BGPOpenMsgErr.
    OpenError(MessageError),
    /// 23: OpenCollisionDump.
    CollisionDump,
    /// 24: NotifMsgVerErr.
    NotificationVersion(Notification),
    /// 25: NotifMsg.
    Notification(Notification),
    /// 26: KeepAliveMsg.
    Keepalive,
    /// 27: UpdateMsg, its body.
    Update(Vec<u8>),
    /// 28: UpdateMsgErr, with what the peer is told.
    UpdateError(Notification),
    /// 29: SendHoldTimer_Expires.
    SendHoldExpires,
    /// A ROUTE-REFRESH, which RFC 2918 has only in Established; none if it has nothing to say.
    Refresh(Option<RouteRefresh>),
}

impl Event {
    /// The event of a timer.
    pub(super) const fn of(timer: Timer) -> Self {
        match timer {
            Timer::ConnectRetry => Self::ConnectRetryExpires,
            Timer::Hold => Self::HoldExpires,
            Timer::Keepalive => Self::KeepaliveExpires,
            Timer::DelayOpen => Self::DelayOpenExpires,
            Timer::IdleHold => Self::IdleHoldExpires,
            Timer::SendHold => Self::SendHoldExpires,
        }
    }

    /// Its name in the RFC.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::ManualStart => "ManualStart",
            Self::ManualStop(_) => "ManualStop",
            Self::AutomaticStart => "AutomaticStart",
            Self::AutomaticStop(_) => "AutomaticStop",
            Self::ConnectRetryExpires => "ConnectRetryTimer_Expires",
            Self::HoldExpires => "HoldTimer_Expires",
            Self::KeepaliveExpires => "KeepaliveTimer_Expires",
            Self::DelayOpenExpires => "DelayOpenTimer_Expires",
            Self::IdleHoldExpires => "IdleHoldTimer_Expires",
            Self::ConnectAcked => "Tcp_CR_Acked",
            Self::ConnectionConfirmed => "TcpConnectionConfirmed",
            Self::Replaced => "TcpConnectionConfirmed (RFC 4724)",
            Self::ConnectionFails => "TcpConnectionFails",
            Self::Open(_) => "BGPOpen",
            Self::OpenWithDelay(_) => "BGPOpen with DelayOpenTimer running",
            Self::HeaderError(_) => "BGPHeaderErr",
            Self::OpenError(_) => "BGPOpenMsgErr",
            Self::CollisionDump => "OpenCollisionDump",
            Self::NotificationVersion(_) => "NotifMsgVerErr",
            Self::Notification(_) => "NotifMsg",
            Self::Keepalive => "KeepAliveMsg",
            Self::Update(_) => "UpdateMsg",
            Self::UpdateError(_) => "UpdateMsgErr",
            Self::SendHoldExpires => "SendHoldTimer_Expires",
            Self::Refresh(_) => "RouteRefresh",
        }
    }
}
