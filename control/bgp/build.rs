//! Makes the stubs of BGP's interface, and of the RIB's.

fn main() {
    weft_xif::build(&["../../interfaces/bgp.xif", "../../interfaces/rib.xif"]);
}
