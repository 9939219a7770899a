//! The reference, the pages and the settings page. Their tables are generated from the code.

mod files;
mod keyed;
mod markup;
mod navigation;
mod operation;
mod page;
mod pages;
mod pets;
mod places;
mod reference;
mod samples;
mod search;
mod section;
mod settings;
mod tables;
mod trial;

use crate::config::Config;
use crate::site::openapi::BASE;
use petstore_base::http::Assets;
use petstore_gate::Address;

pub use navigation::SETTINGS_PAGE;
pub use settings::assets as settings;

/// Adds the reference and the pages. `address` is the address of the service.
pub fn add(assets: &mut Assets, config: &Config, address: &Address) {
    // The address that examples call.
    let base = config
        .base_url
        .clone()
        .unwrap_or_else(|| address.local_url() + BASE);
    let pages = pages::filled(config, &base);
    let index = search::index(config, &pages);
    let files = files::add(
        assets,
        &[files::SITE, &[("search.json", index.as_bytes())]].concat(),
    );
    reference::add(assets, config, &base, &files);
    pets::add(assets, config, &base, &files);
    pages::add(assets, config, pages, &files);
    places::add(assets, config, &files);
}
