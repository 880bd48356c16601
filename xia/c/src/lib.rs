//! Datagram sockets of XIA for programs in C: the functions of `weft_xia.h`, which says what they do.
//!
//! Each function is a thin border: it checks its pointers for null, makes Rust values of them, and calls
//! `weft_xia_sockets`. No panic crosses it (`weft_c_border::guarded`). What a caller must keep to, besides
//! what the header says, is what C demands of every pointer: it points to as many bytes as were said, and a
//! `weft_xia_socket *` came from `weft_xia_open` and was not closed.

#![allow(unsafe_code, reason = "pointers of C callers; each block says what it relies on")]

pub mod address;
pub mod socket;
