//! Detects a create that is sent again.

use xxhash_rust::xxh3::xxh3_128;

use super::NewPet;

/// The caller of a request: a digest of the name of its API key. A rotated key keeps its name, so a retry with the new
/// key is still detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller([u8; 16]);

impl Caller {
    /// The key that the database stores under this name.
    pub fn stored(name: &str) -> Self {
        Self(digest([b"stored", name.as_bytes()]))
    }

    /// A program that adds pets without HTTP.
    pub fn host() -> Self {
        Self(digest([b"host", b""]))
    }

    /// The key from the environment. It differs from every stored key, whatever their names.
    pub fn extra() -> Self {
        Self(digest([b"extra", b""]))
    }
}

/// An `Idempotency-Key` of one caller: a digest, so that all have the same length in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdempotencyKey(pub [u8; 16]);

impl IdempotencyKey {
    /// The key that a caller chose.
    pub fn new(caller: Caller, text: &[u8]) -> Self {
        Self(digest([&caller.0, text]))
    }
}

impl NewPet<'_> {
    /// Returns a hash of the pet's values, which does not depend on the form of its JSON. A collision only affects the
    /// client that constructs it, since idempotency keys are scoped by caller.
    pub fn fingerprint(&self) -> [u8; 16] {
        let json = serde_json::to_vec(&self.borrowed().with_id(0)).unwrap_or_default();
        xxh3_128(&json).to_be_bytes()
    }
}

/// The first 16 bytes of a SHA-256 digest of two parts. The length of the first is hashed too, so no other pair has the
/// same input.
fn digest([first, second]: [&[u8]; 2]) -> [u8; 16] {
    let mut hash = hmac_sha256::Hash::new();
    hash.update((first.len() as u64).to_le_bytes());
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

    /// A database that moves to a machine of another word size or byte order still finds its retries.
    #[test]
    fn stored_digests_are_the_same_on_every_machine() {
        let hex = |bytes: [u8; 16]| format!("{:032x}", u128::from_be_bytes(bytes));
        let rex = NewPet::from_json(br#"{"name":"Rex","categoryId":1,"status":"sold"}"#).unwrap();
        let keys = [Caller::stored("ci"), Caller::extra()]
            .map(|caller| IdempotencyKey::new(caller, b"1").0);
        assert_eq!(
            [rex.fingerprint(), keys[0], keys[1]].map(hex),
            [
                "adb73636ebadc00ac03f277cfc73b0cf",
                "b6673a49e1de8cbc3bcdf2ca0466133b",
                "95021f102b384d97f2d25063dd464b49"
            ]
        );
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
