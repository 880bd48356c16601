//! What links do to packets.
