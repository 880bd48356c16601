//! What is left of a lab: nothing.
