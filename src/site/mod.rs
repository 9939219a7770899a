//! The published project site: the interface description and, with the feature `site`, the reference and the
//! pages for people. All of it is made once at the start, of the values that the code itself parses with.
//! Knows the tables of operations, settings and limits, and nothing of SQL or sockets.

pub mod document;
#[cfg(feature = "site")]
mod page;
#[cfg(feature = "site")]
mod pages;
#[cfg(feature = "site")]
mod reference;
#[cfg(feature = "site")]
mod settings;
#[cfg(feature = "site")]
mod tables;

use crate::config::{Address, Config};
use crate::http::Assets;

#[cfg(feature = "site")]
pub use settings::assets as settings_assets;

/// Every document that the service serves as it is; `address` is where it listens.
pub fn assets(config: &Config, address: &Address) -> Assets {
    let mut assets = Assets::default();
    assets.insert("/openapi.json", document::asset(&config.servers()));
    #[cfg(feature = "site")]
    {
        reference::add(&mut assets, config);
        pages::add(&mut assets, config, address);
    }
    #[cfg(not(feature = "site"))]
    let _ = address;
    assets
}
