//! Looks up schemas and their examples in the components of the OpenAPI description.

use crate::app::api;
use petstore_base::json::{Json, NULL};

/// A component by its name; `null` if there is none.
pub fn schema(name: &str) -> Json {
    api::schemas(true)
        .into_iter()
        .find(|(known, _)| *known == name)
        .map_or(NULL.clone(), |(_, schema)| schema)
}

/// A schema, or the component that it refers to.
pub fn resolve(value: &Json) -> Json {
    referred(value).map_or_else(|| value.clone(), schema)
}

/// The name of the component whose fields a body has: for a list, that of its items.
pub fn item_of(name: &str) -> String {
    referred(&schema(name)["items"]).unwrap_or(name).to_owned()
}

/// Returns an example of a component; for a list, a list with one item.
pub fn example(name: &str) -> Json {
    let schema = schema(name);
    match (referred(&schema["items"]), &schema["examples"]) {
        (Some(item), _) => Json::Array(vec![example(item)]),
        (None, Json::Array(examples)) => examples[0].clone(),
        (None, _) => NULL.clone(),
    }
}

/// The name of the component that a schema refers to.
fn referred(schema: &Json) -> Option<&str> {
    schema["$ref"]
        .as_str()
        .and_then(|reference| reference.rsplit('/').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found_by_name_and_by_reference() {
        assert_eq!(*schema("PetStatus")["type"], "string");
        assert_eq!(
            resolve(&schema("NewPet")["properties"]["status"]),
            schema("PetStatus")
        );
        assert_eq!(example("Pets"), Json::Array(vec![example("Pet")]));
        assert_eq!(*example("Pet")["name"], "Rex");
        assert_eq!([item_of("Pets"), item_of("Pet")], ["Pet", "Pet"]);
        assert_eq!(schema("Nothing"), NULL);
    }
}
