//! The project site: the interface description and, with the feature `site`, the reference and the pages for
//! people. All of it is made when the first document is asked for, from the values that the code itself parses with; only the Markdown
//! of the pages is rendered when the service is built, by `build.rs`. Knows the tables of operations, settings and
//! limits, and nothing of SQL or sockets.

#[cfg(feature = "site")]
pub mod dns;
pub mod document;
#[cfg_attr(not(feature = "site"), path = "no_html.rs", warn(dead_code, unused_imports))]
pub mod html;
#[cfg(feature = "site")]
pub mod project;
mod well_known;

use std::sync::Arc;

use crate::base::config::{Address, Config};
use crate::base::http::{Asset, Assets, LazyAssets};

/// Every static document of the service, made when it is needed.
pub fn lazy_assets(config: &Arc<Config>, address: &Address) -> Arc<LazyAssets> {
    let (config, address) = (Arc::clone(config), address.clone());
    Arc::new(LazyAssets::new(Box::new(move || assets(&config, &address))))
}

/// Every static document of the service. `address` is where the service listens.
pub fn assets(config: &Config, address: &Address) -> Assets {
    let mut assets = Assets::default();
    let description = document::document(config).to_string();
    assets.insert("/openapi.json".into(), Asset::new("application/json", description.into_bytes()));
    html::add(&mut assets, config, address);
    well_known::add(&mut assets, config);
    assets
}
