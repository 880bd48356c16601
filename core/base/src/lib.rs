//! Vocabulary shared by every crate: time, ids, counters, randomness and the packet buffer.
