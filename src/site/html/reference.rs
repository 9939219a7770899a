//! The reference: Swagger UI, extended by what the interface description has beyond OpenAPI.

use crate::api::ROUTER;
use crate::config::Config;
use crate::http::{Asset, Assets};
use crate::site::html::page::{Frame, Page};
use crate::site::html::{samples, tables};

/// The version of the npm package `swagger-ui-dist`. `scripts/vendor-swagger-ui` copies three of its files to
/// `vendor/`.
macro_rules! swagger_ui {
    () => {
        "5.35.0"
    };
}

const VERSION: &str = swagger_ui!();
const SCRIPT: &str = concat!("/assets/swagger-ui-", swagger_ui!(), ".js");
const STYLE: &str = concat!("/assets/swagger-ui-", swagger_ui!(), ".css");
/// The path of the licences of its files.
pub const LICENSES: &str = concat!("/assets/swagger-ui-", swagger_ui!(), "-licenses.txt");

/// Adds the reference at the root, and what it loads. `base` is the address that samples call.
pub fn add(assets: &mut Assets, config: &Config, base: &str, frame: &Frame) {
    let can_be_called = ROUTER.operations().filter(|operation| operation.success.is_some());
    let samples: String = can_be_called
        .map(|operation| format!("<h3>{}</h3>\n{}", operation.summary, samples::block(operation, base)))
        .collect();
    let head = format!(
        "<link rel=\"stylesheet\" href=\"{STYLE}\">\n\
         <link rel=\"stylesheet\" href=\"/assets/reference.css\">\n\
         <script src=\"{SCRIPT}\" defer></script>\n\
         <script src=\"/assets/reference.js\" defer></script>\n"
    );
    let servers = config.server_urls();
    let asks: Vec<String> =
        [servers.production, servers.staging].iter().flatten().map(|url| origin(url)).collect();
    let page = Page {
        path: "/",
        title: "Reference",
        about: "Every operation of the interface, its parameters and its responses, to read and to try.",
        head: &head,
        class: "reference",
        main: tables::fill(include_str!("../files/reference.html"), config).replace("{{samples}}", &samples),
        asks: &asks,
    };
    assets.insert("/", page.into_asset(frame));
    let script = "text/javascript; charset=utf-8";
    let immutable = |content_type, gzip| Asset::immutable(content_type, gzip, VERSION);
    let own = |content_type, bytes: &[u8]| Asset::new(content_type, bytes.to_vec());
    assets.insert(SCRIPT, immutable(script, include_bytes!("../vendor/swagger-ui-bundle.js.gz")));
    assets.insert(STYLE, immutable("text/css", include_bytes!("../vendor/swagger-ui.css.gz")));
    assets.insert(
        LICENSES,
        immutable("text/plain; charset=utf-8", include_bytes!("../vendor/licenses.txt.gz")),
    );
    assets.insert("/assets/reference.js", own(script, include_bytes!("../files/reference.js")));
    assets.insert("/assets/theme.js", own(script, include_bytes!("../files/theme.js")));
    assets.insert("/assets/reference.css", own("text/css", include_bytes!("../files/reference.css")));
}

/// The scheme, the host and the port of an address.
fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Response;

    fn get(assets: &Assets, path: &str) -> Response {
        assets
            .find(path)
            .unwrap_or_else(|| panic!("{path}"))
            .respond([Some("gzip"), None].map(Option::into_iter))
    }

    #[test]
    fn reference_loads_at_most_500_kilobytes() {
        let config =
            Config { base_url: Some("https://pets.example:8443/x/v1".to_owned()), ..Config::default() };
        let assets = crate::site::assets(&config, &crate::config::Address::Tcp(([127, 0, 0, 1], 1).into()));
        let page = assets.find("/").unwrap().respond([None, None].map(Option::into_iter));
        let policy = &page.headers().iter().find(|(name, _)| *name == "Content-Security-Policy").unwrap().1;
        assert!(policy.contains("connect-src 'self' https://pets.example:8443;"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let html = String::from_utf8(page.body().to_vec()).unwrap();
        assert!(!html.contains("{{"), "{html}");
        let loaded = html.split(['"']).filter(|text| text.starts_with("/assets/") && !text.ends_with(".txt"));
        let mut loaded: Vec<&str> = loaded.chain(["/", "/openapi.json"]).collect();
        loaded.sort_unstable();
        loaded.dedup();
        assert_eq!(loaded.len(), 11, "{loaded:?}");
        let bytes: usize = loaded.iter().map(|path| get(&assets, path).body().len()).sum();
        assert!(bytes <= 500_000, "{bytes}");
    }
}
