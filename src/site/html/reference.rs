//! The reference: every operation as HTML, generated from the table of operations, with forms that send requests.

use crate::app::endpoint::Operation;
use crate::config::Config;
use crate::site::components::{example, item_of};
use crate::site::html::markup::{anchored, escape, pretty};
use crate::site::html::navigation::SETTINGS_PAGE;
use crate::site::html::page::HtmlPage;
use crate::site::html::{keyed, operation};
use crate::site::openapi;
use petstore_base::http::Assets;
use petstore_gate::Listen;

/// The elements of the head that load its style sheet and its script.
const HEAD: &str = "<link rel=\"stylesheet\" href=\"/assets/reference.css\">
<script src=\"/assets/trial.js\" type=\"module\"></script>
";

/// Adds the reference at the root. `base` is the address that samples call, and `files` the folder of the files that it
/// loads.
pub fn add(assets: &mut Assets, config: &Config, base: &str, files: &str) {
    let page = HtmlPage {
        path: "/",
        title: None,
        about: "{{description}}",
        main: include_str!("../files/reference.html")
            .replace("{{settings}}", &settings(config))
            .replace("{{base}}", &escape(base))
            .replace("{{answer}}", &escape(&pretty(&example("Pets"))))
            .replace("{{reference}}", &operations(config, base)),
        class: "reference",
        head: HEAD,
        asks: &[],
    };
    keyed::add(assets, config, page, files);
}

/// A link to the settings page, for the operator of a service on this machine. A public site does not have it.
fn settings(config: &Config) -> String {
    let is_own = config.base_url.is_none() && !config.read_only;
    let admin = match &config.admin {
        Some(Listen::Tcp(admin)) if is_own && admin.ip().is_loopback() && admin.port() > 0 => {
            Some(admin)
        }
        _ => None,
    };
    let link = |admin| format!(" <a href=\"http://{admin}{SETTINGS_PAGE}\">Settings</a>");
    admin.map(link).unwrap_or_default()
}

/// Every operation that is described, under its tag, and then the objects in their responses.
fn operations(config: &Config, base: &str) -> String {
    let described: Vec<&Operation> = openapi::operations(config).collect();
    let groups = described
        .chunk_by(|one, next| one.tag == next.tag)
        .filter_map(|group| {
            let tag = group.first()?.tag?;
            let operations: String = group.iter().map(|row| operation::html(row, base)).collect();
            let mut objects: Vec<String> = group
                .iter()
                .filter_map(|row| Some(item_of(row.success?.schema?)))
                .collect();
            objects.dedup();
            let objects: String = objects.iter().map(|name| operation::object(name)).collect();
            Some(format!(
                "{}<p>{}</p>\n{operations}{objects}",
                anchored("h2", &tag.title.to_lowercase(), tag.title),
                escape(tag.about)
            ))
        });
    groups.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::http::{AssetFields, Response};

    fn get(assets: &Assets, path: &str) -> Response {
        assets
            .get(path)
            .unwrap_or_else(|| panic!("{path}"))
            .respond(&AssetFields {
                accept_encoding: vec!["gzip"],
                ..AssetFields::default()
            })
    }

    fn assets() -> Assets {
        let config = Config {
            base_url: Some("https://pets.example:8443/x/v1".to_owned()),
            ..Config::default()
        };
        crate::site::assets(
            &config,
            &petstore_gate::Address::Tcp(([127, 0, 0, 1], 1).into()),
        )
    }

    #[test]
    fn service_has_the_name_and_the_settings_of_whoever_runs_it() {
        let mut config = Config {
            title: "Tim & <Jo>".to_owned(),
            ..Config::default()
        };
        config.admin = Some(([127, 0, 0, 1], 8081).into());
        let page = |config: &Config| {
            let assets = crate::site::assets(
                config,
                &petstore_gate::Address::Tcp(([127, 0, 0, 1], 1).into()),
            );
            let page = assets.get("/").unwrap().respond(&AssetFields::default());
            String::from_utf8(page.body().to_vec()).unwrap()
        };
        let html = page(&config);
        let link = " <a href=\"http://127.0.0.1:8081/settings/domains\">Settings</a>";
        for part in [
            "<title>Tim &amp; &lt;Jo&gt;</title>",
            "<span>Tim &amp; &lt;Jo&gt;</span></a>",
            link,
        ] {
            assert!(html.contains(part), "the page lacks {part}");
        }
        let is_linked = |config: &Config| page(config).contains("/settings/domains");
        assert!(
            !is_linked(&Config {
                read_only: true,
                ..config.clone()
            }),
            "they cannot be used"
        );
        assert!(
            !is_linked(&Config {
                admin: Some(([127, 0, 0, 1], 0).into()),
                ..config.clone()
            }),
            "not known yet"
        );
        config.base_url = Some("https://pets.example/v1".to_owned());
        assert!(!is_linked(&config), "a link that leads nobody there");
    }

    #[test]
    fn reference_loads_at_most_32_kibibytes_and_nothing_from_elsewhere() {
        let assets = assets();
        let page = assets.get("/").unwrap().respond(&AssetFields::default());
        let policy = page.field("Content-Security-Policy").unwrap();
        assert!(
            policy.contains("connect-src 'self' https://pets.example:8443;"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        let html = String::from_utf8(page.body().to_vec()).unwrap();
        for part in ["{{", "style=", "<script>"] {
            assert!(!html.contains(part), "the page has {part}");
        }
        let loaded = html
            .split(['"'])
            .filter(|text| text.starts_with("/assets/"));
        let mut loaded: Vec<&str> = loaded.chain(["/"]).collect();
        loaded.sort_unstable();
        loaded.dedup();
        assert!(
            loaded.iter().any(|path| path.ends_with("/trial.js")),
            "{loaded:?}"
        );
        let bytes: usize = loaded
            .iter()
            .map(|path| get(&assets, path).body().len())
            .sum();
        assert!(bytes <= 32 << 10, "{bytes}");
    }

    #[test]
    fn every_id_is_there_once_and_every_heading_can_be_linked_to() {
        let html = operations(&Config::default(), "https://pets.example/v1");
        let mut ids: Vec<&str> = html
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "{ids:?}");
        for id in [
            "pets",
            "store",
            "Pet",
            "createPet",
            "createPet-request-body",
            "listPets-errors",
            "getPet-try-it",
        ] {
            assert!(ids.contains(&id), "{id}: {ids:?}");
        }
    }
}
