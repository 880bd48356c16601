//! What others ask of a protocol's process: the manager, and operators.

use weft_base::Instant;
use weft_xrl::{Input, Output, configurable};

use crate::manage::{Manage, manage};
use crate::views::{Show, show};

/// Answers a call of the manager or of an operator; gives every other input back.
pub fn serve<T: Manage + Show>(
    component: &mut T,
    now: Instant,
    input: Input,
    out: &mut Vec<Output>,
) -> Option<Input> {
    match input {
        Input::Called(called) if called.interface.name == configurable::INTERFACE.name => {
            manage(component, now, called, out);
        }
        Input::Called(called) => out.push(show(component, now, called)),
        other => return Some(other),
    }
    None
}
