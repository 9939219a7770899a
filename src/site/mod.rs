//! The project site: the OpenAPI description and, with the feature `site`, the reference and the pages. All documents
//! are generated at the first request for one of them, from the tables and schemas that the service itself uses; only
//! the Markdown of the pages is rendered at build time, by `build.rs`. Knows nothing of SQL or sockets.

mod components;
#[cfg(feature = "site")]
pub mod hosting;
#[cfg_attr(
    not(feature = "site"),
    path = "no_html.rs",
    warn(dead_code, unused_imports)
)]
pub mod html;
pub mod openapi;
mod well_known;

use std::sync::Arc;

use crate::config::Config;
use petstore_base::http::{Asset, Assets, LazyAssets};
use petstore_gate::Address;

/// Returns every static document of the service, generated at first use.
pub fn lazy_assets(config: &Arc<Config>, address: &Address) -> Arc<LazyAssets> {
    let (config, address) = (Arc::clone(config), address.clone());
    Arc::new(LazyAssets::new(Box::new(move || assets(&config, &address))))
}

/// Generates every static document of the service. `address` is the address of the service.
pub fn assets(config: &Config, address: &Address) -> Assets {
    let mut assets = Assets::default();
    let description = openapi::served(config).into_bytes();
    assets.insert(
        "/openapi.json".into(),
        Asset::new("application/json", description),
    );
    html::add(&mut assets, config, address);
    well_known::add(&mut assets, config);
    assets
}
