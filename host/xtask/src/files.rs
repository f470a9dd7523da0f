//! Files of the repository: where they are, and generated ones that must not differ from what would be written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The text of a file of the repository.
pub(crate) fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| format!("reading {path}"))
}

/// A generated file: path from the root and text.
pub(crate) struct Generated {
    /// Path from the root.
    pub(crate) path: String,
    /// What stands in it.
    pub(crate) text: String,
}

/// Writes generated files, and removes the others of their folder with the same ending, which nothing generates any
/// more.
pub(crate) fn write(files: &[Generated]) -> Result<()> {
    for stale in differing(files)? {
        match files.iter().find(|file| file.path == stale) {
            Some(file) => {
                let path = root().join(&file.path);
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
                }
                std::fs::write(&path, &file.text).with_context(|| format!("writing {}", file.path))?;
            }
            None => std::fs::remove_file(root().join(&stale)).with_context(|| format!("removing {stale}"))?,
        }
        println!("{stale}");
    }
    Ok(())
}

/// Fails if generated files are not what would be written.
pub(crate) fn check(files: &[Generated], regenerate: &str) -> Result<()> {
    let stale = differing(files)?;
    if !stale.is_empty() {
        bail!("out of date: {}; run `{regenerate}` and commit the result", stale.join(", "));
    }
    Ok(())
}

/// Paths of generated files that are missing, differ, or are no longer generated.
fn differing(files: &[Generated]) -> Result<Vec<String>> {
    let mut stale = BTreeSet::new();
    for file in files {
        let path = root().join(&file.path);
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&file.text) {
            stale.insert(file.path.clone());
        }
        let Some(folder) = path.parent().filter(|folder| folder.is_dir()) else { continue };
        for entry in std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
            let found = entry?.path();
            let known = files.iter().any(|file| root().join(&file.path) == found);
            if !known && found.extension() == path.extension() {
                stale.insert(found.strip_prefix(root()).unwrap_or(&found).display().to_string());
            }
        }
    }
    Ok(stale.into_iter().collect())
}
