//! The component form and the two drivers that run components: real and simulated.
//!
//! * [`Component`] is the form of every protocol core; [`Process`] is a component at the border of a
//!   process, which speaks [`Event`]s and [`Action`]s.
//! * [`frames`] cuts a stream of bytes into messages.
//! * [`real`] runs one process with sockets, files and the machine's clock.
//! * `sim` runs any number of processes on modelled links in virtual time.

mod address;
mod component;
mod disk;
mod engine;
pub mod frames;
mod link;
mod process;
mod program;
pub mod real;
mod routes;
mod scheduling;
pub mod sim;
mod stream;
mod tuning;

pub use address::{ChannelAddress, Keys, Peer};
pub use component::Component;
pub use disk::{DiskError, DiskErrorKind, DiskReply, DiskRequest, OpenMode};
pub use engine::{EngineReply, EngineRequest};
pub use link::{BILLION, ETHERNET_OVERHEAD, LinkConfig, LinkCount, LinkModel};
pub use process::{Action, DriverCounts, Event, Level, Process};
pub use program::{Attached, ProgramReply, ProgramRequest};
pub use routes::{RouteReply, RouteRequest};
pub use scheduling::{SCHEDULING, read_scheduling};
pub use stream::{StreamEvent, StreamRequest};
pub use tuning::{Tuned, Tuning};
pub use weft_base::{Handle, Message};
pub use weft_ebpf::{
    Direction, Engine, EngineMode, FoundProgram, HookKind, LossProbability, MapKind, MapShape,
    MapWrite, PROGRAMS, Program, Slot, XdpMode,
};
pub use weft_netlink::{
    Deletions, Interface, InterfaceAddress, InterfaceChange, InterfaceRequest, IpChange, IpWay,
    KernelRoute, MAIN_TABLE, MOST_WAYS, Napi, NewInterface, RouteChange, RouteOperation,
    RouteSpace, RouteTarget, RouteWay, RoutesTold,
};
pub use weft_port::datagrams::MOST_HANDLES;
pub use weft_port::stream::{
    LONGEST_KEY, MOST_LEAST_TTLS, NETWORK_CONTROL, PeerKey, PeerTtl, StreamKey, StreamListenerSpec,
    StreamOptions, StreamSpec,
};
pub use weft_port::{Priority, Scheduling};
