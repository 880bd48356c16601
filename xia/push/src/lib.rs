//! Reliable push of files to many receivers with RaptorQ (RFC 6330) and no back channel.
mod code;
mod digest;
mod disk;
pub mod names;
pub mod object;
pub mod pacing;
pub mod receiver;
pub mod sender;
pub mod wire;

#[cfg(test)]
mod tests;
