//! Asks the processor for memory that will be read soon.
//!
//! A look-up in a large table waits some hundred nanoseconds for memory. Whoever has several look-ups to do asks
//! for all of them first, and then the processor waits once. Reading ahead does the same with safe code as long as
//! few reads fit between two uses; a read that waits for memory holds up everything behind it, a prefetch does not.
//!
//! Reference: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, `PREFETCHh`; Arm Architecture
//! Reference Manual for A-profile, `PRFM`. On other processors nothing is done.

/// Has the cache line brought near in which `value` begins. Changes nothing else, whatever `value` is.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    let address = std::ptr::from_ref(value);
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction reads nothing and cannot fault; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the instruction reads nothing and cannot fault; every Armv8 processor has it.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// As [`prefetch()`], of an element; nothing if there is none.
#[inline(always)]
pub fn prefetch_element<T>(slice: &[T], index: usize) {
    if let Some(element) = slice.get(index) {
        prefetch(element);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_changes_whatever_is_asked_for() {
        let values: Vec<u64> = (0..1000).collect();
        (0..2000).for_each(|index| prefetch_element(&values, index));
        prefetch(&());
        prefetch_element::<u8>(&[], 0);
        assert!(values.iter().enumerate().all(|(index, value)| index as u64 == *value));
    }
}
