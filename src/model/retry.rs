//! Detects that a create is sent again.

use xxhash_rust::xxh3::xxh3_128;

use super::NewPet;

/// The caller of a request: a digest of the name of the API key, so that a rotation between two tries changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller([u8; 16]);

impl Caller {
    /// The key that the database stores under this name.
    pub fn stored(name: &str) -> Self {
        Self(digest([b"stored", name.as_bytes()]))
    }

    /// The key from the environment, whatever the names of the stored ones.
    pub fn extra() -> Self {
        Self(digest([b"extra", b""]))
    }
}

/// An `Idempotency-Key` of one caller: a digest, so that its length does not matter to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(pub [u8; 16]);

impl IdempotencyKey {
    /// The key that a caller chose.
    pub fn new(caller: Caller, text: &[u8]) -> Self {
        Self(digest([&caller.0, text]))
    }
}

impl NewPet<'_> {
    /// A hash of the pet, however its JSON was written. A collision only affects the client that constructs it, since
    /// idempotency keys are scoped by caller.
    pub fn fingerprint(&self) -> [u8; 16] {
        let json = serde_json::to_vec(&self.with_id(0)).unwrap_or_default();
        xxh3_128(&json).to_be_bytes()
    }
}

/// The first 16 bytes of a SHA-256 digest of two parts, which stay apart.
fn digest([first, second]: [&[u8]; 2]) -> [u8; 16] {
    let mut hash = hmac_sha256::Hash::new();
    hash.update(first.len().to_le_bytes());
    hash.update(first);
    hash.update(second);
    let mut short = [0; 16];
    short.copy_from_slice(&hash.finalize()[..16]);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprint_tells_pets_apart_and_not_their_json() {
        let of = |json: &str| NewPet::from_json(json.as_bytes()).unwrap().fingerprint();
        let rex = of(r#"{"name":"Rex","categoryId":1,"status":"sold"}"#);
        for same in [
            r#" { "status" : "sold", "id": 9, "categoryId": 1e0, "name": "\u0052ex", "x": 1 } "#,
            r#"{"name":"Rex","categoryId":1.0,"status":"sold"}"#,
        ] {
            assert_eq!(of(same), rex, "{same}");
        }
        for other in [
            r#"{"name":"Rex","categoryId":1}"#,
            r#"{"name":"Rex","categoryId":2,"status":"sold"}"#,
            r#"{"name":"soldRex","categoryId":1}"#,
            r#"{"name":"rex","categoryId":1,"status":"sold"}"#,
        ] {
            assert_ne!(of(other), rex, "{other}");
        }
    }

    #[test]
    fn keys_of_different_callers_differ() {
        let of = |caller, text: &str| IdempotencyKey::new(caller, text.as_bytes());
        assert_eq!(of(Caller::stored("ci"), "1"), of(Caller::stored("ci"), "1"));
        for (caller, text) in [
            (Caller::stored("ci"), "2"),
            (Caller::stored("ci1"), ""),
            (Caller::stored("PETSTORE_API_KEY"), "1"),
            (Caller::extra(), "1"),
        ] {
            assert_ne!(of(caller, text), of(Caller::stored("ci"), "1"), "{text}");
        }
        assert_ne!(Caller::extra(), Caller::stored(""));
    }
}
