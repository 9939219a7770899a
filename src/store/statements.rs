//! The statements that name every column of a pet, for both engines.

use std::sync::LazyLock;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::model::{MEMBERS, MemberValue, PetStatus};

/// The columns of [`MEMBERS`].
pub const COLUMNS: [&str; MEMBERS.len()] = ["name", "category_id", "status"];

/// The columns that filter a list, in the order of `PetQuery::filters`. Each set of them needs an index in `schema.sql`.
pub const FILTERS: [&str; crate::model::FILTERS] = ["status"];

/// The statement of a page with this set of filters.
fn page(set: usize) -> String {
    let given = FILTERS
        .iter()
        .enumerate()
        .filter(|(n, _)| set & (1 << n) != 0);
    let filters: String = (1..)
        .zip(given)
        .map(|(n, (_, column))| format!("{column} = ?{n} AND "))
        .collect();
    let (first, rows) = (set.count_ones() + 1, set.count_ones() + 2);
    let columns = COLUMNS.join(", ");
    format!(
        "SELECT id, {columns} FROM pets WHERE {filters}id >= ?{first} ORDER BY id LIMIT ?{rows}"
    )
}

/// The statements that name every column of a pet.
pub struct Statements {
    pub by_id: String,
    /// The pages of a list, for each set of [`FILTERS`]: bit `n` of the place stands for the filter at `n`. Their values are
    /// those of the filters, the first id, and the number of rows. The cost does not depend on how many pets come before.
    pub pages: Vec<String>,
    pub every: String,
    /// Its values are those of the pet.
    pub insert: String,
    /// After the values of the pet comes its id.
    pub insert_as: String,
    /// Its values are the id, and for each member whether it changes, and its new value.
    pub update: String,
    /// Writes this many of the newest pets as they are, and so every index.
    pub rewrite: String,
}

pub static STATEMENTS: LazyLock<Statements> = LazyLock::new(|| {
    let columns = COLUMNS.join(", ");
    let (values, values_and_id) = (places(COLUMNS.len()), places(COLUMNS.len() + 1));
    let change = |(n, column): (usize, &&str)| {
        format!("{column} = iif(?{}, ?{}, {column})", 2 * n + 2, 2 * n + 3)
    };
    let changes = COLUMNS
        .iter()
        .enumerate()
        .map(change)
        .collect::<Vec<_>>()
        .join(", ");
    let same = COLUMNS
        .map(|column| format!("{column} = {column}"))
        .join(", ");
    Statements {
        by_id: format!("SELECT id, {columns} FROM pets WHERE id = ?1"),
        pages: (0..1 << FILTERS.len()).map(page).collect(),
        every: format!("SELECT id, {columns} FROM pets ORDER BY id"),
        insert: format!("INSERT INTO pets ({columns}) VALUES ({values})"),
        insert_as: format!("INSERT INTO pets ({columns}, id) VALUES ({values_and_id})"),
        update: format!("UPDATE pets SET {changes} WHERE id = ?1"),
        rewrite: format!("UPDATE pets SET {same} WHERE id > (SELECT max(id) - ?1 FROM pets)"),
    }
});

/// The places of this many values.
pub fn places(count: usize) -> String {
    (1..=count)
        .map(|n| format!("?{n}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The greatest id ever assigned, including deleted pets.
pub const LAST_ID: &str = "SELECT max((SELECT ifnull(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence WHERE name = 'pets'), \
    (SELECT ifnull(max(id), 0) FROM pets))";

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
