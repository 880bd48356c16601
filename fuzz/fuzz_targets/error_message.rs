//! Error messages of XIP: what can be read is written back as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weft_xip::error_message::ErrorMessage;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = ErrorMessage::parse(bytes) else { return };
    let again = message.emit();
    assert_eq!(again.len(), message.buffer_len());
    // Behind the packet's end there may be anything.
    assert_eq!(bytes[..again.len()], again);
    assert_eq!(ErrorMessage::parse(&again).as_ref(), Ok(&message));
});
