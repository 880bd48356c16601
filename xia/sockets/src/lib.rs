//! Datagram sockets of XIA for applications.
