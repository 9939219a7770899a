//! Pages with a field for the API key, whose scripts send requests to the API.

use crate::app::api::among_files;
use crate::config::Config;
use crate::site::html::markup::escape;
use crate::site::html::page::HtmlPage;
use crate::site::openapi::{BASE, named_servers};
use petstore_base::http::Assets;

/// Adds a page, and its variant for an origin with deployed files. Its content has a gap `{{key}}`. `files` is the
/// folder of the files that it loads.
pub fn add(assets: &mut Assets, config: &Config, page: HtmlPage<'_>, files: &str) {
    let asks: Vec<String> = [&config.base_url, &config.staging_url]
        .into_iter()
        .flatten()
        .map(|url| origin(url))
        .collect();
    let service = if config.read_only { "read-only" } else { "" };
    let key = include_str!("../files/key.html")
        .replace("{{service}}", service)
        .replace("{{servers}}", &choice(config));
    for (path, keep) in [
        (page.path.to_owned(), "tab"),
        (among_files(page.path), "memory"),
    ] {
        let main = page.main.replace("{{key}}", &key.replace("{{keep}}", keep));
        assets.insert(
            path,
            HtmlPage {
                main,
                asks: &asks,
                ..page
            }
            .into_asset(config, files),
        );
    }
}

/// The choice of the server. The last one is that of the page itself; `frame.js` omits it if it is named already.
fn choice(config: &Config) -> String {
    let mut servers = named_servers(config);
    if config.base_url.is_some() || config.staging_url.is_some() {
        servers.push(("This server", BASE));
    }
    let option = |(name, url): &(&str, &str)| {
        format!("<option value=\"{0}\">{name}: {0}</option>\n", escape(url))
    };
    let options: String = servers.iter().map(option).collect();
    format!(
        "<label>Server <select id=\"server\" autocomplete=\"off\">\n{options}</select></label>\n"
    )
}

/// The scheme, the host and the port of an address.
fn origin(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_of_the_page_can_be_chosen() {
        let label = |options| {
            format!(
                "<label>Server <select id=\"server\" autocomplete=\"off\">\n{options}</select></label>\n"
            )
        };
        let own = "<option value=\"/v1\">This service: /v1</option>\n";
        let mut config = Config::default();
        assert_eq!(choice(&config), label(own));
        config.base_url = Some("https://a/v1".to_owned());
        config.staging_url = Some("https://b/v1".to_owned());
        let all = "<option value=\"https://a/v1\">Production: https://a/v1</option>\n\
        <option value=\"https://b/v1\">Staging: https://b/v1</option>\n\
        <option value=\"/v1\">This server: /v1</option>\n";
        assert_eq!(choice(&config), label(all));
    }
}
