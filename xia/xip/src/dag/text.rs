//! The text form of addresses.
//!
//! Reference: the text that AltraMayor/xiaconf (`libxia`), the logs of AltraMayor/XIA-for-Linux
//! and Wireshark's XIP dissector use.
//!
//! ```text
//! address := ["!"] row ( ":" [LF] row )* [LF]
//! row     := xid [ "-" edge edge? edge? edge? ]
//! edge    := [">"] ( digit | letter | "*" )
//! ```
//!
//! One row for each node, separated by `:`; see [`crate::text`] for `xid`. An edge is the number
//! of a row in base 36 (`0`–`9`, `a`–`z`); `*` is an empty edge; `>` marks an edge that a
//! forwarder has chosen. A row without edges is a sink. The edges of the entry node stand at the
//! **last** row, as on the wire.
//!
//! | text (identifiers shortened) | meaning |
//! |---|---|
//! | `xdp-b1-0` | entry → XDP |
//! | `hid-a1-1:xdp-b1-0` | entry → HID → XDP |
//! | `hid-a1-1:xdp-b1-10` | entry → XDP, else entry → HID → XDP |
//!
//! The printer puts `!` before an address that is not valid, and prints all four edges of each of
//! its rows; the parser accepts that mark and ignores it. An edge to row 36 or above, which no
//! address can have, is printed as `+` and cannot be read back. The alternate form (`{:#}`) puts
//! each row on a line of its own.
//!
//! Deviation: nine nodes are accepted, as on the wire; `libxia` stops at eight. An address with
//! rows of type nat counts as not valid here and is printed with all of its rows.

use std::fmt;
use std::str::FromStr;

use arrayvec::ArrayVec;

use super::{Address, Edge, NO_EDGES, Row};
use crate::numbers::{MAX_FAN_OUT, MAX_NODES};
use crate::principal_map::Names;
use crate::text::{Named, Scanner, TextError, TextErrorKind};

const EDGE_RADIX: u32 = 36;

impl Names {
    /// Reads an address. Only the text is checked, not the graph: see [`Address::check`].
    pub fn parse_address(&self, text: &str) -> Result<Address, TextError> {
        let mut scanner = Scanner::new(text);
        scanner.eat(b'!');
        let mut rows = ArrayVec::<Row, MAX_NODES>::new();
        loop {
            if rows.is_full() {
                return Err(scanner.error(TextErrorKind::TooManyRows));
            }
            rows.push(scanner.row(self)?);
            if !scanner.eat(b':') {
                break;
            }
            scanner.eat(b'\n');
        }
        scanner.end()?;
        // One to nine rows were pushed, so the only error cannot occur.
        Address::from_rows(&rows).map_err(|_| scanner.error(TextErrorKind::TooManyRows))
    }
}

/// Reads an address of well-known or numbered principals; see [`Names::parse_address`] for others.
impl FromStr for Address {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Address, TextError> {
        Names::new().parse_address(text)
    }
}

impl Scanner<'_> {
    fn row(&mut self, names: &Names) -> Result<Row, TextError> {
        let xid = self.xid(names)?;
        let mut row = Row { xid, edges: NO_EDGES };
        match self.peek() {
            Some(b'-') => self.edges(&mut row)?,
            Some(b':' | b'\n') | None => {}
            Some(_) => return Err(self.error(TextErrorKind::ExpectedEdgesOrRow)),
        }
        Ok(row)
    }

    fn edges(&mut self, row: &mut Row) -> Result<(), TextError> {
        self.skip();
        for count in 0..=MAX_FAN_OUT {
            match self.peek() {
                Some(b':' | b'\n') | None if count > 0 => return Ok(()),
                Some(byte) if count > 0 && !is_edge_start(byte) => {
                    return Err(self.error(TextErrorKind::ExpectedRow));
                }
                _ if count == MAX_FAN_OUT => return Err(self.error(TextErrorKind::TooManyEdges)),
                _ => row.edges[count] = self.edge()?,
            }
        }
        Ok(())
    }

    fn edge(&mut self) -> Result<Edge, TextError> {
        let chosen = self.eat(b'>');
        let edge = match self.peek() {
            Some(b'*') => Some(Edge::EMPTY),
            Some(byte) => char::from(byte).to_digit(EDGE_RADIX).map(|row| Edge::to(row as u8)),
            None => None,
        };
        let edge = edge.ok_or_else(|| self.error(TextErrorKind::ExpectedEdge))?;
        self.skip();
        Ok(if chosen { edge.chosen() } else { edge })
    }

    /// `[LF]` and the end.
    fn end(&mut self) -> Result<(), TextError> {
        self.eat(b'\n');
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error(TextErrorKind::ExpectedEnd)),
        }
    }
}

fn is_edge_start(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'*' | b'>')
}

impl Address {
    /// The text form with the principals' names from `names`.
    pub fn display<'a>(&'a self, names: &'a Names) -> Named<'a, Address> {
        Named { value: self, names }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.display(&Names::new()).fmt(f)
    }
}

impl fmt::Display for Named<'_, Address> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let valid = self.value.is_valid();
        if !valid {
            f.write_str("!")?;
        }
        for (index, row) in self.value.rows().iter().enumerate() {
            if index > 0 {
                f.write_str(if f.alternate() { ":\n" } else { ":" })?;
            }
            write!(f, "{}", row.xid.display(self.names))?;
            let shown = if valid {
                row.edges.iter().filter(|edge| !edge.is_empty()).count()
            } else {
                MAX_FAN_OUT
            };
            if shown > 0 {
                f.write_str("-")?;
                row.edges[..shown].iter().try_for_each(|edge| write_edge(f, *edge))?;
            }
        }
        Ok(())
    }
}

fn write_edge(f: &mut fmt::Formatter<'_>, edge: Edge) -> fmt::Result {
    if edge.is_chosen() {
        f.write_str(">")?;
    }
    let symbol = match edge.target() {
        None => '*',
        Some(row) => char::from_digit(row.into(), EDGE_RADIX).unwrap_or('+'),
    };
    write!(f, "{symbol}")
}
