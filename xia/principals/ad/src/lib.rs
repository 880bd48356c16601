//! XIA principal ad.
