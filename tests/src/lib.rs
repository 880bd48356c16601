//! Tests that span crates: interoperation, labs, the house's own rules.
