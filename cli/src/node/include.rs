//! Reading a configuration: the file that an operator names, and those that it includes.
//!
//! Reference: [`weft_config::Loader`], which puts them together.

use std::fs;
use std::path::Path;

use weft_config::Loader;

/// The text of a configuration, with the files that it includes in their places.
///
/// A file that includes nothing is returned as it is. Otherwise the text has the canonical form, so
/// mistakes that are found in it later are shown with its lines.
///
/// # Errors
/// A file cannot be read, or has a mistake of form, with its place.
pub(crate) fn read(path: &Path) -> Result<String, String> {
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
    Ok(if included { tree.to_string() } else { text })
}
