//! Finds environment variables that are probably misspelt.

use petstore::{SETTINGS, VARIABLES};

/// Warns of every `PETSTORE_` variable that the program does not know.
pub fn warn_unknown() {
    for (name, value) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if let Some(meant) = unknown(&name, &value.to_string_lossy()) {
            log::warn!("the environment variable {name} is unknown and has no effect{meant}");
        }
    }
}

/// Returns the question for an unknown variable, which is empty if none is similar; `None` if it is known, or does not
/// belong to petstore.
fn unknown(name: &str, value: &str) -> Option<String> {
    // Kubernetes sets these variables for services with names such as petstore and petstore-admin.
    let is_foreign = ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"]
        .iter()
        .any(|part| name.contains(part))
        || name.ends_with("_PORT") && value.contains("://");
    if !name.starts_with("PETSTORE_") || is_foreign {
        return None;
    }
    let others = VARIABLES.iter().map(|variable| variable.name.to_owned());
    let settings = SETTINGS.iter().map(petstore::Setting::variable);
    let known: Vec<String> = settings.chain(others).collect();
    if known.iter().any(|known| known == name) {
        return None;
    }
    let name = name.to_ascii_uppercase();
    let differing = if name.len() < 16 { 1 } else { 2 };
    let meant = meant(&name, known.iter().map(String::as_str), differing);
    let question = meant.map(|known| format!("; did you mean {known}?"));
    Some(question.unwrap_or_default())
}

/// Returns the known word that was probably meant by another one: at most this number of letters in the middle differ.
pub fn meant<'k>(
    word: &str,
    known: impl Iterator<Item = &'k str>,
    differing: usize,
) -> Option<&'k str> {
    let same = |(a, b): &(char, char)| a == b;
    let alike = |other: &str| {
        let first = word.chars().zip(other.chars()).take_while(same).count();
        let ends = word.chars().rev().zip(other.chars().rev());
        first + ends.take_while(same).count()
    };
    known
        .filter(|known| alike(known) + differing >= word.len().max(known.len()).max(3))
        .max_by_key(|known| alike(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_error_of_a_variable_is_named_and_no_other_meaning_suggested() {
        for (name, known) in [
            ("PETSTORE_DATABSE", "PETSTORE_DATABASE"),
            ("PETSTORE_WORKER", "PETSTORE_WORKERS"),
            ("PETSTORE_LISTN", "PETSTORE_LISTEN"),
            ("PETSTORE_API_KEYS", "PETSTORE_API_KEY"),
            ("PETSTORE_TRUSTED_PROXYS", "PETSTORE_TRUSTED_PROXY"),
            ("PETSTORE_log_format", "PETSTORE_LOG_FORMAT"),
        ] {
            let question = format!("; did you mean {known}?");
            assert_eq!(unknown(name, "x"), Some(question), "{name}");
        }
        for name in [
            "ADMIN_PORT",
            "DB",
            "PORT",
            "LOG_LEVEL",
            "FILE",
            "DATA_DIR",
            "API_URL",
            "TIMEOUT",
        ] {
            let name = format!("PETSTORE_{name}");
            assert_eq!(unknown(&name, "x").as_deref(), Some(""), "{name}");
        }
        for (name, value) in [
            ("PETSTORE_API_KEY_FILE", "/run/key"),
            ("PETSTORE_SERVICE_HOST", "10.0.0.1"),
            ("PETSTORE_PORT", "tcp://10.0.0.1:8080"),
            ("PETSTORE_PORT_8080_TCP_ADDR", "10.0.0.1"),
            ("PETSTORE_ADMIN_SERVICE_HOST", "10.0.0.1"),
            ("PETSTORE_ADMIN_SERVICE_PORT", "8090"),
            ("PETSTORE_SERVICE_PORT_HTTP", "80"),
            ("PETSTORE_ADMIN_PORT", "tcp://10.0.0.1:8090"),
            ("PETSTORE_DNS_PORT", "udp://10.0.0.1:53"),
            ("PETSTORE_ADMIN_PORT_9090_TCP", "tcp://10.0.0.1:9090"),
            ("PETSTORE_ADMIN_PORT_9090_TCP_PROTO", "tcp"),
            ("MY_PETSTORE_WORKER", "1"),
            ("PETSTORE", "target/release/petstore"),
        ] {
            assert_eq!(unknown(name, value), None, "{name}");
        }
    }
}
