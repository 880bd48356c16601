//! State that comes in pages: `show` of `rib/1.0`, `bgp/1.0` and `protocol/1.0`, so that a full table stalls neither who is
//! asked nor who reads. Each page is printed as it comes, as JSON too, and no two are kept at once.

use std::io::{self, ErrorKind, Write};

use serde_json::Value;

use super::table::{Align, lines};
use crate::output::{self, Outcome};

/// Prefixes in a page.
pub(super) const PAGE: u32 = 1000;

/// A page of what is shown.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The names of the columns, where whoever was asked knows them.
    pub(super) columns: Vec<String>,
    pub(super) items: Vec<Value>,
    /// Behind what the next page begins; without it this is the last.
    pub(super) next: Option<String>,
}

impl Page {
    /// An answer of the RIB or of BGP: a list if it is about one prefix, which is a page of its own.
    pub(super) fn of_routes(answer: Value) -> Self {
        let (items, next) = match answer {
            Value::Array(items) => (items, None),
            mut page => (taken(page["routes"].take()), page["next"].as_str().map(str::to_owned)),
        };
        Self { columns: Vec::new(), items, next }
    }
}

/// Prints routes, page by page: `rows` makes the rows of one prefix.
pub(super) fn print_routes(
    is_json: bool,
    columns: &[(&str, Align)],
    rows: impl Fn(&Value) -> Vec<Vec<String>>,
    ask: impl FnMut(Option<String>) -> Result<Page, String>,
) -> Outcome {
    let table = |page: &Page| {
        let rows: Vec<_> = page.items.iter().flat_map(&rows).collect();
        lines(columns, &rows)
    };
    print("routes", is_json, table, ask)
}

/// Prints all pages of `ask`, which is told behind what to go on: as one JSON document with the member `name`, or as lines
/// of `table`, whose first has the names of the columns.
pub(super) fn print(
    name: &str,
    is_json: bool,
    table: impl Fn(&Page) -> Vec<String>,
    ask: impl FnMut(Option<String>) -> Result<Page, String>,
) -> Outcome {
    let mut out = io::stdout().lock();
    let printed = match is_json {
        true => each(ask, Document::new(name, &mut out)),
        false => each(ask, Table { out: &mut out, make: table, is_first: true }),
    };
    match printed {
        Ok(()) => Ok(0),
        // Nobody reads any more: the other pages need not be made.
        Err(Failed::Writing(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(0),
        Err(Failed::Writing(error)) => Err(output::unwritten(&error)),
        Err(Failed::Asking(why)) => Err(why),
    }
}

/// Why not all was printed.
#[derive(Debug)]
enum Failed {
    Asking(String),
    Writing(io::Error),
}

/// Where pages go.
trait Printer {
    /// Prints one, and keeps nothing of it.
    fn page(&mut self, page: Page) -> io::Result<()>;

    /// All pages have been printed, or only those before one that `failed`.
    fn end(self, is_whole: bool) -> io::Result<()>;
}

fn each(
    mut ask: impl FnMut(Option<String>) -> Result<Page, String>,
    mut printer: impl Printer,
) -> Result<(), Failed> {
    let mut from = None;
    loop {
        let mut page = match ask(from) {
            Ok(page) => page,
            Err(why) => {
                printer.end(false).map_err(Failed::Writing)?;
                return Err(Failed::Asking(why));
            }
        };
        from = page.next.take();
        printer.page(page).map_err(Failed::Writing)?;
        if from.is_none() {
            return printer.end(true).map_err(Failed::Writing);
        }
    }
}

/// Lines for people.
struct Table<W, F> {
    out: W,
    make: F,
    is_first: bool,
}

impl<W: Write, F: Fn(&Page) -> Vec<String>> Printer for Table<W, F> {
    fn page(&mut self, page: Page) -> io::Result<()> {
        // The names of the columns stand on top once.
        for line in (self.make)(&page).iter().skip(usize::from(!self.is_first)) {
            writeln!(self.out, "{line}")?;
        }
        self.is_first = false;
        self.out.flush()
    }

    fn end(self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

/// A JSON document with one member, a list, written as [`output::json_lines`] would write it whole.
struct Document<'a, W> {
    name: &'a str,
    out: W,
    /// How many items have been written; none before the first page.
    written: Option<u64>,
}

impl<'a, W: Write> Document<'a, W> {
    fn new(name: &'a str, out: W) -> Self {
        Self { name, out, written: None }
    }
}

impl<W: Write> Printer for Document<'_, W> {
    fn page(&mut self, page: Page) -> io::Result<()> {
        let mut text = String::new();
        if self.written.is_none() {
            text.push_str(&format!("{{\n  {}: [", Value::from(self.name)));
        }
        let written = self.written.get_or_insert(0);
        for item in &page.items {
            text.push_str(if *written == 0 { "\n    " } else { ",\n    " });
            // Text within JSON has no line breaks of its own.
            text.push_str(&format!("{item:#}").replace('\n', "\n    "));
            *written += 1;
        }
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }

    fn end(mut self, is_whole: bool) -> io::Result<()> {
        let end = match (is_whole, self.written) {
            (true, Some(0)) => "]\n}\n",
            (true, _) => "\n  ]\n}\n",
            // What is not whole is no JSON, so that no program takes it for everything.
            (false, Some(_)) => "\n",
            (false, None) => "",
        };
        self.out.write_all(end.as_bytes())?;
        self.out.flush()
    }
}

/// The items of a list.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn taken(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// A value as people write it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The mark of what is used.
pub(super) fn star(is_used: &Value) -> String {
    if *is_used == Value::Bool(true) { "*" } else { "" }.to_owned()
}

/// What an answer in JSON says.
pub(super) fn parse(target: &str, json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("{target}: its answer is no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// So many pages of three prefixes; the one with the number `fails` does not come.
    fn ask(pages: u32, fails: Option<u32>) -> impl FnMut(Option<String>) -> Result<Page, String> {
        let mut number = 0;
        move |from| {
            assert_eq!(from, (number > 0).then(|| number.to_string()), "pages follow one another");
            if fails == Some(number) {
                return Err("it is gone".to_owned());
            }
            let items = (0..3).map(|place| item(number * 3 + place)).collect();
            number += 1;
            let next = (number < pages).then(|| number.to_string());
            Ok(Page { columns: Vec::new(), items, next })
        }
    }

    fn item(number: u32) -> Value {
        json!({ "prefix": format!("\"\n{number}\n"), "paths": [{ "med": number, "none": [] }] })
    }

    fn document(
        name: &str,
        ask: impl FnMut(Option<String>) -> Result<Page, String>,
    ) -> (String, Result<(), Failed>) {
        let mut out = Vec::new();
        let result = each(ask, Document::new(name, &mut out));
        (String::from_utf8(out).unwrap(), result)
    }

    #[test]
    fn pages_make_the_document_that_would_be_printed_whole() {
        for pages in [1, 2, 500] {
            let (text, result) = document("routes", ask(pages, None));
            assert!(result.is_ok());
            let all: Vec<_> = (0..pages * 3).map(item).collect();
            let whole = output::json_lines(&json!({ "routes": all })).concat();
            assert_eq!(text, whole + "\n");
        }
    }

    #[test]
    fn a_document_without_items_is_whole_too() {
        let empty = |next: Option<&str>| Page { next: next.map(str::to_owned), ..Page::default() };
        let (text, _) = document("a\"b", |_| Ok(empty(None)));
        assert_eq!(text, format!("{:#}\n", json!({ "a\"b": [] })));
        // Nothing may be left of a page.
        let (text, _) = document("routes", |from| match from {
            None => Ok(empty(Some("x"))),
            Some(_) => Ok(Page { items: vec![item(7)], ..Page::default() }),
        });
        assert_eq!(text, format!("{:#}\n", json!({ "routes": [item(7)] })));
    }

    #[test]
    fn a_page_is_written_before_the_next_is_asked_for() {
        /// A file that others look into.
        struct Shared<'a>(&'a std::cell::RefCell<Vec<u8>>);
        impl Write for Shared<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let out = std::cell::RefCell::new(Vec::new());
        let (mut ask, mut asked) = (ask(4, None), 0);
        let watched = |from| {
            let text = String::from_utf8(out.borrow().clone()).unwrap();
            assert_eq!(text.matches("\"prefix\"").count(), asked * 3);
            asked += 1;
            ask(from)
        };
        each(watched, Document::new("routes", Shared(&out))).unwrap();
        assert_eq!(asked, 4);
    }

    #[test]
    fn a_document_that_is_not_whole_is_no_json() {
        let (text, result) = document("routes", ask(4, Some(2)));
        assert!(matches!(result, Err(Failed::Asking(why)) if why == "it is gone"));
        assert_eq!(text.matches("\"prefix\"").count(), 6, "what came is there");
        assert!(text.ends_with("}\n"), "{text}");
        assert!(serde_json::from_str::<Value>(&text).is_err());
        let (text, result) = document("routes", ask(4, Some(0)));
        assert!(text.is_empty() && result.is_err(), "{text}");
    }

    #[test]
    fn nobody_is_asked_once_nobody_reads() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let table = |page: &Page| page.items.iter().map(ToString::to_string).collect();
        let (mut ask, mut asked) = (ask(4, None), 0);
        let counted = |from| {
            asked += 1;
            ask(from)
        };
        let printed = each(counted, Table { out: Closed, make: table, is_first: false });
        assert!(matches!(printed, Err(Failed::Writing(_))));
        assert_eq!(asked, 1);
    }

    #[test]
    fn the_names_of_columns_stand_on_top_once() {
        let mut out = Vec::new();
        let table = |page: &Page| {
            let all = page.items.iter().map(|item| item["paths"][0]["med"].to_string());
            std::iter::once("MED".to_owned()).chain(all).collect()
        };
        each(ask(2, None), Table { out: &mut out, make: table, is_first: true }).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "MED\n0\n1\n2\n3\n4\n5\n");
    }
}
