//! XIA principal zf.
