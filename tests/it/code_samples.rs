//! The code samples of the reference, as a reader copies them: those for curl here, the other languages in
//! `tests/site`.

use std::process::Command;

use serde_json::{Value, json};

use support::harness::{KEY, Server, output};
use support::openapi::document;

/// The code of a figure, as text.
fn sample(page: &str, operation: &str, language: &str) -> String {
    let start = format!("<figure data-operation=\"{operation}\" data-language=\"{language}\">");
    let (_, figure) = page.split_once(&start).unwrap_or_else(|| panic!("{start}: {page}"));
    let (_, code) = figure.split_once("<code>").unwrap();
    let (code, _) = code.split_once("</code>").unwrap();
    // Its colours are elements.
    let code: String =
        code.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    code.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[test]
fn samples_for_curl_work() {
    let server = Server::start();
    let page = String::from_utf8(server.get("/").body).unwrap();
    let mut rex = document()["components"]["schemas"]["NewPet"]["examples"][0].clone();
    rex["id"] = 1.into();
    for (operation, expected) in
        [("createPet", rex.clone()), ("listPets", json!([rex])), ("getPet", rex.clone())]
    {
        let code = sample(&page, operation, "curl");
        assert!(code.contains(&format!("http://{}/v1/pets", server.address)), "{code}");
        let done = output(Command::new("sh").args(["-euc", &code]).env("KEY", KEY));
        let body = serde_json::from_slice::<Value>(&done.stdout);
        assert!(done.status.success() && body.as_ref().ok() == Some(&expected), "{code}\n{done:?}");
    }
}
