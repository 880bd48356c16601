//! Network interfaces as the Linux kernel tells of them over rtnetlink: watching and configuring.
//!
//! * [`Monitor`] tells which interfaces there are, with their addresses, and from then on each change.
//! * [`Configurator`] carries out [`InterfaceRequest`]s; each is answered by the kernel.
//! * [`TrafficControl`] attaches, lists and removes what hangs at an interface: classifiers and XDP programs.
//! * [`NapiControl`] tells and changes how packets are taken from an interface's driver.
//! * [`RouteWriter`] changes routes of IP, many at once, and [`RouteDump`] reads those of one protocol.
//! * [`IpMonitor`] tells where the kernel's tables of IP lead, and which neighbours it knows, and from then on each
//!   change.
//!
//! The monitors, the configurator and the dump never block: wait for their `fd` with epoll. Watching needs no privileges,
//! configuring needs CAP_NET_ADMIN. They belong to the network namespace of the thread that opened them. The
//! messages are read by `watch` and `ip_watch`, which do no I/O.
//!
//! Reference: RFC 3549 §2 and §3.1 (Netlink, network interfaces and addresses), netlink(7), rtnetlink(7).

mod configurator;
mod exchange;
mod feed;
mod generic;
mod inquiry;
mod interface;
mod ip;
mod ip_message;
mod ip_monitor;
mod ip_watch;
mod message;
mod monitor;
mod napi;
mod programs;
mod request;
mod routes;
#[cfg(feature = "testing")]
pub mod testing;
mod watch;

pub use configurator::Configurator;
pub use interface::{Interface, InterfaceAddress, InterfaceChange};
pub use ip::{IpChange, IpWay};
pub use ip_monitor::IpMonitor;
pub use monitor::Monitor;
pub use napi::{Napi, NapiControl, NapiSetting};
pub use programs::{Classifier, Direction, Place, Refusal, TrafficControl, XdpMode, XdpProgram};
pub use request::{InterfaceRequest, NewInterface};
pub use routes::{
    DeletedRoutes, Deletions, KernelRoute, MAIN_TABLE, MOST_WAYS, RouteBatch, RouteChange,
    RouteDump, RouteOperation, RouteSpace, RouteTarget, RouteWay, RouteWriter, RoutesTold,
};
