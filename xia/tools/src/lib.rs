//! Applications of XIA: ping, cat, addr, trace, push, receive.
