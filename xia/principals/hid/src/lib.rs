//! XIA principal hid.
