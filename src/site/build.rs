//! Renders the pages of the project site from Markdown, if the feature `site` is on.

#[cfg(feature = "site")]
mod markdown;
#[cfg(feature = "site")]
#[path = "html/section.rs"]
#[expect(dead_code, reason = "the fields are read by `Debug` alone")]
mod section;

#[cfg(not(feature = "site"))]
fn main() {}

/// Writes `OUT_DIR/pages.rs`: an array with a `PageEntry` for each page in `pages.txt`.
#[cfg(feature = "site")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    const LIST: &str = "src/site/pages.txt";
    for used in [LIST, "src/site/pages", PICTURES, "scripts/deploy"] {
        println!("cargo::rerun-if-changed={used}");
    }
    let list = std::fs::read_to_string(LIST)?;
    let (mut group, mut entries) = ("", String::new());
    for line in list.lines() {
        let [path, name, about] = line.split(" | ").collect::<Vec<_>>()[..] else {
            group = line;
            continue;
        };
        let text = match path.strip_prefix("/docs") {
            Some("") => render("/index")?,
            Some(file) => render(file)?,
            None => String::new(),
        };
        // `Debug` writes strings, arrays and structs as Rust does.
        entries += &format!(
            "PageEntry {{ path: {path:?}, name: {name:?}, group: {group:?}, about: {about:?}, text: &[{text}] }},"
        );
    }
    let out = std::env::var("OUT_DIR")?;
    Ok(std::fs::write(
        format!("{out}/pages.rs"),
        format!("&[{entries}]"),
    )?)
}

#[cfg(feature = "site")]
const PICTURES: &str = "src/site/pictures";

/// A `PageText` with the HTML of a page and its sections.
#[cfg(feature = "site")]
fn render(file: &str) -> std::io::Result<String> {
    const SHOWN: [&str; 3] = ["Caddyfile", "Caddyfile-domains", "nginx.conf"];
    let mut text = std::fs::read_to_string(format!("src/site/pages{file}.md"))?;
    for name in SHOWN {
        let shown = std::fs::read_to_string(format!("scripts/deploy/{name}"))?;
        text = text.replace(&format!("{{{{{name}}}}}"), &format!("```ini\n{shown}```"));
    }
    // A block of HTML without an empty line stays as it is in Markdown.
    for picture in std::fs::read_dir(PICTURES)? {
        let picture = picture?;
        let gap = format!("{{{{{}}}}}", picture.file_name().display());
        text = text.replace(&gap, &std::fs::read_to_string(picture.path())?);
    }
    let (html, sections) = markdown::render(&text);
    Ok(format!(
        "PageText {{ html: {html:?}, sections: &{sections:?} }}"
    ))
}
