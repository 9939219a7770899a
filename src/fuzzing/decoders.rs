//! Decodes text from clients and operators, that is queries, paths, JSON and the rows of an import, and compares each
//! result with that of a second decoder.

use std::cell::RefCell;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::app::api::router;
use crate::app::endpoint::query::parameter;
use crate::app::endpoint::{Call, Handler};
use crate::model::{NewPet, PetStatus};
use crate::ops::transfer::fuzz_tests::rows;
use crate::store::{BatchWriter, Writer};
use petstore_base::http::{Request, Target};
use petstore_base::json::Invalid;
use petstore_base::testing::Folder;

/// Decodes text. Its first byte chooses the decoder: a query (`q`), a target (`t`), JSON (`j`), or the rows of an
/// import (others).
pub fn decoders(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    match (kind, str::from_utf8(rest)) {
        (b'q', Ok(text)) => query(text),
        (b't', Ok(text)) => target(text),
        (b'j', _) => {
            json(rest);
            bodies(rest);
        }
        (kind, _) => rows(*kind, rest),
    }
}

fn query(text: &str) {
    for name in ["limit", "status", "a", ""] {
        let mut values = text
            .split('&')
            .filter(|pair| !pair.is_empty())
            .filter_map(|pair| {
                let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
                (form_decoded(found) == name).then(|| form_decoded(value))
            });
        let expected = (values.next(), values.next());
        match parameter(Some(text), name) {
            Ok(value) => assert_eq!((value.map(|value| value.into_owned()), None), expected),
            Err(_) => assert!(expected.1.is_some()),
        }
    }
    // Any text can be a value.
    let sent: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let query = format!("x=&a={sent}&y");
    assert_eq!(parameter(Some(&query), "a").unwrap().unwrap(), text);
}

/// Decodes a name or a value of `application/x-www-form-urlencoded` (WHATWG URL, section 5.1).
fn form_decoded(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let digits = bytes
            .get(at + 1..at + 3)
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let (octet, length) = match (byte, digits) {
            (b'%', Some(digits)) => (
                u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap(),
                3,
            ),
            (b'+', _) => (b' ', 1),
            (other, _) => (*other, 1),
        };
        out.push(octet);
        at += length;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn target(text: &str) {
    let target = Target::parse(text);
    let (path, query) = text
        .split_once('?')
        .map_or((text, None), |(path, query)| (path, Some(query)));
    assert_eq!(target.query, query);
    if !path.contains('%') {
        assert_eq!(target.path, path);
        // The same path with its unreserved characters encoded is equivalent.
        let encoded = |character: char| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~' => {
                format!("%{:02X}", u32::from(character))
            }
            _ => character.to_string(),
        };
        assert_eq!(
            Target::parse(&path.chars().map(encoded).collect::<String>()).path,
            path
        );
    }
    for method in router(true)
        .operations()
        .map(|operation| operation.method())
        .chain(["HEAD"])
    {
        let Ok(operation) = router(true).route(method, &target) else {
            continue;
        };
        let row: Vec<&str> = operation.path.split('/').collect();
        let segments: Vec<&str> = target.path.split('/').collect();
        assert_eq!(row.len(), segments.len());
        for (expected, segment) in row.iter().zip(segments) {
            match expected
                .strip_prefix('{')
                .and_then(|name| name.strip_suffix('}'))
            {
                Some(name) => {
                    assert!(!segment.is_empty());
                    assert_eq!(operation.segment(name, &target.path), Some(segment));
                }
                None => assert_eq!(*expected, segment),
            }
        }
    }
}

fn json(bytes: &[u8]) {
    let read = NewPet::from_json(bytes);
    // The two may differ only in members that the service ignores: it does not limit the depth or the size of their
    // values.
    let other: serde_json::Value = match serde_json::from_slice(bytes) {
        Ok(value) => value,
        Err(error) => {
            let why = error.to_string();
            let is_fine = [
                "recursion limit",
                "out of range",
                "surrogate",
                "hex escape",
                "unicode",
            ];
            return assert!(
                read.is_err() || is_fine.iter().any(|word| why.contains(word)),
                "{why}"
            );
        }
    };
    let status = &other["status"];
    let has_status = match status.as_str() {
        Some(word) => ["available", "pending", "sold"].contains(&word),
        None => other.get("status").is_none(),
    };
    match read {
        Ok(pet) => {
            let NewPet {
                name,
                category_id,
                status: found,
            } = &pet;
            assert_eq!(other["name"].as_str(), Some(&**name));
            assert!(has_status && found.map(PetStatus::as_str) == status.as_str());
            match &other["categoryId"] {
                id if id.is_f64() => {
                    assert!((id.as_f64().unwrap() - *category_id as f64).abs() < 2048.0);
                }
                id => assert_eq!(id.as_i64(), Some(*category_id)),
            }
            let again = serde_json::to_vec(&pet.borrowed().with_id(1)).unwrap();
            assert_eq!(NewPet::with_id_from_json(&again), Ok((1, pet)));
        }
        Err(Invalid::Duplicate(_)) => assert!(members(bytes) > other.as_object().unwrap().len()),
        Err(invalid) => {
            let is_pet = other["name"].is_string() && other["categoryId"].is_i64() && has_status;
            assert!(!is_pet && !invalid.into_message().is_empty());
        }
    }
}

thread_local! {
    /// A database with a pet, to which nothing is committed, and its folder.
    static DATABASE: (RefCell<Writer>, Folder) = {
        let folder = Folder::in_memory();
        let mut writer = Writer::open(&folder.database()).unwrap();
        writer.insert_pet(&NewPet::new("a", 1), None).unwrap();
        writer.commit().unwrap();
        (writer.into(), folder)
    };
}

/// Sends the bytes as the body of each operation that writes, which accepts or rejects it.
fn bodies(bytes: &[u8]) {
    for operation in router(true)
        .operations()
        .filter(|operation| operation.body.is_some())
    {
        let Handler::Write(method, handler) = operation.handler else {
            continue;
        };
        // Each parameter of the path is 1, as the id of the pet.
        let segments = operation
            .path
            .split('/')
            .map(|name| if name.starts_with('{') { "1" } else { name });
        let path = segments.collect::<Vec<_>>().join("/");
        let headers = vec![("Content-Type", operation.media_types[0])];
        let request = Request {
            id: "an-id",
            method,
            target: &path,
            headers,
            body: bytes,
        };
        let call = Call {
            key_name: None,
            scope: None,
            operation,
            request: &request,
            target: Target::parse(&path),
            caller: None,
        };
        DATABASE.with(|(writer, _)| {
            let mut writer = writer.borrow_mut();
            if let Err(failure) = handler(&mut BatchWriter::new(&mut writer), &call) {
                let status = failure.into_response().status;
                assert!(status < 500, "{} is {status}", operation.id);
            }
            writer.undo();
        });
    }
}

/// Counts the members of an object, including duplicates.
fn members(bytes: &[u8]) -> usize {
    struct Count;
    impl<'de> Visitor<'de> for Count {
        type Value = usize;
        fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<usize, A::Error> {
            let mut count = 0;
            while map.next_entry::<String, IgnoredAny>()?.is_some() {
                count += 1;
            }
            Ok(count)
        }
    }
    serde_json::Deserializer::from_slice(bytes)
        .deserialize_map(Count)
        .unwrap()
}
