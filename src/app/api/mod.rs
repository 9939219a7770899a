//! The operations: one file per resource, with its rows of the table of operations and its handlers. Knows the
//! store's reads and writes, and nothing of sockets or SQL.
//!
//! To add a resource, write its file, and name its rows in [`tables`] and its schemas in [`schemas`].

mod changes;
mod health;
mod idempotency;
mod orders;
mod paging;
pub mod pets;
mod search;
mod site_files;
pub mod store_inventory;
mod well_known;

pub use well_known::{API_CATALOG, FAVICON, ROBOTS, SITEMAP};

use crate::app::endpoint::{Operation, Router};

pub use health::{ALIVE, READY};
pub use paging::MAX_PAGE_ROWS;
pub use search::page_size;
pub use site_files::{ACCEPT, FILE, LATEST, NOT_FOUND, among_files, is_deployed};

/// The rows of every resource. `is_experimental`: also those that only `--experimental` serves.
const fn tables(is_experimental: bool) -> [&'static [Operation]; 11] {
    [
        if is_experimental {
            pets::FINDING
        } else {
            pets::LISTING
        },
        pets::OPERATIONS,
        if is_experimental {
            pets::EXPERIMENTAL
        } else {
            &[]
        },
        orders::OPERATIONS,
        if is_experimental {
            store_inventory::EXPERIMENTAL
        } else {
            &[]
        },
        if is_experimental {
            changes::EXPERIMENTAL
        } else {
            &[]
        },
        health::OPERATIONS,
        site_files::OPERATIONS,
        well_known::OPERATIONS,
        if cfg!(feature = "site") {
            well_known::PAGES
        } else {
            &[]
        },
        if cfg!(feature = "site") {
            site_files::PAGES
        } else {
            &[]
        },
    ]
}

/// The router of a service with or without the experimental operations.
pub fn router(is_experimental: bool) -> &'static Router {
    static CONTRACT: Router = Router(&tables(false));
    static EXPERIMENTAL: Router = Router(&tables(true));
    if is_experimental {
        &EXPERIMENTAL
    } else {
        &CONTRACT
    }
}

/// The schemas of every resource for the OpenAPI description: their names and their JSON Schemas. `is_experimental`:
/// also those of the experimental operations.
pub fn schemas(is_experimental: bool) -> Vec<(&'static str, petstore_base::json::Json)> {
    let mut schemas = pets::schemas(is_experimental);
    if is_experimental {
        schemas.extend(store_inventory::schemas());
        schemas.extend(changes::schemas());
    }
    schemas
}

/// Returns whether the first segment of a path belongs to an operation. A deploy may not have files there, except at
/// the well-known paths.
pub fn is_built_in(path: &str) -> bool {
    let well_known = [well_known::OPERATIONS, well_known::PAGES];
    let is_well_known = |row: &&Operation| {
        well_known
            .iter()
            .any(|rows| rows.iter().any(|own| own.path == row.path))
    };
    router(true)
        .operations()
        .filter(|row| !is_well_known(row))
        .any(|row| path.split('/').nth(1) == row.path.split('/').nth(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::endpoint::{Code, Handler, flaw};
    use crate::app::pipeline::is_protected;
    use petstore_base::http::Target;

    #[test]
    fn table_is_sound() {
        assert_eq!(flaw(&router(true).operations().collect::<Vec<_>>()), None);
    }

    #[test]
    fn nothing_is_written_without_a_key() {
        for row in router(true).operations().filter(|row| row.writes()) {
            assert!(is_protected(&Target::parse(row.path)), "{}", row.path);
        }
    }

    #[test]
    fn described_operations_have_a_tag_and_a_stability() {
        for row in router(true).operations() {
            let is_described = row.path.starts_with("/v1/");
            assert_eq!(row.tag.is_some(), is_described, "the tag of {}", row.id);
            assert_eq!(
                row.stability.is_some(),
                is_described,
                "the stability of {}",
                row.id
            );
        }
    }

    #[test]
    fn get_reads_and_any_other_method_writes() {
        for row in router(true).operations() {
            let is_write = matches!(row.handler, Handler::Write(..));
            assert_eq!(
                is_write,
                !["GET", "HEAD", "OPTIONS"].contains(&row.method()),
                "{}",
                row.id
            );
        }
    }

    #[test]
    fn messages_of_every_write_name_no_method() {
        for code in Code::general(true) {
            for row in router(true).operations().filter(|row| row.writes()) {
                assert!(
                    !code.usual_message().contains(row.method()),
                    "{}",
                    code.as_str()
                );
            }
        }
    }

    #[test]
    fn operations_state_how_many_rows_they_read() {
        for row in router(true).operations().chain([&FILE]) {
            assert!(row.rows.is_some(), "{} may read any number of rows", row.id);
        }
    }
}
