//! The configuration language: text with positions in, checked statements out.
