//! Renders the pages of the project site from Markdown, if the feature `site` is on.

#[cfg(feature = "site")]
#[path = "html/colours.rs"]
mod colours;
#[cfg(feature = "site")]
mod markdown;

#[cfg(not(feature = "site"))]
fn main() {}

/// Writes `OUT_DIR/NAME.rs` for every page `NAME.md`: an expression of its HTML and its sections.
#[cfg(feature = "site")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FOLDER: &str = "src/site/pages";
    println!("cargo::rerun-if-changed={FOLDER}");
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    for entry in std::fs::read_dir(FOLDER)? {
        let page = entry?;
        let (html, sections) = markdown::render(&std::fs::read_to_string(page.path())?);
        let file = out.join(page.file_name()).with_extension("rs");
        // `Debug` writes strings and arrays as Rust does.
        std::fs::write(file, format!("({html:?}, &{sections:?})"))?;
    }
    Ok(())
}
