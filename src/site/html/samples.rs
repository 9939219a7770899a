//! Code samples: how to call an operation with curl, JavaScript and Python. They are made from the row of the
//! operation and from the example of its body, and take the API key from the environment variable `KEY`.

use serde_json::Value;

use crate::app::api::Operation;
use crate::site::document::BASE;
use crate::site::html::colours::coloured;
use crate::site::html::components::example;
use crate::site::html::markup::{pretty, text};
use crate::site::html::trial::example_id;

/// What a sample needs of an operation.
struct Request {
    method: &'static str,
    /// With an example of its path parameter.
    url: String,
    body: Option<Value>,
    /// Whether a create can be sent again without harm.
    has_key: bool,
    /// Whether a success has a body.
    has_result: bool,
}

/// How to call an operation of the interface whose base address is `base`: each language, and its code. `sample.js` writes
/// the same for what a reader enters.
fn samples(operation: &Operation, base: &str) -> [(&'static str, String); 3] {
    let described: Vec<Value> = operation.parameters.iter().map(|parameter| parameter.describe()).collect();
    let mut url = base.to_owned() + operation.path.strip_prefix(BASE).unwrap_or(operation.path);
    for parameter in described.iter().filter(|parameter| parameter["in"] == "path") {
        url = url.replace(&format!("{{{}}}", text(&parameter["name"])), &example_id(operation));
    }
    let has_key = described.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
    let has_result = operation.success.is_none_or(|success| success.schema.is_some());
    let body = operation.body.map(example);
    let request = Request { method: operation.method(), url, body, has_key, has_result };
    [("curl", curl(&request)), ("JavaScript", javascript(&request)), ("Python", python(&request))]
}

/// The samples as HTML: one figure per language. `code.js` shows the one that the reader has chosen.
pub fn block(operation: &Operation, base: &str) -> String {
    let figure = |(language, code): (&str, String)| {
        format!(
            "<figure data-operation=\"{}\" data-language=\"{language}\"><figcaption>{language}</figcaption>\n\
             <pre tabindex=\"0\"><code>{}</code></pre></figure>\n",
            operation.id,
            coloured(&code)
        )
    };
    let figures: String = samples(operation, base).into_iter().map(figure).collect();
    format!("<div class=\"samples\">\n{figures}<at-once task=\"choose\"></at-once></div>\n")
}

fn curl(Request { method, url, body, has_key, .. }: &Request) -> String {
    let implied = if body.is_some() { "POST" } else { "GET" };
    let option = if *method == implied { String::new() } else { format!("-X {method} ") };
    let mut code = format!("curl {option}'{url}' \\\n    -H \"Authorization: Bearer $KEY\"");
    if *has_key {
        code += " \\\n    -H \"Idempotency-Key: $(openssl rand -hex 16)\"";
    }
    if let Some(body) = body {
        let body = body.to_string().replace('\'', "'\\''");
        code += &format!(" \\\n    -H 'Content-Type: application/json' \\\n    -d '{body}'");
    }
    code
}

const JAVASCRIPT_RESULT: &str = "const result = await response.json();\n\
    if (!response.ok) throw new Error(`${result.code}: ${result.message}`);\n\
    console.log(result);";

fn javascript(Request { method, url, body, has_key, has_result }: &Request) -> String {
    let (mut head, mut fields, mut tail) = (String::new(), String::new(), String::new());
    if *method != "GET" {
        head += &format!("  method: '{method}',\n");
    }
    if *has_key {
        fields += "\n    'Idempotency-Key': crypto.randomUUID(),";
    }
    if let Some(body) = body {
        fields += "\n    'Content-Type': 'application/json',";
        tail += &format!("  body: JSON.stringify({}),\n", laid_out(body, "  "));
    }
    format!(
        "// Node.js 20 or later, in a module such as sample.mjs\n\
         const response = await fetch('{url}', {{\n\
         {head}  headers: {{\n    'Authorization': `Bearer ${{process.env.KEY}}`,{fields}\n  }},\n{tail}}});\n\
         {}",
        if *has_result {
            JAVASCRIPT_RESULT
        } else {
            "if (!response.ok) throw new Error(await response.text());"
        }
    )
}

const PYTHON_RESULT: &str = "result = response.json()\n\
    if not response.ok:\n    raise SystemExit(f\"{result['code']}: {result['message']}\")\n\
    print(result)";

fn python(Request { method, url, body, has_key, has_result }: &Request) -> String {
    let (import, field) = match has_key {
        true => ("import uuid\n", "\n        \"Idempotency-Key\": str(uuid.uuid4()),"),
        false => ("", ""),
    };
    let body = body.iter().map(|body| format!("    json={},\n", laid_out(body, "    ")));
    format!(
        "import os\n{import}\nimport requests\n\n\
         response = requests.{}(\n    \"{url}\",\n    headers={{\n        \
         \"Authorization\": f\"Bearer {{os.environ['KEY']}}\",{field}\n    }},\n{}    timeout=60,\n)\n{}",
        method.to_lowercase(),
        body.collect::<String>(),
        if *has_result { PYTHON_RESULT } else { "if not response.ok:\n    raise SystemExit(response.text)" }
    )
}

/// JSON in lines: each level is indented by `indent`, and each line but the first by one level more.
fn laid_out(value: &Value, indent: &str) -> String {
    pretty(value).replace("  ", indent).replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::api::ROUTER;

    fn of(id: &str, language: &str) -> String {
        let operation = ROUTER.operations().find(|operation| operation.id == id).unwrap();
        let mut samples = samples(operation, "https://pets.example/v1").into_iter();
        samples.find(|sample| sample.0 == language).unwrap().1
    }

    #[test]
    fn pet_is_the_one_of_the_example() {
        let one = "curl 'https://pets.example/v1/pets/1' \\\n    -H \"Authorization: Bearer $KEY\"";
        assert_eq!(of("getPet", "curl"), one);
        assert!(of("getPet", "Python").contains("requests.get(\n    \"https://pets.example/v1/pets/1\",\n"));
    }

    #[test]
    fn body_is_the_example_of_the_description() {
        let shell = of("createPet", "curl");
        assert!(
            shell.contains("-d '{\"name\":\"Rex\",\"categoryId\":3,") && shell.ends_with("}'"),
            "{shell}"
        );
        let python = of("createPet", "Python");
        assert!(python.contains("    json={\n        \"name\": \"Rex\",\n"), "{python}");
        let script = of("createPet", "JavaScript");
        let options = "  },\n  body: JSON.stringify({\n    \"name\": \"Rex\",\n";
        assert!(script.contains(options), "{script}");
    }

    #[test]
    fn method_is_sent_and_nothing_is_read_of_an_empty_body() {
        let method = |operation: &&Operation| operation.success.is_some();
        for operation in ROUTER.operations().filter(|row| row.tag.is_some()).filter(method) {
            let implied = if operation.body.is_some() { "POST" } else { "GET" };
            let curl = samples(operation, "")[0].1.clone();
            assert_eq!(curl.contains(&format!("-X {}", operation.method())), operation.method() != implied);
        }
        let url = "u".to_owned();
        let delete = Request { method: "DELETE", url, body: None, has_key: false, has_result: false };
        assert!(curl(&delete).starts_with("curl -X DELETE 'u' "));
        assert!(!javascript(&delete).contains("json()") && !python(&delete).contains("json()"));
    }

    #[test]
    fn code_is_escaped() {
        let operation = ROUTER.operations().find(|operation| operation.id == "listPets").unwrap();
        let html = block(operation, "https://pets.example/v1");
        assert!(html.contains("&quot;Authorization: Bearer"), "{html}");
    }
}
