//! Checks that every wire format of this crate passes.

use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use std::vec;

use crate::{MacAddr, WireError};

/// `bytes` are read, and every shorter beginning of them is an error.
pub(crate) fn check_truncation(bytes: &[u8], parse: impl Fn(&[u8]) -> Result<(), WireError>) {
    assert_eq!(parse(bytes), Ok(()), "the whole is readable");
    for length in 0..bytes.len() {
        let result = parse(&bytes[..length]);
        assert!(result.is_err(), "{length} of {} bytes were accepted", bytes.len());
    }
}

/// Writing succeeds with exactly `needed` bytes and fails without a panic with fewer.
pub(crate) fn check_no_space(needed: usize, emit: impl Fn(&mut [u8]) -> Result<(), WireError>) {
    let mut buffer = vec![0; needed];
    assert_eq!(emit(&mut buffer), Ok(()));
    for length in 0..needed {
        let result = emit(&mut buffer[..length]);
        assert!(
            matches!(result, Err(WireError::NoSpace { available, .. }) if available == length),
            "{length} of {needed} bytes: {result:?}"
        );
    }
}

pub(crate) fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

pub(crate) fn ipv4() -> impl Strategy<Value = Ipv4Addr> {
    any::<[u8; 4]>().prop_map(Ipv4Addr::from)
}

pub(crate) fn ipv6() -> impl Strategy<Value = Ipv6Addr> {
    any::<[u8; 16]>().prop_map(Ipv6Addr::from)
}
