//! Descriptions that come later than the rest: what one entry of a list may hold, told by whoever the entry
//! is about.
//!
//! The rest of the schema leaves a place open by a container that accepts everything (`any`). The description
//! takes its place for the entries with one key, and every other entry stays as it is.

use std::sync::Arc;

use super::{Case, Kind, Members, Schema, Shape};
use crate::error::Errors;
use crate::suggest::list;

impl Schema {
    /// The same schema, in which the entries of the outermost list `list_name` with the first key `key` are
    /// described by `own` where they were open.
    ///
    /// ```
    /// use weft_config::{Schema, Tree};
    /// let whole = "version 1; list program { key name name; container config { any; } }";
    /// let whole = Schema::parse("node", whole).unwrap();
    /// let own = "version 1; container config { leaf log number { range 1 9; } }";
    /// let whole = whole.described("program", "a", &Schema::parse("a", own).unwrap()).unwrap();
    /// let wrong = Tree::parse("t", "version 1; program a { config { log 10; } }").unwrap();
    /// assert!(whole.check(&wrong, None).unwrap_err().to_string().contains("must be 1 to 9"));
    /// let other = Tree::parse("t", "version 1; program b { config { log 10; } }").unwrap();
    /// assert_eq!(whole.check(&other, None), Ok(()));
    /// ```
    ///
    /// # Errors
    /// `own` describes what is not open, with its place; there is no such list.
    pub fn described(&self, list_name: &str, key: &str, own: &Self) -> Result<Self, Errors> {
        let mut top = Members::clone(&self.top);
        let place = top.kinds.iter().position(|kind| kind.name == list_name);
        let mut kind = place.map(|place| Kind::clone(&top.kinds[place]));
        let (Some(place), Some(Kind { shape: Shape::List(entries), .. })) = (place, &mut kind)
        else {
            let first = own.top.kinds.first().map(|kind| kind.location.clone());
            let sentence = format!("there is no list `{list_name}` to describe an entry of");
            return first.map_or_else(|| Ok(self.clone()), |at| Err(at.error(sentence).into()));
        };
        let members = replaced(entries.inside(Some(key)), own)?;
        match entries.cases.iter_mut().find(|case| case.key == key) {
            Some(case) => case.members = Arc::new(members),
            None => {
                let (key, help) = (key.to_owned(), String::new());
                entries.cases.push(Case { key, help, members: Arc::new(members) });
            }
        }
        if let Some(kind) = kind {
            top.has_secret |= kind.has_secret();
            top.kinds[place] = Arc::new(kind);
        }
        Ok(Self { top: Arc::new(top) })
    }
}

/// `common` with the open containers that `own` describes.
fn replaced(common: &Members, own: &Schema) -> Result<Members, Errors> {
    let mut members = common.clone();
    let is_open = |kind: &Kind| match &kind.shape {
        Shape::Container(inside) => inside.any && inside.kinds.is_empty(),
        _ => false,
    };
    for kind in &own.top.kinds {
        let Some(open) =
            members.kinds.iter_mut().find(|open| open.name == kind.name && is_open(open))
        else {
            let open = common.kinds.iter().filter(|kind| is_open(kind));
            let open: Vec<&str> = open.map(|kind| kind.name.as_str()).collect();
            let sentence = format!(
                "`{}` is not open to a description here: describe {}",
                kind.name,
                if open.is_empty() { "nothing".to_owned() } else { list(&open) }
            );
            return Err(kind.location.error(sentence).into());
        };
        if !matches!(kind.shape, Shape::Container(_)) {
            let sentence = format!("`{0}` is a block: describe it by `container {0}`", kind.name);
            return Err(kind.location.error(sentence).into());
        }
        *open = Arc::clone(kind);
        members.has_secret |= kind.has_secret();
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    const WHOLE: &str = "version 1; leaf node name; list program { key name name; \
                         words execute; container config { any; } }";
    const OWN: &str = "version 1; container config { leaf log number { range 1 9; help \"how many\"; } \
                       leaf key text { secret; } }";

    fn schema(text: &str) -> Schema {
        Schema::parse("s", text).unwrap()
    }

    fn described() -> Schema {
        schema(WHOLE).described("program", "a", &schema(OWN)).unwrap()
    }

    #[test]
    fn an_entry_is_completed_edited_checked_and_masked_by_its_own_description() {
        let schema = described();
        let tree = Tree::parse("t", "version 1; program a { config { log 7; key x; } }").unwrap();
        let offers = schema.complete(&tree, "set program a config ").candidates;
        let names: Vec<&str> = offers.iter().map(|offer| offer.text.as_str()).collect();
        assert!(names.contains(&"log") && names.contains(&"key"), "{names:?}");
        let edited = schema.edit(&tree, "set program a config log 8").unwrap();
        assert!(edited.text().contains("log 8;") && !edited.text().contains("log 7"));
        let refused = schema.edit(&tree, "set program a config log 10").unwrap_err().to_string();
        assert!(refused.starts_with("command:1:26: "), "{refused}");
        assert!(schema.mask(&tree).text().contains("key ********;"));
        // Another one is open as before.
        assert!(schema.edit(&tree, "set program b config log 10 times").is_ok());
    }

    #[test]
    fn a_new_description_takes_the_place_of_the_one_before_in_the_whole() {
        let other = schema("version 1; container config { flag quiet; }");
        let again = schema(WHOLE).described("program", "a", &other).unwrap();
        assert!(again.edit(&Tree::empty(), "set program a config quiet").is_ok());
        assert!(again.edit(&Tree::empty(), "set program a config log 7").is_err());
    }

    #[test]
    fn what_is_not_open_cannot_be_described() {
        for (own, part) in [
            (
                "version 1; leaf node name;",
                "s:1:17: `node` is not open to a description here: describe `config`",
            ),
            ("version 1; words execute;", "`execute` is not open"),
            ("version 1; leaf config name;", "`container config`"),
        ] {
            let error = schema(WHOLE).described("program", "a", &schema(own)).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
        let error = schema(WHOLE).described("agent", "a", &schema(OWN)).unwrap_err();
        assert!(error.to_string().contains("no list `agent`"), "{error}");
    }
}
