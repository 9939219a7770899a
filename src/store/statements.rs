//! The statements that name every column of a pet, for both engines.

use std::sync::LazyLock;

use rusqlite::types::{ToSql, ToSqlOutput, ValueRef};

use crate::model::{MEMBERS, MemberValue, PetStatus};

/// The columns of [`MEMBERS`].
pub const COLUMNS: [&str; MEMBERS.len()] = ["name", "category_id", "status"];

/// The statements that name every column of a pet.
pub struct Statements {
    pub by_id: String,
    /// The cost does not depend on how many pets come before the page.
    pub page: String,
    pub page_of_status: String,
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
    let change =
        |(n, column): (usize, &&str)| format!("{column} = iif(?{}, ?{}, {column})", 2 * n + 2, 2 * n + 3);
    let changes = COLUMNS.iter().enumerate().map(change).collect::<Vec<_>>().join(", ");
    let same = COLUMNS.map(|column| format!("{column} = {column}")).join(", ");
    Statements {
        by_id: format!("SELECT id, {columns} FROM pets WHERE id = ?1"),
        page: format!("SELECT id, {columns} FROM pets WHERE id >= ?1 ORDER BY id LIMIT ?2"),
        page_of_status: format!(
            "SELECT id, {columns} FROM pets WHERE status = ?1 AND id >= ?2 ORDER BY id LIMIT ?3"
        ),
        every: format!("SELECT id, {columns} FROM pets ORDER BY id"),
        insert: format!("INSERT INTO pets ({columns}) VALUES ({values})"),
        insert_as: format!("INSERT INTO pets ({columns}, id) VALUES ({values_and_id})"),
        update: format!("UPDATE pets SET {changes} WHERE id = ?1"),
        rewrite: format!("UPDATE pets SET {same} WHERE id > (SELECT max(id) - ?1 FROM pets)"),
    }
});

/// The places of this many values.
pub fn places(count: usize) -> String {
    (1..=count).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ")
}

/// The greatest id ever assigned, including deleted pets.
pub const LAST_ID: &str = "SELECT max((SELECT ifnull(max(CAST(seq AS INTEGER)), 0) FROM sqlite_sequence WHERE name = 'pets'), \
    (SELECT ifnull(max(id), 0) FROM pets))";

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
