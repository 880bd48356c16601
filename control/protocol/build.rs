//! Makes the stubs of the interfaces that protocols use and offer.

fn main() {
    weft_xif::build(&["../../interfaces/rib.xif", "../../interfaces/protocol.xif"]);
}
