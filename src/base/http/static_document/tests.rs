use super::*;

pub fn ask(asset: &Asset, encoding: Option<&str>, tag: Option<&str>) -> Response {
    asset.respond(&AssetFields {
        accept_encoding: encoding.into_iter().collect(),
        if_none_match: tag.into_iter().collect(),
    })
}

#[test]
fn client_with_the_tag_gets_304() {
    let asset = Asset::new("text/plain", b"a".to_vec());
    let tag = ask(&asset, None, None).field("ETag").unwrap().to_owned();
    for value in [
        tag.clone(),
        format!("W/{tag}"),
        format!("\"x\", {tag}"),
        "*".to_owned(),
    ] {
        let response = ask(&asset, None, Some(&value));
        assert_eq!(
            (response.status, response.body()),
            (304, &b""[..]),
            "{value}"
        );
        assert_eq!(response.field("ETag"), Some(tag.as_str()));
    }
    assert_eq!(ask(&asset, None, Some("\"x\"")).status, 200);
    let other = Asset::new("text/plain", b"b".to_vec());
    assert_eq!(ask(&other, None, Some(&tag)).status, 200);
}
