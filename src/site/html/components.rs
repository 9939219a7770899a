//! Looks up schemas and their examples in the components of the interface description.

use serde_json::Value;

use crate::app::api;

/// A component by its name; `null` if there is none.
pub fn schema(name: &str) -> Value {
    api::schemas().into_iter().find(|(known, _)| *known == name).map_or(Value::Null, |(_, schema)| schema)
}

/// A schema, or the component that it refers to.
pub fn resolve(value: &Value) -> Value {
    referred(value).map_or_else(|| value.clone(), schema)
}

/// Returns an example of a component; for a list, a list with one item.
pub fn example(name: &str) -> Value {
    let schema = schema(name);
    referred(&schema["items"])
        .map_or_else(|| schema["examples"][0].clone(), |item| Value::Array(vec![example(item)]))
}

/// The name of the component that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_found_by_name_and_by_reference() {
        assert_eq!(schema("PetStatus")["type"], "string");
        assert_eq!(resolve(&schema("NewPet")["properties"]["status"]), schema("PetStatus"));
        assert_eq!(example("Pets"), Value::Array(vec![example("Pet")]));
        assert_eq!(example("Pet")["name"], "Rex");
        assert_eq!(schema("Nothing"), Value::Null);
    }
}
