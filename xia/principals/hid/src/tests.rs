//! Neighbour discovery between nodes: outputs of one are carried to the inputs of the others, at
//! exact times.

mod exchange;
mod expiry;
mod flood;
mod hostile;
mod link;
mod proof;
mod table;
