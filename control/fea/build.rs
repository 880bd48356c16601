//! Makes the stubs of the manager's interface, which keeps descriptors.

fn main() {
    weft_xif::build(&["../../interfaces/manager.xif"]);
}
