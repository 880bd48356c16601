//! Reading a configuration: the file that an operator names, and those that it includes.
//!
//! Reference: [`weft_config::Loader`], which puts them together.

use std::fs;
use std::path::Path;

use weft_config::{Loader, Tree};

/// The text of a configuration, with the files that it includes in their places.
pub(crate) struct Loaded {
    /// That of the file itself if it includes nothing. Otherwise the text has the canonical form.
    pub(crate) text: String,
    /// What was put together, if the text is not that of the file: it knows where everything was written.
    pub(crate) parts: Option<Tree>,
}

/// Reads a configuration and the files that it includes.
///
///
/// # Errors
/// A file cannot be read, or has a mistake of form, with its place.
pub(crate) fn read(path: &Path) -> Result<Loaded, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read the file {}: {error}", path.display()))?;
    let mut loader = Loader::new(path);
    loader.supply(Ok(text.clone().into_bytes()));
    let mut included = false;
    while let Some(path) = loader.needs() {
        included = true;
        let bytes = fs::read(path).map_err(|error| error.to_string());
        loader.supply(bytes);
    }
    let tree = loader.finish().map_err(|errors| errors.to_string())?;
    Ok(match included {
        true => Loaded { text: tree.text(), parts: Some(tree) },
        false => Loaded { text, parts: None },
    })
}
