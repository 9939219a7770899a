//! Renders the pages of the project site from Markdown, if the feature `site` is on.

#[cfg(feature = "site")]
mod markdown;
#[cfg(feature = "site")]
#[path = "html/section.rs"]
#[expect(dead_code, reason = "the fields are read by `Debug` alone")]
mod section;

#[cfg(not(feature = "site"))]
fn main() {}

/// Writes `OUT_DIR/NAME.rs` for every page `NAME.md`: a `PageText` with its HTML and its sections.
#[cfg(feature = "site")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    const FOLDER: &str = "src/site/pages";
    const SHOWN: [&str; 3] = ["Caddyfile", "Caddyfile-domains", "nginx.conf"];
    const PICTURES: [&str; 5] = [
        "backups.svg",
        "machines.svg",
        "ports.svg",
        "retries.svg",
        "states.svg",
    ];
    for used in [FOLDER, "src/site/pictures", "scripts/deploy"] {
        println!("cargo::rerun-if-changed={used}");
    }
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    for entry in std::fs::read_dir(FOLDER)? {
        let page = entry?;
        let mut text = std::fs::read_to_string(page.path())?;
        for name in SHOWN {
            let shown = std::fs::read_to_string(format!("scripts/deploy/{name}"))?;
            text = text.replace(&format!("{{{{{name}}}}}"), &format!("```ini\n{shown}```"));
        }
        // A block of HTML without an empty line stays as it is in Markdown.
        for name in PICTURES {
            let picture = std::fs::read_to_string(format!("src/site/pictures/{name}"))?;
            text = text.replace(&format!("{{{{{name}}}}}"), &picture);
        }
        let (html, sections) = markdown::render(&text);
        let file = out.join(page.file_name()).with_extension("rs");
        // `Debug` writes strings, arrays and structs as Rust does.
        std::fs::write(
            file,
            format!("PageText {{ html: {html:?}, sections: &{sections:?} }}"),
        )?;
    }
    Ok(())
}
