//! eBPF programs that weft embeds, and their loading and attaching.
