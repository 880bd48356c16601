//! The real driver as a whole.
