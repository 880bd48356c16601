//! A configuration in several files: `include FILE;` stands for the statements of that file.
//!
//! The loader does no I/O: it says which file it needs, and is given its bytes. Whoever reads the files
//! for it does so with the rights of the person who asked, since mistakes show lines of them.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::document::{Document, MAX_SIZE};
use crate::error::Errors;
use crate::source::{Location, Source, Span, shown};
use crate::statement::Statement;
use crate::tree::{Comments, Level, Node, Tree, is_version};

/// The statement that names another file.
const INCLUDE: &str = "include";
/// The most files.
const MAX_FILES: usize = 256;
/// How deep files may include others.
const MAX_NESTING: usize = 8;
/// The most bytes of all files together, those that are included twice counted twice.
const MAX_TOTAL: usize = MAX_SIZE;

/// Reads a configuration and what it includes.
///
/// ```
/// use std::path::Path;
/// use weft_config::Loader;
///
/// let mut loader = Loader::new(Path::new("/etc/weft/node.conf"));
/// while let Some(path) = loader.needs() {
///     let text = match path.to_str() {
///         Some("/etc/weft/node.conf") => "version 1; xia { include xia.conf; }",
///         _ => "version 1; echo off;",
///     };
///     loader.supply(Ok(text.into()));
/// }
/// let tree = loader.finish().unwrap();
/// assert_eq!(tree.to_string(), "version 1;\nxia {\n    echo off;\n}\n");
/// ```
#[derive(Debug)]
pub struct Loader {
    first: PathBuf,
    /// Files still to be read, with the places that include them.
    needed: VecDeque<(PathBuf, Location)>,
    files: BTreeMap<PathBuf, Document>,
    errors: Option<Errors>,
}

impl Loader {
    /// Begins with a file.
    pub fn new(path: &Path) -> Self {
        let first = normal(path);
        let nowhere = Location::new(&Source::new(&name(&first), ""), Span::default());
        let needed = VecDeque::from([(first.clone(), nowhere)]);
        Self { first, needed, files: BTreeMap::new(), errors: None }
    }

    /// The file that has to be read next; `None` if it needs no more.
    pub fn needs(&self) -> Option<&Path> {
        self.needed.front().map(|(path, _)| path.as_path())
    }

    /// Takes the bytes of the file that it needs, or why they cannot be read.
    pub fn supply(&mut self, bytes: Result<Vec<u8>, String>) {
        let Some((path, place)) = self.needed.pop_front() else { return };
        let bytes = match bytes {
            Ok(bytes) => bytes,
            Err(reason) => {
                let text = format!("cannot read `{}`: {reason}", shown(&name(&path)));
                return self.add(place.error(text).into());
            }
        };
        match Document::parse_bytes(&name(&path), &bytes) {
            Ok(document) => {
                self.request(&path, &document, document.statements());
                self.files.insert(path, document);
            }
            Err(errors) => self.add(errors),
        }
    }

    /// The configuration with everything that it includes.
    ///
    /// # Errors
    /// The mistakes of the form in all files, files that cannot be read, include one another in a
    /// circle, or are too many.
    pub fn finish(mut self) -> Result<Tree, Errors> {
        if let Some(errors) = self.errors.take() {
            return Err(errors);
        }
        let mut expansion = Expansion { files: &self.files, open: Vec::new(), total: 0 };
        let nowhere = Location::new(&Source::new(&name(&self.first), ""), Span::default());
        let root = expansion.file(&self.first, &nowhere)?;
        let tree = Tree { root: Arc::new(root) };
        tree.check_depth()?;
        Ok(tree)
    }

    fn add(&mut self, more: Errors) {
        match &mut self.errors {
            Some(errors) => errors.append(more),
            None => self.errors = Some(more),
        }
    }

    /// Notes the files that statements include.
    fn request(&mut self, path: &Path, document: &Document, statements: &[Statement]) {
        for statement in statements {
            if let Some(block) = statement.block() {
                self.request(path, document, block);
            }
            if statement.keyword() != INCLUDE {
                continue;
            }
            let place = document.location(statement.span());
            let ([_, file], None) = (statement.words(), statement.block()) else {
                self.add(place.error("`include` takes the path of one file: write it").into());
                continue;
            };
            let place = document.location(file.span());
            let file = beside(path, file.text());
            if self.files.contains_key(&file) || self.needed.iter().any(|(path, _)| *path == file) {
                continue;
            }
            if file == path {
                continue; // Reported as a circle.
            }
            if 1 + self.files.len() + self.needed.len() >= MAX_FILES {
                let text = format!("these are more than {MAX_FILES} files: put some together");
                return self.add(place.error(text).into());
            }
            self.needed.push_back((file, place));
        }
    }
}

/// Putting the statements of files where they are included.
struct Expansion<'f> {
    files: &'f BTreeMap<PathBuf, Document>,
    /// The files that include the present one, outermost first.
    open: Vec<PathBuf>,
    total: usize,
}

impl Expansion<'_> {
    /// The statements of a file that is included at `place`; the version stays in the outermost.
    fn file(&mut self, path: &Path, place: &Location) -> Result<Level, Errors> {
        if let Some(circle) = self.open.iter().position(|open| open == path) {
            let names: Vec<String> = self.open[circle..].iter().map(|path| name(path)).collect();
            let text = format!(
                "the files include one another in a circle: {} and this one again",
                names.join(", ")
            );
            return Err(place.error(text).into());
        }
        if self.open.len() > MAX_NESTING {
            let text = format!("files include others deeper than {MAX_NESTING}: include fewer");
            return Err(place.error(text).into());
        }
        let Some(document) = self.files.get(path) else {
            return Err(place.error("this file was not read").into());
        };
        self.total += document.source().text().len();
        if self.total > MAX_TOTAL {
            let text = format!("the files have more than {MAX_TOTAL} bytes: include fewer");
            return Err(place.error(text).into());
        }
        let tree = Tree::from_document(document.clone())?;
        self.open.push(path.to_owned());
        let mut level = self.level(path, &tree.root)?;
        self.open.pop();
        if !self.open.is_empty() {
            level.nodes.retain(|node| !is_version(node));
        }
        Ok(level)
    }

    fn level(&mut self, path: &Path, old: &Level) -> Result<Level, Errors> {
        let mut nodes = Vec::with_capacity(old.nodes.len());
        let mut tail = old.tail.clone();
        for node in &old.nodes {
            if node.keyword() == INCLUDE
                && let Some(file) = node.words().get(1)
            {
                let mut included = self.file(&beside(path, file.text()), &node.location_of(1))?;
                head(&mut included, node.above());
                nodes.append(&mut included.nodes);
                tail.splice(0..0, included.tail);
                continue;
            }
            match &node.block {
                Some(block) if holds_include(block) => {
                    let block = Some(Arc::new(self.level(path, block)?));
                    nodes.push(Arc::new(Node { block, ..Node::clone(node) }));
                }
                _ => nodes.push(Arc::clone(node)),
            }
        }
        Ok(Level { nodes, tail })
    }
}

fn holds_include(level: &Level) -> bool {
    level
        .nodes
        .iter()
        .any(|node| node.keyword() == INCLUDE || node.block.as_deref().is_some_and(holds_include))
}

/// Puts the comments above an `include` above what it stands for.
fn head(level: &mut Level, above: &[Box<str>]) {
    match level.nodes.first_mut() {
        Some(first) if !above.is_empty() => {
            let comments =
                Arc::make_mut(first).comments.get_or_insert_with(Box::<Comments>::default);
            comments.above.splice(0..0, above.iter().cloned());
        }
        Some(_) => {}
        None => {
            level.tail.splice(0..0, above.iter().cloned());
        }
    }
}

/// The path of a file that another one names.
fn beside(path: &Path, file: &str) -> PathBuf {
    normal(&path.parent().unwrap_or(Path::new("")).join(file))
}

/// The path without `.`. What `..` leads to cannot be told from names where there are symbolic links, so
/// it stays.
fn normal(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(files: &[(&str, &str)]) -> Result<Tree, Errors> {
        let mut loader = Loader::new(Path::new("a"));
        let mut reads = 0;
        while let Some(path) = loader.needs() {
            let file = files.iter().find(|(name, _)| Path::new(name) == path);
            let bytes = file.map(|(_, text)| text.as_bytes().to_vec());
            loader.supply(bytes.ok_or_else(|| "there is no such file".to_owned()));
            reads += 1;
            assert!(reads <= MAX_FILES);
        }
        loader.finish()
    }

    fn error(files: &[(&str, &str)]) -> String {
        load(files).unwrap_err().to_string()
    }

    #[test]
    fn statements_of_other_files_stand_where_they_are_included() {
        let files = [
            ("a", "version 1;\nx;\n# Both.\ninclude sub/b;\ny { include sub/b; }\nz;"),
            ("sub/b", "version 1; include ./c; b;"),
            ("sub/c", "version 1; c { d; }\n# End of c.\n"),
        ];
        assert_eq!(
            load(&files).unwrap().to_string(),
            "version 1;\nx;\n# Both.\nc {\n    d;\n}\nb;\ny {\n    c {\n        d;\n    }\n    b;\n    \
             # End of c.\n}\nz;\n# End of c.\n"
        );
    }

    #[test]
    fn mistakes_name_their_file_and_line() {
        let first = ("a", "version 1;\ninclude b;\ninclude c;");
        let text = error(&[first, ("b", "version 1;\nx {"), ("c", "version 2;")]);
        assert!(text.starts_with("b:2:4: the text ends inside a block"), "{text}");
        let text = error(&[first, ("b", "version 1;"), ("c", "\nx;")]);
        assert!(text.starts_with("c:2:1: the first statement must be the version"), "{text}");
        let text = error(&[first, ("b", "version 1;")]);
        assert!(text.starts_with("a:3:9: cannot read `c`: there is no such file"), "{text}");
        assert!(error(&[]).starts_with("a:1:1: cannot read `a`"));
        for wrong in ["include;", "include b c;", "include b { x; }"] {
            let text = error(&[("a", &format!("version 1; {wrong}")), ("b", "version 1;")]);
            assert!(text.starts_with("a:1:12: `include` takes the path of one file"), "{text}");
        }
    }

    #[test]
    fn mistakes_of_meaning_are_shown_in_the_file_too() {
        let files = [("a", "version 1; include b;"), ("b", "version 1;\n\n  colour red;")];
        let tree = load(&files).unwrap();
        let schema = crate::Schema::parse("s", "version 1; leaf rate rate;").unwrap();
        let text = schema.check(&tree, None).unwrap_err().to_string();
        assert!(text.starts_with("b:3:3: unknown statement `colour`"), "{text}");
    }

    #[test]
    fn circles_and_excesses_are_refused_where_they_begin() {
        let text = error(&[("a", "version 1; include b;"), ("b", "version 1;\ninclude a;")]);
        assert!(
            text.starts_with("b:2:9: the files include one another in a circle: a, b and"),
            "{text}"
        );
        assert!(error(&[("a", "version 1; x { include a; }")]).contains("in a circle: a and"));

        let deep: Vec<_> =
            (0..20).map(|n| (format!("f{n}"), format!("version 1; include f{};", n + 1))).collect();
        let mut files = vec![("a", "version 1; include f0;")];
        files.extend(deep.iter().map(|(name, text)| (name.as_str(), text.as_str())));
        files.push(("f20", "version 1;"));
        assert!(error(&files).starts_with("f7:1:20: files include others deeper than 8"));

        let many: String = (0..MAX_FILES + 1).map(|n| format!("include f{n};")).collect();
        assert!(error(&[("a", &format!("version 1; {many}"))]).contains("more than 256 files"));

        // Each file includes the next one many times.
        let text = |next: &str| format!("version 1; {}", format!("include {next};").repeat(1000));
        let files =
            [("a", text("b")), ("b", text("c")), ("c", text("d")), ("d", "version 1;".to_owned())];
        let files: Vec<_> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        assert!(error(&files).contains("the files have more than"));
    }

    proptest! {
        #[test]
        fn any_files_are_loaded_or_refused(texts in prop::collection::vec("(include [abc];|x \\{|\\}|y;|# z\n){0,6}", 3)) {
            let texts: Vec<String> = texts.iter().map(|text| format!("version 1; {text}")).collect();
            if let Ok(tree) = load(&[("a", &texts[0]), ("b", &texts[1]), ("c", &texts[2])]) {
                prop_assert_eq!(Tree::parse("t", &tree.to_string()).unwrap(), tree.clone());
                prop_assert!(!tree.to_string().contains("include"));
            }
        }
    }
}
