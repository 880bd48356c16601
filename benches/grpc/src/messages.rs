//! The messages, as `protoc` would make them of the interface `probe` (`interfaces/probe.xif`).

/// No arguments.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct Nothing {}

macro_rules! numbers {
    ($name:ident: $($field:ident $tag:literal)*) => {
        /// Numbers.
        #[derive(Clone, Copy, PartialEq, prost::Message)]
        pub(crate) struct $name {
            $(
                /// A number.
                #[prost(uint32, tag = $tag)]
                pub(crate) $field: u32,
            )*
        }

        impl $name {
            /// A message of numbers from `first` on.
            pub(crate) fn from(first: u32) -> Self {
                let mut next = first..;
                Self { $($field: next.next().unwrap_or_default()),* }
            }
        }
    };
}

numbers!(Ten: a0 "1" a1 "2" a2 "3" a3 "4" a4 "5" a5 "6" a6 "7" a7 "8" a8 "9" a9 "10");
numbers!(Twentyfive: a0 "1" a1 "2" a2 "3" a3 "4" a4 "5" a5 "6" a6 "7" a7 "8" a8 "9" a9 "10"
    a10 "11" a11 "12" a12 "13" a13 "14" a14 "15" a15 "16" a16 "17" a17 "18" a18 "19" a19 "20"
    a20 "21" a21 "22" a22 "23" a23 "24" a24 "25");

/// A route; addresses of either family are bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Route {
    /// The address of the prefix.
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) net: Vec<u8>,
    /// Its length.
    #[prost(uint32, tag = "2")]
    pub(crate) len: u32,
    /// The next hop.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) nexthop: Vec<u8>,
    /// The metric.
    #[prost(uint32, tag = "4")]
    pub(crate) metric: u32,
    /// A comment.
    #[prost(string, tag = "5")]
    pub(crate) comment: String,
}

/// Routes.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Take {
    /// The routes.
    #[prost(message, repeated, tag = "1")]
    pub(crate) routes: Vec<Route>,
}

/// How many were taken.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct TakeReply {
    /// How many.
    #[prost(uint32, tag = "1")]
    pub(crate) count: u32,
}
