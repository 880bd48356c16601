//! Reading and writing fixed fields in network byte order.
//!
//! These functions index without asking: each caller has checked the length of the buffer once, with
//! [`require`] or [`require_space`], before the first field is touched.

use core::ops::Range;

use crate::WireError;

/// Checks that `data` holds the `needed` bytes of `header`.
pub(crate) fn require(header: &'static str, data: &[u8], needed: usize) -> Result<(), WireError> {
    if data.len() < needed {
        return Err(WireError::Truncated { header, needed, available: data.len() });
    }
    Ok(())
}

/// Cuts the first `needed` bytes off `buffer`, to write `header` into them.
#[inline]
pub(crate) fn require_space<'a>(
    header: &'static str,
    buffer: &'a mut [u8],
    needed: usize,
) -> Result<&'a mut [u8], WireError> {
    let available = buffer.len();
    buffer.get_mut(..needed).ok_or(WireError::NoSpace { header, needed, available })
}

/// Reads `field`, whose width is `N`.
pub(crate) fn get<const N: usize>(data: &[u8], field: Range<usize>) -> [u8; N] {
    let mut value = [0; N];
    value.copy_from_slice(&data[field]);
    value
}

/// Writes `value` to `field`, which has the same width.
#[inline]
pub(crate) fn put(data: &mut [u8], field: Range<usize>, value: &[u8]) {
    data[field].copy_from_slice(value);
}

/// Reads a 16-bit `field`.
pub(crate) fn get_u16(data: &[u8], field: Range<usize>) -> u16 {
    u16::from_be_bytes(get(data, field))
}

/// Writes a 16-bit `field`.
#[inline]
pub(crate) fn put_u16(data: &mut [u8], field: Range<usize>, value: u16) {
    put(data, field, &value.to_be_bytes());
}

/// Reads a 32-bit `field`.
pub(crate) fn get_u32(data: &[u8], field: Range<usize>) -> u32 {
    u32::from_be_bytes(get(data, field))
}

/// Writes a 32-bit `field`.
pub(crate) fn put_u32(data: &mut [u8], field: Range<usize>, value: u32) {
    put(data, field, &value.to_be_bytes());
}
