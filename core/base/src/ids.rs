//! Small identifiers that drivers hand out and components hand back.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id! {
    /// A packet port, given by the driver when the port opens; not used again while the process runs.
    /// Zero means "no port": a packet that was made here.
    PortId, "port"
}
id! {
    /// A message channel between an application and a stack on the same machine.
    ChannelId, "channel"
}
id! {
    /// An open file.
    FileId, "file"
}
id! {
    /// Chosen by a component to recognise the answer to one of its requests.
    Token, "token"
}

impl PortId {
    /// No port: the packet was made on this node.
    pub const NONE: Self = Self(0);
}
