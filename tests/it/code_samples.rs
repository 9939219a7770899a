//! The code samples of the reference, as a reader copies them: those for curl here, the other languages in
//! `tests/site`.

use std::process::Command;

use serde_json::{Value, json};

use support::harness::{KEY, Server, output};
use support::openapi::document;

/// The code of a figure, as text.
fn sample(page: &str, operation: &str, language: &str) -> String {
    let start = format!("<figure data-operation=\"{operation}\" data-language=\"{language}\">");
    let (_, figure) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("{start}: {page}"));
    let (_, code) = figure.split_once("<code>").unwrap();
    let (code, _) = code.split_once("</code>").unwrap();
    plain(code)
}

/// The text of HTML, without its elements.
fn plain(html: &str) -> String {
    let text: String = html
        .split('<')
        .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
        .collect();
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

/// The blocks of a page that call curl.
fn blocks(server: &Server, path: &str) -> Vec<String> {
    let page = String::from_utf8(server.get(path).body).unwrap();
    let blocks = page.split("<pre tabindex=\"0\"><code>").skip(1);
    let blocks = blocks.map(|block| plain(block.split_once("</code>").unwrap().0));
    blocks.filter(|code| code.starts_with("curl ")).collect()
}

/// What a sample prints.
fn run(code: &str) -> String {
    let done = output(Command::new("sh").args(["-euc", code]).env("KEY", KEY));
    assert!(done.status.success(), "{code}\n{done:?}");
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn samples_for_curl_work() {
    let server = Server::start();
    let page = String::from_utf8(server.get("/").body).unwrap();
    let mut rex = document()["components"]["schemas"]["NewPet"]["examples"][0].clone();
    rex["id"] = 1.into();
    for (operation, expected) in [
        ("createPet", rex.clone()),
        ("listPets", json!([rex])),
        ("getPet", rex.clone()),
    ] {
        let code = sample(&page, operation, "curl");
        assert!(
            code.contains(&format!("http://{}/v1/pets", server.address)),
            "{code}"
        );
        let done = output(Command::new("sh").args(["-euc", &code]).env("KEY", KEY));
        let body = serde_json::from_slice::<Value>(&done.stdout);
        assert!(
            done.status.success() && body.as_ref().ok() == Some(&expected),
            "{code}\n{done:?}"
        );
    }
}

#[test]
fn pet_is_found_without_get_pet_as_the_pages_describe() {
    let server = Server::start();
    for id in 1..=8 {
        server
            .create(&format!(r#"{{"name":"{id}","categoryId":1}}"#))
            .expect(201);
    }
    for path in ["/docs/pagination", "/docs/versions"] {
        let found: Vec<String> = blocks(&server, path)
            .into_iter()
            .filter(|c| c.contains("after=6"))
            .collect();
        let pets: Value = serde_json::from_str(&run(&found[0])).unwrap();
        assert_eq!(
            pets,
            json!([{"id": 7, "name": "7", "categoryId": 1}]),
            "{path}"
        );
        assert_eq!(found.len(), 1, "{path}");
    }
}

#[test]
fn samples_that_change_sell_and_count_pets_work_with_experimental_alone() {
    let statuses = |server: &Server| {
        server
            .create(r#"{"name":"Rex","categoryId":1}"#)
            .expect(201);
        let codes = blocks(server, "/docs/changing");
        codes
            .iter()
            .map(|code| run(code)[9..12].to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let experimental = Server::start_with(|command| command.arg("--experimental"));
    // The ETag of the page is not that of the pet.
    assert_eq!(statuses(&experimental), "200 200 412 204 200");
    let server = Server::start();
    assert_eq!(statuses(&server), "405 200 405 405 404");
    let page = String::from_utf8(server.get("/docs/changing").body).unwrap();
    let first = plain(
        page.split_once("<p>")
            .unwrap()
            .1
            .split_once("</p>")
            .unwrap()
            .0,
    );
    assert!(first.contains("--experimental"), "{first}");
}
