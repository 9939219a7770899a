//! Code samples: how to call an operation with curl, JavaScript and Python. They are made from the row of the
//! operation and from the example of its body, and take the API key from the environment variable `KEY`.

use serde_json::Value;

use crate::api::Operation;
use crate::site::document::BASE;
use crate::site::html::components::{example, resolve};
use crate::site::html::markup::escape;

/// What a sample needs of an operation.
struct Request {
    method: &'static str,
    /// With an example value for its path parameter, and without a query.
    path: String,
    /// Example values of its query parameters, as `name=value`.
    query: Vec<String>,
    body: Option<Value>,
}

/// How to call an operation of the interface whose base address is `base`: each language, and its code.
fn samples(operation: &Operation, base: &str) -> [(&'static str, String); 3] {
    let request = Request::new(operation, base);
    [("curl", curl(&request)), ("JavaScript", javascript(&request)), ("Python", python(&request))]
}

/// The samples as HTML: one figure per language. `code.js` shows the one that the reader has chosen.
pub fn block(operation: &Operation, base: &str) -> String {
    let figure = |(language, code): (&str, String)| {
        format!(
            "<figure data-operation=\"{}\" data-language=\"{language}\"><figcaption>{language}</figcaption>\n\
             <pre tabindex=\"0\"><code>{}</code></pre></figure>\n",
            operation.id,
            escape(&code)
        )
    };
    let figures: String = samples(operation, base).into_iter().map(figure).collect();
    format!("<div class=\"samples\">\n{figures}</div>\n")
}

impl Request {
    fn new(operation: &Operation, base: &str) -> Self {
        let mut path = base.to_owned() + operation.path.strip_prefix(BASE).unwrap_or(operation.path);
        let mut query = Vec::new();
        let described: Vec<Value> =
            operation.parameters.iter().map(|parameter| parameter.describe()).collect();
        for parameter in &described {
            let Some(name) = parameter["name"].as_str() else { continue };
            if parameter["in"] == "path" {
                path = path.replace(&format!("{{{name}}}"), "1");
            } else if let (true, Some(value)) = (parameter["in"] == "query", choice(&parameter["schema"])) {
                query.push(format!("{name}={value}"));
            }
        }
        Self { method: operation.method(), path, query, body: operation.body.map(example) }
    }

    /// The whole address.
    fn url(&self) -> String {
        let mark = if self.query.is_empty() { "" } else { "?" };
        format!("{}{mark}{}", self.path, self.query.join("&"))
    }
}

/// The default or the first allowed word of a parameter; `None` if its schema names no value.
fn choice(schema: &Value) -> Option<String> {
    let schema = resolve(schema);
    let value = schema.get("default").unwrap_or(&schema["enum"][0]);
    value.as_str().map(str::to_owned).or_else(|| value.as_i64().map(|number| number.to_string()))
}

fn curl(Request { path, query, body, .. }: &Request) -> String {
    // The data of a request with -G becomes its query, and each parameter has a line of its own.
    let head = if query.is_empty() { "" } else { "-G " };
    let mut code = format!("curl {head}'{path}' \\\n    -H \"Authorization: Bearer $KEY\"");
    for pair in query {
        code += &format!(" \\\n    -d {pair}");
    }
    if let Some(body) = body {
        let body = body.to_string().replace('\'', "'\\''");
        code += &format!(" \\\n    -H 'Content-Type: application/json' \\\n    -d '{body}'");
    }
    code
}

fn javascript(request: &Request) -> String {
    let (Request { method, body, .. }, url) = (request, request.url());
    let (mut options, mut fields) = (String::new(), String::new());
    if *method != "GET" {
        options += &format!("  method: '{method}',\n");
    }
    if let Some(body) = body {
        fields += "\n    'Content-Type': 'application/json',";
        options += &format!("  body: JSON.stringify({}),\n", laid_out(body, "  "));
    }
    format!(
        "const response = await fetch('{url}', {{\n\
         {options}  headers: {{\n    Authorization: `Bearer ${{process.env.KEY}}`,{fields}\n  }},\n\
         }});\n\
         const result = await response.json();\n\
         if (!response.ok) throw new Error(`${{result.code}}: ${{result.message}}`);\n\
         console.log(result);"
    )
}

fn python(request: &Request) -> String {
    let (Request { method, body, .. }, url) = (request, request.url());
    let method = method.to_lowercase();
    let body = body.iter().map(|body| format!("    json={},\n", laid_out(body, "    ")));
    format!(
        "import os\n\n\
         import requests\n\n\
         response = requests.{method}(\n    \"{url}\",\n    \
         headers={{\"Authorization\": f\"Bearer {{os.environ['KEY']}}\"}},\n\
         {}    timeout=60,\n)\n\
         response.raise_for_status()\n\
         print(response.json())",
        body.collect::<String>()
    )
}

/// JSON in lines: each level is indented by `indent`, and each line but the first by one level more.
fn laid_out(value: &Value, indent: &str) -> String {
    // Printing strings and numbers cannot fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace("  ", indent).replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::ROUTER;

    fn of(id: &str, language: &str) -> String {
        let operation = ROUTER.operations().find(|operation| operation.id == id).unwrap();
        let mut samples = samples(operation, "https://pets.example/v1").into_iter();
        samples.find(|sample| sample.0 == language).unwrap().1
    }

    #[test]
    fn parameters_have_values() {
        let list = of("listPets", "curl");
        assert!(list.starts_with("curl -G 'https://pets.example/v1/pets' \\\n"), "{list}");
        assert!(list.contains(" \\\n    -d limit=20 \\\n    -d status=available"), "{list}");
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
        let options = ", {\n  method: 'POST',\n  body: JSON.stringify({\n    \"name\": \"Rex\",\n";
        assert!(script.contains(options), "{script}");
    }

    #[test]
    fn code_is_escaped() {
        let operation = ROUTER.operations().find(|operation| operation.id == "listPets").unwrap();
        let html = block(operation, "https://pets.example/v1");
        assert!(
            html.contains("limit=20&amp;status=") && html.contains("&quot;Authorization: Bearer"),
            "{html}"
        );
    }
}
