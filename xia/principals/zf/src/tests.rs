//! What filters lead to: look-ups, and packets through routers.

mod forwarding;
mod lookup;
mod many;
