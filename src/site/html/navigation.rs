//! The list of all pages, and the links between them.

use crate::base::config::Config;
use crate::site::document;
use crate::site::html::markup::{Filling, escape, in_reference, method};
use crate::site::html::section::Section;

/// The path of the settings page, which is on the admin address and not in the list of pages.
pub const SETTINGS_PAGE: &str = "/settings/domains";

/// The text of a page, rendered by the build script.
pub struct PageText<'t> {
    pub html: &'t str,
    pub sections: &'t [Section<&'t str>],
}

/// The path of the interface description, which is in the navigation, but is not a page.
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

macro_rules! pages {
    ($($group:ident: $($path:literal $name:literal $about:literal $(in $file:literal)?;)*)*) => {
        &[$($(PageEntry {
            path: $path,
            name: $name,
            group: stringify!($group),
            about: $about,
            text: &[$(include!(concat!(env!("OUT_DIR"), "/", $file, ".rs")))?],
        }),*),*]
    };
}

/// Every page, in the order of the navigation.
pub const PAGES: &[PageEntry] = pages! {
    Inventory:
    "/pets" "Pets" "Look at the pets in a table, by status: available, pending or sold. Add a pet.";
    Guide:
    "/docs" "Overview" "What this API is for, and where to begin." in "index";
    "/docs/quickstart" "Quickstart" "Start the service, list pets, add one, and see an error, with curl." in "quickstart";
    "/docs/keys" "API keys" "Create, rotate and revoke API keys, and choose what they can do." in "keys";
    "/docs/pagination" "Pagination" "Read long lists page by page, and poll them for changes." in "pagination";
    "/docs/retries" "Retries" "Retry a POST without adding a second pet." in "retries";
    "/docs/changing" "Changing pets" "Change and delete pets, sell each one once, and count them, with --experimental." in "changing";
    "/docs/browsers" "Browser apps" "Call the API from scripts on a page of another origin (CORS)." in "browsers";
    "/docs/testing" "Testing a client" "Test your client against a temporary service that fails on purpose." in "testing";
    Reference:
    "/" "Operations" "Every operation with its parameters and responses. Try them in your browser.";
    "/openapi.json" "OpenAPI" "The API for tools: import it into Postman, Insomnia or Swagger UI, or generate a typed client (SDK) from its JSON schemas.";
    "/docs/errors" "Errors" "Every error code, what has happened, and what to do about it." in "errors";
    "/docs/limits" "Limits" "How large a request can be, and how long it can take." in "limits";
    "/docs/versions" "Versions and stability" "What can change, which operations will be removed, and what to call instead." in "versions";
    "/docs/changelog" "Changelog" "What each release changes for clients, newest first." in "changelog";
    Operate:
    "/docs/first-evening" "First evening" "From nothing to a service with HTTPS, backups, an alert and a tested restore, on one machine." in "first-evening";
    "/docs/install" "Install" "Install and start the service, with systemd, Docker or neither." in "install";
    "/docs/board" "On a small board" "Run the service in 16 MiB, on flash memory, and without a clock." in "board";
    "/docs/configuration" "Configuration" "Every setting, as a flag and as an environment variable." in "configuration";
    "/docs/proxy" "Behind a proxy" "Put TLS in front of the service, with Caddy, nginx or Cloudflare." in "proxy";
    "/docs/domains" "Custom domains" "Serve your site from your own domain, over HTTPS." in "domains";
    "/docs/monitoring" "Monitoring" "Health checks, metrics for Prometheus, alerts and logs." in "monitoring";
    "/docs/backups" "Backups" "Back up the database every night, and restore a backup." in "backups";
    "/docs/upgrades" "Upgrades" "Install a newer version, and go back to an older one." in "upgrades";
    "/docs/data" "Data" "Edit, export, import and look at pets, and move the database." in "data";
    "/docs/troubleshooting" "Troubleshooting" "What to do if the service does not start, respond or accept pets." in "troubleshooting";
    "/docs/read-only" "Read-only services" "Serve a copy of the database, or read with many processors." in "read-only";
    "/docs/machines" "Several machines" "What you lose if a machine fails, and how to lose less." in "machines";
    "/docs/cluster" "Cluster" "Run the service on three machines that replace each other." in "cluster";
};

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
        document::operations(config).map(entry).collect::<String>()
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
    // The pets page is not part of the guide.
    let is_part = |entry: &&PageEntry| entry.group != "Inventory" && entry.path != DESCRIPTION;
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
