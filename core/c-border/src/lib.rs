//! What weft's libraries for C share: failures are negative numbers with words, and no panic gets out.
//!
//! A function for C does its work inside of [`guarded`]. What goes wrong becomes a number, which the
//! library's header names, and a sentence, which the caller's thread can ask for ([`error`]). Nothing here
//! touches a pointer; that is each library's own affair.
//!
//! ```
//! use std::ffi::{CStr, c_int};
//! use weft_c_border::{argument, error, guarded};
//!
//! extern "C" fn half(number: c_int) -> c_int {
//!     let halved = guarded(|| match number % 2 {
//!         0 => Ok(number / 2),
//!         _ => Err(argument("the number is odd")),
//!     });
//!     halved.unwrap_or_else(|error| error)
//! }
//!
//! assert_eq!((half(6), half(7)), (3, weft_c_border::ARGUMENT));
//! // SAFETY: it points to a string of C until the next failure.
//! assert_eq!(unsafe { CStr::from_ptr(error()) }, c"the number is odd");
//! ```

#[cfg(feature = "testing")]
pub mod testing;

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// What a call returns that makes no sense, such as one with a null pointer.
pub const ARGUMENT: c_int = -11;
/// What a call returns that found an error in the library itself.
pub const BUG: c_int = -12;
/// Longer than any program runs, and the sum with the time of day still is a time.
pub const FOR_EVER: Duration = Duration::from_secs(1 << 32);

thread_local! {
    /// Why the last call of this thread failed.
    static ERROR: RefCell<CString> = RefCell::default();
}

/// What a call failed with: its number. The words are noted already.
#[derive(Debug)]
pub struct Failure(c_int);

/// A failure with this number, which is negative, and these words.
pub fn fail(number: c_int, words: &str) -> Failure {
    let words: Vec<u8> = words.bytes().filter(|byte| *byte != 0).collect();
    // A thread that is ending has nowhere to note it.
    let _ = ERROR.try_with(|error| *error.borrow_mut() = CString::new(words).unwrap_or_default());
    Failure(number)
}

/// The failure of a call that makes no sense, for this reason.
pub fn argument(words: &str) -> Failure {
    fail(ARGUMENT, words)
}

/// Refuses more values of type `T` than memory can hold: such a number is a mistake of the caller, and no slice
/// may have it.
///
/// # Errors
/// There cannot be so many.
pub fn check_count<T>(count: usize) -> Result<(), Failure> {
    let size = count.checked_mul(size_of::<T>());
    match size.is_some_and(|size| isize::try_from(size).is_ok()) {
        true => Ok(()),
        false => {
            Err(argument(&format!("no memory is as long as {count} times {}", size_of::<T>())))
        }
    }
}

/// Does the work of a call; a panic, which would be an error in the library, becomes a number.
///
/// # Errors
/// The number of the failure.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Failure(number))) => Err(number),
        Err(_) => Err(fail(BUG, "the library failed inside: please report it").0),
    }
}

/// C's form of a timeout: milliseconds, negative for ever.
#[must_use]
pub fn timeout(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// What a call returns that counts bytes.
#[must_use]
pub fn length(result: Result<usize, c_int>) -> i64 {
    // A slice has no more bytes than fit.
    result.map_or_else(i64::from, |len| len as i64)
}

/// What a call returns that yields nothing: 0.
#[must_use]
pub fn status(result: Result<(), c_int>) -> c_int {
    result.map_or_else(|number| number, |()| 0)
}

/// Why the last call of this thread failed, as a string of C. It is valid until the thread's next failure.
#[must_use]
pub fn error() -> *const c_char {
    // The string stays where it is until then.
    ERROR.try_with(|error| error.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> String {
        ERROR.with(|error| error.borrow().to_str().map(str::to_owned)).unwrap_or_default()
    }

    #[test]
    fn a_failure_is_a_number_and_words_without_zeros() {
        assert_eq!(guarded(|| Err::<(), _>(fail(-3, "not\0 yet"))), Err(-3));
        assert_eq!(words(), "not yet");
        assert_eq!(guarded(|| Ok(7)), Ok(7));
    }

    #[test]
    fn a_panic_does_not_get_out() {
        assert_eq!(guarded(|| -> Result<(), Failure> { panic!("on purpose") }), Err(BUG));
        assert!(words().contains("please report"), "{}", words());
    }

    #[test]
    fn words_are_those_of_the_own_thread() {
        argument("mine");
        std::thread::spawn(|| argument("another's")).join().unwrap_or(Failure(0));
        assert_eq!(words(), "mine");
    }

    #[test]
    fn no_slice_is_longer_than_memory() {
        let most = usize::MAX / 2;
        assert!(check_count::<u8>(0).is_ok() && check_count::<u8>(most).is_ok());
        assert!(check_count::<u8>(most + 1).is_err() && check_count::<u8>(usize::MAX).is_err());
        assert!(check_count::<u64>(most / 8).is_ok() && check_count::<u64>(most / 8 + 1).is_err());
        // Eight times this is 0, if it is not looked at.
        assert!(check_count::<u64>(1 << (usize::BITS - 3)).is_err());
    }

    #[test]
    fn numbers_of_c() {
        assert_eq!((timeout(-1), timeout(0)), (None, Some(Duration::ZERO)));
        assert_eq!((length(Ok(5)), length(Err(-2))), (5, -2));
        assert_eq!((status(Ok(())), status(Err(-9))), (0, -9));
    }
}
