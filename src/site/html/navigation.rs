//! The list of all pages, and the links between them.

use crate::config::Config;
use crate::site::html::markup::{Filling, escape, in_reference, method};
use crate::site::html::section::Section;
use crate::site::openapi;

/// The path of the settings page, which is on the admin address and not in the list of pages.
pub const SETTINGS_PAGE: &str = "/settings/domains";

/// The path of the pets page, which is a tool and not a part of the guide.
pub const PETS: &str = "/pets";

/// The text of a page, rendered by the build script.
pub struct PageText<'t> {
    pub html: &'t str,
    pub sections: &'t [Section<&'t str>],
}

/// The path of the OpenAPI description, which is in the navigation, but is not a page.
pub const DESCRIPTION: &str = "/openapi.json";

/// A page in the navigation.
pub struct PageEntry {
    pub path: &'static str,
    pub name: &'static str,
    /// The heading of its group in the navigation. Pages of a group are adjacent.
    pub group: &'static str,
    /// Its content, in one sentence.
    pub about: &'static str,
    /// Its text, with gaps for generated tables; empty for a page that is generated.
    pub text: &'static [PageText<'static>],
}

/// Every page, in the order of the navigation: the lines of `pages.txt`.
pub const PAGES: &[PageEntry] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The group and the name of the page at a path.
pub fn here(here: &str) -> String {
    let entry = PAGES.iter().find(|entry| entry.path == here);
    entry
        .map(|entry| format!("{}: {}", entry.group, entry.name))
        .unwrap_or_default()
}

/// The navigation of the page at a path: the groups and their entries.
pub fn entries(here: &str, config: &Config) -> String {
    let entry = |PageEntry { path, name, .. }: &PageEntry| {
        let current = if *path == here {
            " aria-current=\"page\""
        } else {
            ""
        };
        let operations = if *path == "/" {
            operations(config)
        } else {
            String::new()
        };
        format!("<li><a href=\"{path}\"{current}>{name}</a>{operations}</li>\n")
    };
    let group = |entries: &[PageEntry]| {
        let (name, entries) = (
            entries[0].group,
            entries.iter().map(entry).collect::<String>(),
        );
        format!(
            "<p id=\"nav-{name}\">{name}</p>\n<ul aria-labelledby=\"nav-{name}\">\n{entries}</ul>\n"
        )
    };
    groups().map(group).collect()
}

/// The operations, each with its method.
fn operations(config: &Config) -> String {
    let entry = |row| {
        format!(
            "<li><a href=\"{}\">{} {}</a></li>\n",
            in_reference(row),
            method(row),
            escape(row.title)
        )
    };
    format!(
        "\n<ul>\n{}</ul>\n",
        openapi::operations(config).map(entry).collect::<String>()
    )
}

/// The groups, with a sentence about each page except for the one at a path.
pub fn index(here: &str) -> Filling {
    let page = |PageEntry {
                    path, name, about, ..
                }: &PageEntry| {
        format!("<dt><a href=\"{path}\">{name}</a></dt>\n<dd>{about}</dd>\n")
    };
    let mut index = Filling::default();
    for entries in groups() {
        let name = entries[0].group;
        let pages: String = entries
            .iter()
            .filter(|entry| entry.path != here)
            .map(page)
            .collect();
        index.heading("h2", &name.to_lowercase(), name);
        index.html += &format!("<dl>\n{pages}</dl>\n");
    }
    index
}

fn groups() -> impl Iterator<Item = &'static [PageEntry]> {
    PAGES.chunk_by(|one, next| one.group == next.group)
}

/// Links to the page before and the page after the one at a path.
pub fn neighbours(here: &str) -> String {
    let is_part = |entry: &&PageEntry| ![PETS, DESCRIPTION].contains(&entry.path);
    let pages: Vec<&PageEntry> = PAGES.iter().filter(is_part).collect();
    let Some(place) = pages.iter().position(|entry| entry.path == here) else {
        return String::new();
    };
    let link = |place: Option<usize>, rel, word| {
        let entry = place.and_then(|place| pages.get(place));
        entry.map(|PageEntry { path, name, .. }| {
            format!("<a href=\"{path}\" rel=\"{rel}\"><span>{word}</span> {name}</a>\n")
        })
    };
    let links = [
        link(place.checked_sub(1), "prev", "Previous"),
        link(Some(place + 1), "next", "Next"),
    ];
    let links: String = links.into_iter().flatten().collect();
    format!("<nav class=\"turn\" aria-label=\"Previous and next page\">\n{links}</nav>\n")
}
