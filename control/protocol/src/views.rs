//! What operators see of a protocol: tables, by one command for all protocols.

use serde_json::Value;
use weft_base::Instant;
use weft_xrl::{Called, Encoded, Output, XrlError};

use crate::interface::{self, Call, ShowReply, View, ViewsReply};

/// Rows in a page, if nobody says how many.
const PAGE: usize = 1000;
/// Rows in a page at most.
const LONGEST: usize = 10_000;

/// A table, or the part of one that was asked for.
#[derive(Debug, Default)]
pub struct Table {
    /// The names of the columns, in order.
    pub columns: &'static [&'static str],
    /// An object for each row.
    pub rows: Vec<Value>,
    /// Behind which row the next page begins; none if this is the last.
    pub next: Option<String>,
}

impl Table {
    /// A page of a table that has a key for each row: those behind `from`, in their order. Only the rows of the page
    /// are made.
    pub fn page<K: ToString, R>(
        columns: &'static [&'static str],
        rows: impl Iterator<Item = (K, R)>,
        at_most: usize,
        make: impl Fn(&K, R) -> Value,
    ) -> Self {
        let mut rows = rows.peekable();
        let mut table = Self { columns, ..Self::default() };
        while let Some((key, row)) = rows.next() {
            table.rows.push(make(&key, row));
            if table.rows.len() == at_most {
                table.next = rows.peek().map(|_| key.to_string());
                break;
            }
        }
        table
    }
}

/// A component that can be shown.
pub trait Show {
    /// The names of the views, and what each is; the first is what people want to see most.
    const VIEWS: &'static [(&'static str, &'static str)];

    /// One of the views as it is now, whole or page by page.
    ///
    /// # Errors
    /// What was asked for makes no sense.
    fn table(
        &self,
        now: Instant,
        view: &str,
        from: Option<&str>,
        at_most: usize,
    ) -> Result<Table, XrlError>;
}

/// Answers a call of an operator.
pub(crate) fn show(component: &impl Show, now: Instant, mut called: Called) -> Output {
    let result = called.read().and_then(|call| answer(component, now, call));
    Output::Answer { id: called.id, result }
}

fn answer<T: Show>(component: &T, now: Instant, call: Call) -> Result<Encoded, XrlError> {
    match call {
        Call::Views(_) => {
            let view = |(name, help): &(&str, &str)| View {
                name: (*name).to_owned(),
                help: (*help).to_owned(),
            };
            Ok(Encoded::new(ViewsReply { views: T::VIEWS.iter().map(view).collect() }))
        }
        Call::Show(interface::Show { view, from, at_most }) => {
            if !T::VIEWS.iter().any(|(name, _)| *name == view) {
                let names: Vec<_> = T::VIEWS.iter().map(|(name, _)| *name).collect();
                let view = view.escape_debug();
                let note = format!("there is no view `{view}`: say {}", names.join(" or "));
                return Err(XrlError::bad_args(note));
            }
            let at_most = at_most.map_or(PAGE, |most| (most as usize).clamp(1, LONGEST));
            let Table { columns, rows, next } =
                component.table(now, &view, from.as_deref(), at_most)?;
            let columns = columns.iter().map(|name| (*name).to_owned()).collect();
            Ok(Encoded::new(ShowReply { columns, rows: Value::Array(rows).to_string(), next }))
        }
    }
}
