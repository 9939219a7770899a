//! Code samples that call an operation with curl, JavaScript and Python. They are generated from the row of the
//! operation and the example of its body, and read the API key from the environment variable `KEY`.

use crate::app::endpoint::Operation;
use crate::site::components::example;
use crate::site::html::markup::{escape, pretty, text};
use crate::site::html::trial::{example_id, has_result};
use crate::site::openapi::below_base;
use petstore_base::json::Json;

/// The request of a sample.
struct ExampleRequest {
    method: &'static str,
    /// With an example of its path parameter.
    url: String,
    media_type: &'static str,
    body: Option<Json>,
    /// True if the request has an `Idempotency-Key`, so that it is safe to retry.
    has_key: bool,
    /// The response to a success has a body.
    has_result: bool,
}

/// Returns the languages and the code that calls an operation. `base` is the base URL. `sample.js` generates the same
/// code with the values that a reader enters.
fn samples(operation: &Operation, base: &str) -> [(&'static str, String); 3] {
    let mut url = base.to_owned() + below_base(operation.path);
    let mut has_key = false;
    for parameter in operation.described() {
        let name = text(&parameter["name"]);
        url = url.replace(&format!("{{{name}}}"), &example_id(operation));
        has_key |= name == "Idempotency-Key";
    }
    let request = ExampleRequest {
        method: operation.method(),
        url,
        media_type: operation.media_types[0],
        body: operation.body.map(example),
        has_key,
        has_result: has_result(operation),
    };
    [
        ("curl", curl(&request)),
        ("JavaScript", javascript(&request)),
        ("Python", python(&request)),
    ]
}

/// What `$KEY` is. `trial.js` puts a choice in its place when the page has a key.
const OF_KEY: &str = "<p class=\"note with either\"><span><code>$KEY</code> is your API key: \
                      <code>export KEY='put your key here'</code></span></p>";

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
    format!("<div class=\"samples\">\n{OF_KEY}{figures}<at-once task=\"choose\"></at-once></div>\n")
}

fn curl(request: &ExampleRequest) -> String {
    // With a body, the default method of curl is POST.
    let usual = if request.body.is_some() {
        "POST"
    } else {
        "GET"
    };
    let method = if request.method == usual {
        String::new()
    } else {
        format!("-X {} ", request.method)
    };
    let mut code = format!(
        "curl {method}'{}' \\\n    -H \"Authorization: Bearer $KEY\"",
        request.url
    );
    if request.has_key {
        code += " \\\n    -H \"Idempotency-Key: $(openssl rand -hex 16)\"";
    }
    if let Some(body) = &request.body {
        let (media_type, body) = (request.media_type, body.to_string().replace('\'', "'\\''"));
        code += &format!(" \\\n    -H 'Content-Type: {media_type}' \\\n    -d '{body}'");
    }
    code
}

fn javascript(request: &ExampleRequest) -> String {
    let (mut head, mut fields, mut tail) = (String::new(), String::new(), String::new());
    if request.method != "GET" {
        head += &format!("  method: '{}',\n", request.method);
    }
    if request.has_key {
        fields += "\n    'Idempotency-Key': crypto.randomUUID(),";
    }
    if let Some(body) = &request.body {
        fields += &format!("\n    'Content-Type': '{}',", request.media_type);
        tail += &format!("  body: JSON.stringify({}),\n", laid_out(body, "  "));
    }
    let (or_none, print) = if request.has_result {
        ("", "console.log(result);")
    } else {
        ("response.ok ? null : ", "console.log(response.status);")
    };
    format!(
        "// Node.js 20 or later, in a module such as sample.mjs\n\
         const response = await fetch('{}', {{\n\
         {head}  headers: {{\n    'Authorization': `Bearer ${{process.env.KEY}}`,{fields}\n  }},\n{tail}}});\n\
         const result = {or_none}await response.json();\n\
         if (!response.ok) throw new Error(`${{result.code}}: ${{result.message}}`);\n\
         {print}",
        request.url
    )
}

fn python(request: &ExampleRequest) -> String {
    let (mut import, mut fields, mut body) = ("", String::new(), String::new());
    if request.has_key {
        import = "import uuid\n";
        fields += "\n        \"Idempotency-Key\": str(uuid.uuid4()),";
    }
    if let Some(example) = &request.body {
        let literal = laid_out(example, "    ");
        // Python spells these literals differently.
        let is_python = !["null", "true", "false"]
            .iter()
            .any(|word| literal.contains(word));
        // Requests itself adds the type of JSON.
        if !is_python || request.media_type != "application/json" {
            fields += &format!("\n        \"Content-Type\": \"{}\",", request.media_type);
        }
        body = if is_python {
            format!("    json={literal},\n")
        } else {
            format!("    data={}.encode(),\n", Json::from(pretty(example)))
        };
    }
    let (or_none, print) = if request.has_result {
        ("", "print(result)")
    } else {
        (
            " if not response.ok else None",
            "print(response.status_code)",
        )
    };
    format!(
        "import os\n{import}\nimport requests\n\n\
         response = requests.{}(\n    \"{}\",\n    headers={{\n        \
         \"Authorization\": f\"Bearer {{os.environ['KEY']}}\",{fields}\n    }},\n{body}    timeout=60,\n)\n\
         result = response.json(){or_none}\n\
         if not response.ok:\n    raise SystemExit(f\"{{result['code']}}: {{result['message']}}\")\n\
         {print}",
        request.method.to_lowercase(),
        request.url
    )
}

/// Prints JSON on several lines. Each level is indented by `indent`, and each line but the first by one level more.
fn laid_out(value: &Json, indent: &str) -> String {
    pretty(value)
        .replace("  ", indent)
        .replace('\n', &format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::api::router;
    use petstore_base::json::{NULL, object};

    fn of(id: &str, language: &str) -> String {
        let operation = router(true)
            .operations()
            .find(|operation| operation.id == id)
            .unwrap();
        let mut samples = samples(operation, "https://pets.example/v1").into_iter();
        samples.find(|sample| sample.0 == language).unwrap().1
    }

    #[test]
    fn pet_is_the_one_of_the_example() {
        let one = "curl 'https://pets.example/v1/pets/1' \\\n    -H \"Authorization: Bearer $KEY\"";
        assert_eq!(of("getPet", "curl"), one);
        assert!(
            of("getPet", "Python")
                .contains("requests.get(\n    \"https://pets.example/v1/pets/1\",\n")
        );
    }

    #[test]
    fn body_is_the_example_of_the_description() {
        let shell = of("createPet", "curl");
        assert!(
            shell.contains("-d '{\"name\":\"Rex\",\"categoryId\":3,") && shell.ends_with("}'"),
            "{shell}"
        );
        let python = of("createPet", "Python");
        assert!(
            python.contains("    json={\n        \"name\": \"Rex\",\n"),
            "{python}"
        );
        let script = of("createPet", "JavaScript");
        let options = "  },\n  body: JSON.stringify({\n    \"name\": \"Rex\",\n";
        assert!(script.contains(options), "{script}");
    }

    #[test]
    fn method_and_media_type_are_those_of_the_operation() {
        let request = ExampleRequest {
            method: "PATCH",
            url: "https://pets.example/v1/pets/1".to_owned(),
            media_type: "application/merge-patch+json",
            body: Some(object! { "status": "sold" }),
            has_key: false,
            has_result: true,
        };
        assert_eq!(
            curl(&request),
            "curl -X PATCH 'https://pets.example/v1/pets/1' \\\n    -H \"Authorization: Bearer $KEY\" \\\n    \
             -H 'Content-Type: application/merge-patch+json' \\\n    -d '{\"status\":\"sold\"}'"
        );
        let script = javascript(&request);
        assert!(script.contains("  method: 'PATCH',\n"), "{script}");
        assert!(
            script.contains("'Content-Type': 'application/merge-patch+json',\n"),
            "{script}"
        );
        let python = python(&request);
        assert!(python.contains("requests.patch(\n"), "{python}");
        assert!(
            python.contains("\"Content-Type\": \"application/merge-patch+json\",\n"),
            "{python}"
        );
        let request = ExampleRequest {
            body: Some(object! { "status": NULL.clone() }),
            ..request
        };
        let python = super::python(&request);
        assert!(
            python.contains("    data=\"{\\n  \\\"status\\\": null\\n}\".encode(),\n"),
            "{python}"
        );
    }

    #[test]
    fn response_without_a_body_is_not_parsed() {
        let url = "https://pets.example/v1/pets/1".to_owned();
        let media_type = "application/json";
        let request = ExampleRequest {
            method: "DELETE",
            url,
            media_type,
            body: None,
            has_key: false,
            has_result: false,
        };
        assert!(curl(&request).starts_with("curl -X DELETE 'https://pets.example/v1/pets/1' \\\n"));
        let script = javascript(&request);
        assert!(
            script.contains("const result = response.ok ? null : await response.json();\n"),
            "{script}"
        );
        assert!(
            script.ends_with("\nconsole.log(response.status);"),
            "{script}"
        );
        let python = python(&request);
        assert!(
            python.contains("result = response.json() if not response.ok else None\n"),
            "{python}"
        );
        assert!(
            python.ends_with("\nprint(response.status_code)"),
            "{python}"
        );
    }

    #[test]
    fn code_is_escaped() {
        let operation = router(true)
            .operations()
            .find(|operation| operation.id == "listPets")
            .unwrap();
        let html = block(operation, "https://pets.example/v1");
        assert!(html.contains("&quot;Authorization: Bearer"), "{html}");
    }
}
