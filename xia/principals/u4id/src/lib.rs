//! XIA principal u4id.
