//! What a handler reads of a request.

use super::*;
use crate::app::endpoint::{Router, row};
use petstore_base::json::{AnyString, Integer};
static ID: PathParameter<Integer> = PathParameter {
    name: "id",
    about: "",
    schema: Integer::INT64,
};
static NAME: PathParameter<AnyString> = PathParameter {
    name: "name",
    about: "",
    schema: AnyString,
};
static ACCEPT: HeaderParameter = HeaderParameter::undescribed("Accept");
static ROUTER: Router = Router(&[&[Operation {
    parameters: &[&ID, &NAME, &ACCEPT],
    ..row("GET", "/x/{id}/photos/{name}", "deep")
}]]);
fn with_call<T>(target: &str, ask: impl FnOnce(&Call) -> T) -> T {
    let headers = vec![("accept", "a"), ("If-None-Match", "b"), ("Accept", "c")];
    let request = Request {
        id: "an-id",
        method: "GET",
        target,
        headers,
        body: b"",
    };
    let target = Target::parse(target);
    let operation = ROUTER.route("GET", &target).unwrap();
    ask(&Call {
        operation,
        request: &request,
        target,
        caller: None,
        key_name: None,
        scope: None,
    })
}
#[test]
fn parameters_of_the_path_are_found_by_name() {
    with_call("/x/7/photos/%41b?id=9", |call| {
        assert_eq!(call.path(&ID), Some(7));
        assert_eq!(call.path(&NAME).as_deref(), Some("Ab"));
    });
    with_call("/x/%37/photos/a%2Fb%20", |call| {
        assert_eq!(call.path(&NAME).as_deref(), Some("a/b "));
    });
    with_call("/x/seven/photos/a", |call| assert_eq!(call.path(&ID), None));
}
#[test]
fn declared_header_fields_can_be_read() {
    with_call("/x/7/photos/a", |call| {
        assert_eq!(call.header_values(&ACCEPT).collect::<Vec<_>>(), ["a", "c"]);
    });
}
#[test]
#[should_panic(expected = "deep does not declare the parameter x")]
fn undeclared_parameter_is_noticed() {
    let undeclared = QueryParameter {
        name: "x",
        about: "",
        schema: AnyString,
    };
    with_call("/x/7/photos/a", |call| drop(call.query(&undeclared)));
}
#[test]
#[should_panic(expected = "deep does not declare the parameter If-None-Match")]
fn undeclared_header_field_is_noticed() {
    with_call("/x/7/photos/a", |call| {
        drop(call.header_values(&IF_NONE_MATCH));
    });
}
#[test]
#[should_panic(expected = "deep does not declare a body")]
fn undeclared_body_is_noticed() {
    with_call("/x/7/photos/a", |call| drop(call.json_body()));
}
