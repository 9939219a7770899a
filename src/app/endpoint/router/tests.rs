use super::*;
use crate::app::endpoint::Handler;

/// Returns the flaw of a table: a malformed row, a duplicate name, or two rows that match the same
/// request.
pub fn flaw(rows: &[&Operation]) -> Option<String> {
    for (i, row) in rows.iter().enumerate() {
        let segments: Vec<&str> = row.path.split('/').skip(1).collect();
        let is_plain = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b))
        };
        let is_parameter = |segment: &str| segment.starts_with('{');
        let is_segment = |segment: &&str| {
            let inner = segment
                .strip_prefix('{')
                .and_then(|rest| rest.strip_suffix('}'));
            !inner.unwrap_or(segment).is_empty() && is_plain(inner.unwrap_or(segment))
        };
        let is_path = row.path == "/" || segments.iter().all(is_segment);
        if !row.path.starts_with('/') || !is_path {
            return Some(format!("{} is malformed", row.path));
        }
        if row.id.is_empty() || !row.id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return Some(format!("{:?} is no id", row.id));
        }
        for earlier in &rows[..i] {
            if earlier.id == row.id {
                return Some(format!("{} is there twice", row.id));
            }
            // Two rows collide if each segment of one matches that of the other.
            let others: Vec<&str> = earlier.path.split('/').skip(1).collect();
            let meets = |(a, b): (&&str, &&str)| a == b || is_parameter(a) || is_parameter(b);
            let is_shared =
                segments.len() == others.len() && segments.iter().zip(&others).all(meets);
            if is_shared && (earlier.method() == row.method() || earlier.path != row.path) {
                return Some(format!(
                    "{} {} meets {}",
                    row.method(),
                    row.path,
                    earlier.path
                ));
            }
        }
    }
    None
}

/// A row for tests, whose handler never runs.
pub const fn row(method: &'static str, path: &'static str, id: &'static str) -> Operation {
    Operation::new(path, id, Handler::Write(method, |_, _| unreachable!()))
}

const fn get(path: &'static str, id: &'static str) -> Operation {
    row("GET", path, id)
}

const ROUTER: Router = Router(&[
    &[
        get("/v1/pets", "list"),
        row("POST", "/v1/pets", "create"),
        get("/v1/pets/{id}", "get"),
    ],
    &[get("/v1/store/orders", "orders"), get("/", "root")],
    &[row("DELETE", "/v1/photos/{name}/of/{id}", "remove")],
]);

fn found(method: &str, path: &str) -> Result<&'static str, Code> {
    let route = ROUTER.route(method, &Target::parse(path));
    route
        .map(|operation| operation.id)
        .map_err(|error| error.code)
}

#[test]
fn sound_tables_have_no_flaw() {
    assert_eq!(flaw(&ROUTER.operations().collect::<Vec<_>>()), None);
    assert_eq!(flaw(&[&get("/a/{b}", "c"), &get("/a/{b}/c", "d")]), None);
}

#[test]
fn unsound_tables_are_noticed() {
    for (rows, said) in [
        ([get("/a", "a"), get("/a", "b")], "meets"),
        ([get("/a/{b}", "a"), get("/a/c", "b")], "meets"),
        ([get("/v1/{b}", "a"), row("POST", "/v1/{c}", "b")], "meets"),
        ([get("/{a}/b", "a"), get("/c/{d}", "b")], "meets"),
        ([get("/a", "a"), get("/b", "a")], "twice"),
        ([get("/a", "a"), get("b", "b")], "malformed"),
        ([get("/a", "a"), get("/b/", "b")], "malformed"),
        ([get("/a", "a"), get("/b//c", "b")], "malformed"),
        ([get("/a", "a"), get("/b/{c", "b")], "malformed"),
        ([get("/a", "a"), get("/b/x{c}", "b")], "malformed"),
        ([get("/a", "a"), get("/b/{}", "b")], "malformed"),
        ([get("/a", "a"), get("/b%20", "b")], "malformed"),
        ([get("/a", "a"), get("/b", "")], "no id"),
    ] {
        let flaw = flaw(&[&rows[0], &rows[1]]);
        assert!(
            flaw.as_ref().is_some_and(|flaw| flaw.contains(said)),
            "{:?}: {flaw:?}",
            rows[1].path
        );
    }
}

#[test]
fn paths_are_matched_by_segments() {
    for path in ["/a/5/photo", "/a/{b}/photo", "/a/%2F/photo"] {
        assert!(fits(&get("/a/{b}/photo", ""), path), "{path}");
    }
    for path in [
        "/a/5",
        "/a//photo",
        "/a/5/photo/",
        "/a/5/photos",
        "/a/5/6/photo",
        "/b/5/photo",
        "a/5/photo",
        "",
    ] {
        assert!(!fits(&get("/a/{b}/photo", ""), path), "{path}");
    }
}

#[test]
fn parameters_are_captured() {
    let path = "/v1/photos/a.png/of/7";
    let operation = ROUTER.route("DELETE", &Target::parse(path)).unwrap();
    assert_eq!(operation.segment("name", path), Some("a.png"));
    assert_eq!(operation.segment("id", path), Some("7"));
    assert_eq!(operation.segment("x", path), None);
}

#[test]
fn rows_are_found() {
    assert_eq!(found("GET", "/v1/pets?limit=1"), Ok("list"));
    assert_eq!(found("HEAD", "/v1/pets"), Ok("list"));
    assert_eq!(found("POST", "/v1/pets"), Ok("create"));
    assert_eq!(found("GET", "/v1/p%65ts/%31"), Ok("get"));
    assert_eq!(found("GET", "/v1/store/orders"), Ok("orders"));
    assert_eq!(found("GET", "/"), Ok("root"));
}

#[test]
fn unknown_paths_are_404() {
    for path in [
        "/docs/",
        "/v1",
        "/v1/",
        "/v1/pets/",
        "/v1/pets/1/2",
        "//v1/pets",
        "/v1%2Fpets",
        "/V1/pets",
        "*",
    ] {
        assert_eq!(found("GET", path), Err(Code::NotFound), "{path}");
    }
}

#[test]
fn known_paths_say_what_they_take() {
    let error = |method, path| ROUTER.route(method, &Target::parse(path)).err().unwrap();
    let refused =
        |allow: &'static str| ApiError::new(Code::MethodNotAllowed).header("Allow", allow);
    assert_eq!(
        error("DELETE", "/v1/pets"),
        refused("GET, HEAD, POST, OPTIONS")
    );
    assert_eq!(error("POST", "/v1/pets/1"), refused("GET, HEAD, OPTIONS"));
}

#[test]
fn unknown_methods_are_501_everywhere() {
    for path in ["/v1/pets", "/nowhere"] {
        assert_eq!(found("BREW", path), Err(Code::NotImplemented));
        assert_eq!(found("get", path), Err(Code::NotImplemented));
    }
}

#[test]
fn options_lists_the_methods() {
    let allow = |path| {
        ROUTER
            .options(&Target::parse(path))
            .unwrap()
            .field("Allow")
            .map(str::to_owned)
    };
    assert_eq!(
        allow("/v1/pets").as_deref(),
        Some("GET, HEAD, POST, OPTIONS")
    );
    assert_eq!(
        allow("*").as_deref(),
        Some("GET, HEAD, POST, DELETE, OPTIONS")
    );
    assert_eq!(
        allow("/v1/photos/a/of/b").as_deref(),
        Some("DELETE, OPTIONS")
    );
    assert!(ROUTER.options(&Target::parse("/nowhere")).is_err());
}
