//! Names for the things in a world. They are handed out by it and mean nothing in another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $vis:vis $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis struct $name(u32);

        impl $name {
            /// The id of the thing at `index` in its table.
            pub(super) fn at(index: usize) -> Self {
                Self(u32::try_from(index).expect("a world has fewer than 2^32 things of a kind"))
            }

            /// Its number, counted from zero in order of creation.
            #[must_use]
            $vis fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id! {
    /// A machine.
    pub NodeId, "node"
}
id! {
    /// A network interface of a node. Deleting it does not free its id.
    pub InterfaceId, "interface"
}
id! {
    /// A cable between interfaces, or a hub.
    pub LinkId, "link"
}
id! {
    /// A process that runs, or ran, on a node.
    pub ProcessId, "process"
}
id! {
    /// One of the two ends of a channel between processes.
    pub(super) EndId, "end"
}
