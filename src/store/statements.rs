//! The statements that name every column of a pet. A test compares each with [`COLUMNS`].

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::model::{MEMBERS, MemberValue, Order, PetQuery, PetStatus};

/// The columns of [`MEMBERS`].
pub const COLUMNS: [&str; MEMBERS.len()] = ["name", "category_id", "status"];

/// The columns that filter a list, in the order of `PetQuery::filters`. Each set of them needs an index in `schema.sql`.
pub const FILTERS: [&str; crate::model::FILTERS] = ["status"];

/// The pet with an id.
pub const BY_ID: &str = "SELECT id, name, category_id, status FROM pets WHERE id = ?1";

/// The pages of a list, by [`Order`] and for each set of [`FILTERS`]: bit `n` of the place stands for the filter at `n`.
/// Their values are those of the filters, the first id, and the number of rows. The cost does not depend on how many pets
/// come before.
pub const PAGES: [[&str; 1 << FILTERS.len()]; Order::ALL.len()] = [
    [
        "SELECT id, name, category_id, status FROM pets WHERE id >= ?1 ORDER BY id LIMIT ?2",
        "SELECT id, name, category_id, status FROM pets WHERE status = ?1 AND id >= ?2 ORDER BY id LIMIT ?3",
    ],
    [
        "SELECT id, name, category_id, status FROM pets WHERE id <= ?1 ORDER BY id DESC LIMIT ?2",
        "SELECT id, name, category_id, status FROM pets WHERE status = ?1 AND id <= ?2 ORDER BY id DESC LIMIT ?3",
    ],
];

/// Counts all pets, and those with each status. It reads the pages of the table in order, which is fast, and each entry
/// of an index.
pub const COUNT: &str = "SELECT count(*), (SELECT count(*) FROM pets WHERE status = 'available'), \
    (SELECT count(*) FROM pets WHERE status = 'pending'), (SELECT count(*) FROM pets WHERE status = 'sold') FROM pets NOT INDEXED";

/// The statement of a list.
pub struct ListStatement {
    pub sql: &'static str,
    filters: [Option<MemberValue<'static>>; FILTERS.len()],
    first: i64,
    rows: u32,
}

impl ListStatement {
    /// `None` if no pet can be on the page.
    pub fn of(query: &PetQuery) -> Option<Self> {
        let (first, rows, filters) = (query.page.first()?, query.page.rows(), query.filters());
        let is_set =
            |(n, filter): (usize, &Option<MemberValue>)| usize::from(filter.is_some()) << n;
        let set: usize = filters.iter().enumerate().map(is_set).sum();
        Some(Self {
            sql: PAGES[query.page.order as usize][set],
            filters,
            first,
            rows,
        })
    }

    pub fn values(&self) -> Vec<&dyn ToSql> {
        let filters = self
            .filters
            .iter()
            .flatten()
            .map(|value| value as &dyn ToSql);
        filters
            .chain([&self.first as &dyn ToSql, &self.rows])
            .collect()
    }
}

/// Every pet.
pub const EVERY: &str = "SELECT id, name, category_id, status FROM pets ORDER BY id";

/// Adds a pet.
pub const INSERT: &str = "INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3)";

/// Adds a pet with an id.
pub const INSERT_AS: &str =
    "INSERT INTO pets (name, category_id, status, id) VALUES (?1, ?2, ?3, ?4)";

/// Changes the pet with the id `?1`. For each member there are two values: whether it changes, and its new value.
pub const UPDATE: &str = "UPDATE pets SET name = iif(?2, ?3, name), category_id = iif(?4, ?5, category_id), \
    status = iif(?6, ?7, status) WHERE id = ?1";

/// Writes this many of the newest pets as they are, and so every index.
pub const REWRITE: &str = "UPDATE pets SET name = name, category_id = category_id, status = status \
    WHERE id > (SELECT max(id) - ?1 FROM pets)";

/// The greatest id ever assigned, including deleted pets.
pub const LAST_ID: &str = "SELECT max((SELECT ifnull(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence WHERE name = 'pets'), \
    (SELECT ifnull(max(id), 0) FROM pets))";

/// The note of an import whose input has the digest `?1`.
pub const IMPORTED: &str = "SELECT at, first_id, last_id FROM imports WHERE input = ?1";

/// Has a table give no id up to `?1` again; its name is `?2`. With [`ADD_SEQUENCE`], as there is a row for a table only
/// after its first insert (`sqlite.org/autoinc.html`).
pub const RAISE_SEQUENCE: &str = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = ?2";
pub const ADD_SEQUENCE: &str = "INSERT INTO sqlite_sequence (seq, name) SELECT ?1, ?2 \
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?2)";

impl ToSql for MemberValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::None => ValueRef::Null,
        }))
    }
}

impl ToSql for PetStatus {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_names_every_column_in_the_order_of_the_members() {
        let snake = |name: &str| name.replace("Id", "_id");
        assert_eq!(
            COLUMNS.map(str::to_owned),
            MEMBERS.map(|member| snake(member.name()))
        );
        let listed = COLUMNS.join(", ");
        let places: Vec<String> = (1..=COLUMNS.len() + 1).map(|n| format!("?{n}")).collect();
        let (values, and_id) = (places[..COLUMNS.len()].join(", "), places.join(", "));
        for select in [BY_ID, EVERY].iter().chain(PAGES.as_flattened()) {
            let expected = format!("SELECT id, {listed} FROM pets ");
            assert_eq!(select.get(..expected.len()), Some(&*expected), "{select}");
        }
        let sets = PAGES[0].iter().zip(PAGES[1]).enumerate();
        for (set, (page, descending)) in sets {
            let reversed = page
                .replace(">=", "<=")
                .replace("ORDER BY id", "ORDER BY id DESC");
            assert_eq!(descending, reversed);
            let filters = (0..).zip(FILTERS).filter(|(n, _)| set & (1 << n) != 0);
            let filters: String = (1..)
                .zip(filters)
                .map(|(n, (_, column))| format!("{column} = ?{n} AND "))
                .collect();
            assert!(page.contains(&format!(" WHERE {filters}id >= ")), "{page}");
        }
        assert_eq!(
            INSERT,
            format!("INSERT INTO pets ({listed}) VALUES ({values})")
        );
        assert_eq!(
            INSERT_AS,
            format!("INSERT INTO pets ({listed}, id) VALUES ({and_id})")
        );
        let changed = (1..)
            .zip(COLUMNS)
            .map(|(n, column)| format!("{column} = iif(?{}, ?{}, {column})", 2 * n, 2 * n + 1));
        let changed = changed.collect::<Vec<_>>().join(", ");
        assert_eq!(UPDATE, format!("UPDATE pets SET {changed} WHERE id = ?1"));
        let same = COLUMNS
            .map(|column| format!("{column} = {column}"))
            .join(", ");
        assert!(
            REWRITE.starts_with(&format!("UPDATE pets SET {same} WHERE ")),
            "{REWRITE}"
        );
    }
}
