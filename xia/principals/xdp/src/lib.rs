//! XIA principal xdp.
