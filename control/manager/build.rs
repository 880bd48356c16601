//! Makes the stubs of the manager's interface.

fn main() {
    weft_xif::build(&["../../interfaces/manager.xif"]);
}
