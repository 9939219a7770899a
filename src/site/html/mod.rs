//! The reference, the pages and the settings page. Their tables are generated from the code.

mod components;
mod files;
mod markup;
mod operation;
mod page;
mod pages;
mod places;
mod reference;
mod samples;
mod search;
mod sections;
mod settings;
mod tables;
mod trial;

use crate::config::{Address, Config};
use crate::http::Assets;
use crate::site::document::BASE;
use page::Frame;

pub use settings::assets as settings;

/// The path of the guide, for the interface description.
pub const GUIDE: Option<&str> = Some("/docs");

/// The name of an error code in Markdown, with a link to its heading on the page of errors.
pub fn code(name: &str) -> String {
    format!("[`{name}`](/docs/errors#{name})")
}

/// Adds the reference and the pages. `address` is where the service listens.
pub fn add(assets: &mut Assets, config: &Config, address: &Address) {
    let root = crate::site::root(config).map(str::to_owned);
    let frame = Frame { navigation: pages::navigation(), root };
    // The address that examples call.
    let base = config.base_url.clone().unwrap_or_else(|| address.local_url() + BASE);
    reference::add(assets, config, &base, &frame);
    pages::add(assets, config, &base, &frame);
    places::add(assets, &frame);
    files::add(assets, files::SITE);
}
