//! Packet ports: AF_PACKET, TUN/TAP, UDP and in-memory.
