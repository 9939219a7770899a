//! The statements on the project: its plan, its deploys, its domains and their redirects.

use std::ops::Deref;
use std::str::FromStr;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Database, StoreError, Writer};
use crate::model::{Deploy, Domain, Plan, Reason, Redirect, SiteFile};

/// What can be read of the project.
pub struct ProjectReads<'c>(&'c Connection);

/// The same, and what can be changed, within one transaction.
pub struct ProjectChange<'c>(ProjectReads<'c>);

impl Database {
    /// The project, where its file is still the database.
    ///
    /// # Errors
    /// Where the file was moved or deleted.
    pub fn project(&self) -> Result<ProjectReads<'_>, StoreError> {
        Ok(ProjectReads(self.connection()?))
    }
}

impl Writer {
    /// Looks and changes in one transaction: all of it is on the disk, or nothing has changed.
    ///
    /// # Errors
    /// Those of the work, and where the database cannot be written.
    pub fn change_project<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&ProjectChange) -> Result<T, E>,
    ) -> Result<T, E> {
        self.look()?;
        // A work that panicked has left its transaction.
        self.undo();
        let opened = self.open_transaction().map_err(E::from);
        let done = opened.and_then(|()| work(&ProjectChange(ProjectReads(&self.database.connection))));
        match done {
            Ok(done) => Ok(self.commit().map(|_| done)?),
            Err(error) => {
                self.undo();
                Err(error)
            }
        }
    }
}

const DOMAIN: &str =
    "SELECT name, state, since, reason, message, added_at, checked_at, is_primary FROM domains";

fn domain(row: &Row<'_>) -> rusqlite::Result<Domain> {
    let reason: (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
    Ok(Domain {
        name: row.get(0)?,
        state: word(row, 1)?,
        since: row.get(2)?,
        reason: reason.0.map(|code| Reason { code, message: reason.1.unwrap_or_default() }),
        added_at: row.get(5)?,
        checked_at: row.get(6)?,
        is_primary: row.get(7)?,
    })
}

/// A word that the schema allows.
fn word<T: FromStr<Err = String>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    text.parse().map_err(|expected: String| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, expected.into())
    })
}

fn redirect(row: &Row<'_>) -> rusqlite::Result<Redirect> {
    Ok(Redirect { from: row.get(0)?, to: row.get(1)?, status: row.get(2)? })
}

impl ProjectReads<'_> {
    /// What is paid for.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn plan(&self) -> Result<Plan, StoreError> {
        Ok(self.0.prepare_cached("SELECT plan FROM project")?.query_row([], |row| word(row, 0))?)
    }

    /// Every domain, by name.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn domains(&self) -> Result<Vec<Domain>, StoreError> {
        let mut statement = self.0.prepare_cached(&format!("{DOMAIN} ORDER BY name"))?;
        Ok(statement.query_map([], domain)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The domain of this name, in A-labels and lower case.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn domain(&self, name: &str) -> Result<Option<Domain>, StoreError> {
        let mut statement = self.0.prepare_cached(&format!("{DOMAIN} WHERE name = ?1"))?;
        Ok(statement.query_row([name], domain).optional()?)
    }

    /// The domain that the others stand for.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn primary(&self) -> Result<Option<String>, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT name FROM domains WHERE is_primary = 1")?;
        Ok(statement.query_row([], |row| row.get(0)).optional()?)
    }

    /// Every redirect, by the name that it is from.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn redirects(&self) -> Result<Vec<Redirect>, StoreError> {
        let mut statement =
            self.0.prepare_cached("SELECT source, target, status FROM redirects ORDER BY source")?;
        Ok(statement.query_map([], redirect)?.collect::<rusqlite::Result<_>>()?)
    }

    /// The redirect from this name.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn redirect(&self, from: &str) -> Result<Option<Redirect>, StoreError> {
        let mut statement =
            self.0.prepare_cached("SELECT source, target, status FROM redirects WHERE source = ?1")?;
        Ok(statement.query_row([from], redirect).optional()?)
    }

    /// The deploys that are kept, the newest first.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn deploys(&self) -> Result<Vec<Deploy>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT d.id, d.deployed_at, count(f.path), ifnull(sum(length(f.content)), 0),
                    d.id IS (SELECT deploy FROM project)
             FROM deploys AS d LEFT JOIN deploy_files AS f ON f.deploy = d.id
             WHERE d.deployed_at IS NOT NULL GROUP BY d.id ORDER BY d.id DESC",
        )?;
        let deploy = |row: &Row| {
            Ok(Deploy {
                id: row.get(0)?,
                deployed_at: row.get(1)?,
                files: row.get(2)?,
                bytes: row.get(3)?,
                is_live: row.get(4)?,
            })
        };
        Ok(statement.query_map([], deploy)?.collect::<rusqlite::Result<_>>()?)
    }

    /// Whether the site was ever deployed.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn is_deployed(&self) -> Result<bool, StoreError> {
        let mut statement = self.0.prepare_cached("SELECT deploy IS NOT NULL FROM project")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// What is known of the static file at a path of the deploy that is served, or, where there is none, of that at
    /// `other`. Reads nothing of what is in it.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn file(&self, path: &str, other: &str) -> Result<Option<FileInfo>, StoreError> {
        let mut statement = self.0.prepare_cached(
            "SELECT rowid, path, content_type, tag, length(gzip) IS NOT NULL FROM deploy_files
             WHERE deploy = (SELECT deploy FROM project) AND path IN (?1, ?2) ORDER BY path <> ?1 LIMIT 1",
        )?;
        let file = |row: &Row| {
            Ok(FileInfo {
                row: row.get(0)?,
                path: row.get(1)?,
                content_type: row.get(2)?,
                tag: row.get(3)?,
                has_gzip: row.get(4)?,
            })
        };
        Ok(statement.query_row([path, other], file).optional()?)
    }

    /// What is in a file, in gzip or as it is.
    ///
    /// # Errors
    /// Where the database cannot be read, or the file has gone since it was found.
    pub fn content(&self, file: &FileInfo, gzip: bool) -> Result<Vec<u8>, StoreError> {
        let column = if gzip { "gzip" } else { "content" };
        let mut statement =
            self.0.prepare_cached(&format!("SELECT {column} FROM deploy_files WHERE rowid = ?1"))?;
        Ok(statement.query_row([file.row], |row| row.get(0))?)
    }
}

/// What is known of a static file before it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    row: i64,
    /// As in a request, without percent-encoding.
    pub path: String,
    /// The media type.
    pub content_type: String,
    /// The entity tag without its quotes.
    pub tag: String,
    /// Whether there is its content in gzip as well.
    pub has_gzip: bool,
}

impl<'c> Deref for ProjectChange<'c> {
    type Target = ProjectReads<'c>;

    fn deref(&self) -> &ProjectReads<'c> {
        &self.0
    }
}

impl ProjectChange<'_> {
    fn execute(&self, sql: &str, parameters: impl rusqlite::Params) -> Result<usize, StoreError> {
        Ok(self.0.0.prepare_cached(sql)?.execute(parameters)?)
    }

    /// Sets what is paid for.
    ///
    /// # Errors
    /// Where the database cannot be written, as with all that follow.
    pub fn set_plan(&self, plan: Plan) -> Result<(), StoreError> {
        self.execute("UPDATE project SET plan = ?1", [plan.as_str()]).map(drop)
    }

    /// Keeps a domain as it is now, new or not. Which one is primary is [`Self::set_primary`]'s.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn put_domain(&self, domain: &Domain) -> Result<(), StoreError> {
        let reason = domain.reason.as_ref();
        self.execute(
            "INSERT INTO domains (name, state, since, reason, message, added_at, checked_at, is_primary)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)
             ON CONFLICT (name) DO UPDATE SET state = ?2, since = ?3, reason = ?4, message = ?5, checked_at = ?7",
            params![
                domain.name,
                domain.state.as_str(),
                domain.since,
                reason.map(|reason| &reason.code),
                reason.map(|reason| &reason.message),
                domain.added_at,
                domain.checked_at,
            ],
        )
        .map(drop)
    }

    /// Has this domain, and no other, be primary.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn set_primary(&self, name: &str) -> Result<(), StoreError> {
        self.execute("UPDATE domains SET is_primary = 0 WHERE is_primary = 1", [])?;
        self.execute("UPDATE domains SET is_primary = 1 WHERE name = ?1", [name]).map(drop)
    }

    /// Takes a domain away, with the redirects from it and to it. Returns whether it was there.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn remove_domain(&self, name: &str) -> Result<bool, StoreError> {
        self.execute("DELETE FROM redirects WHERE source = ?1 OR target = ?1", [name])?;
        Ok(self.execute("DELETE FROM domains WHERE name = ?1", [name])? > 0)
    }

    /// Keeps a redirect, in place of another one from the same name.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn put_redirect(&self, redirect: &Redirect) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO redirects (source, target, status) VALUES (?1, ?2, ?3)
             ON CONFLICT (source) DO UPDATE SET target = ?2, status = ?3",
            params![redirect.from, redirect.to, redirect.status],
        )
        .map(drop)
    }

    /// Takes a redirect away. Returns whether it was there.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn remove_redirect(&self, from: &str) -> Result<bool, StoreError> {
        Ok(self.execute("DELETE FROM redirects WHERE source = ?1", [from])? > 0)
    }

    /// Begins a deploy, which nobody sees before [`Self::go_live`], and takes away those that did not get that
    /// far. Returns its number.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn add_deploy(&self) -> Result<i64, StoreError> {
        self.remove_deploys("deployed_at IS NULL", [])?;
        self.execute("INSERT INTO deploys (deployed_at) VALUES (NULL)", [])?;
        Ok(self.0.0.last_insert_rowid())
    }

    /// Adds a static file to a deploy. `false` where another deploy has begun meanwhile, and took this one away.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn add_file(&self, deploy: i64, file: &SiteFile) -> Result<bool, StoreError> {
        let added = self.execute(
            "INSERT INTO deploy_files (deploy, path, content_type, content, gzip, tag)
             SELECT id, ?2, ?3, ?4, ?5, ?6 FROM deploys WHERE id = ?1",
            params![deploy, file.path, file.content_type, file.content, file.gzip, file.tag],
        )?;
        Ok(added > 0)
    }

    /// Has a deploy, which is whole at this Unix time, be the one that is served. `false` where it is not there.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn go_live(&self, deploy: i64, now: i64) -> Result<bool, StoreError> {
        let whole = "UPDATE deploys SET deployed_at = ifnull(deployed_at, ?2) WHERE id = ?1";
        let is_there = self.execute(whole, [deploy, now])? > 0;
        if is_there {
            self.execute("UPDATE project SET deploy = ?1", [deploy])?;
        }
        Ok(is_there)
    }

    /// Takes away all deploys but the newest `count` and the one that is served.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn keep_deploys(&self, count: i64) -> Result<(), StoreError> {
        self.remove_deploys(
            "id NOT IN (SELECT id FROM deploys ORDER BY id DESC LIMIT ?1)
                AND id IS NOT (SELECT deploy FROM project)",
            [count],
        )
    }

    fn remove_deploys(
        &self,
        which: &str,
        parameters: impl rusqlite::Params + Copy,
    ) -> Result<(), StoreError> {
        let files = "DELETE FROM deploy_files WHERE deploy IN (SELECT id FROM deploys WHERE ";
        self.execute(&format!("{files}{which})"), parameters)?;
        self.execute(&format!("DELETE FROM deploys WHERE {which}"), parameters).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::pair;
    use super::*;
    use crate::model::DomainEvent;

    fn change(writer: &mut Writer, work: impl FnOnce(&ProjectChange) -> Result<(), StoreError>) {
        writer.change_project(work).unwrap();
    }

    #[test]
    fn domain_is_kept_as_it_was_put() {
        let (_folder, mut writer, reader) = pair();
        let reason = Reason { code: "wrong_target".to_owned(), message: "Not ours.".to_owned() };
        let domain = Domain::new("a.test".to_owned(), 5);
        change(&mut writer, |project| project.put_domain(&domain));
        assert_eq!(reader.project().unwrap().domains().unwrap(), std::slice::from_ref(&domain));
        let mut changed =
            domain.after(DomainEvent::Right, None, 7).after(DomainEvent::Wrong, Some(reason), 9);
        change(&mut writer, |project| {
            project.put_domain(&changed)?;
            project.put_domain(&Domain::new("b.test".to_owned(), 6))?;
            project.set_primary("b.test")?;
            project.set_primary("a.test")
        });
        changed.is_primary = true;
        let project = reader.project().unwrap();
        assert_eq!(project.domain("a.test").unwrap(), Some(changed));
        assert_eq!(project.primary().unwrap().as_deref(), Some("a.test"));
        assert_eq!(project.domain("c.test").unwrap(), None);
    }

    #[test]
    fn removed_domain_takes_its_redirects_along() {
        let (_folder, mut writer, reader) = pair();
        let redirect = |from: &str, to: &str| Redirect { from: from.into(), to: to.into(), status: 301 };
        change(&mut writer, |project| {
            for name in ["a.test", "b.test", "c.test"] {
                project.put_domain(&Domain::new(name.to_owned(), 0))?;
            }
            project.put_redirect(&redirect("a.test", "b.test"))?;
            project.put_redirect(&redirect("b.test", "c.test"))?;
            project.put_redirect(&redirect("c.test", "x.test"))
        });
        change(&mut writer, |project| project.remove_domain("b.test").map(|was| assert!(was)));
        change(&mut writer, |project| project.remove_domain("b.test").map(|was| assert!(!was)));
        assert_eq!(reader.project().unwrap().redirects().unwrap(), [redirect("c.test", "x.test")]);
    }

    #[test]
    fn refused_change_leaves_everything_as_it_was() {
        let (_folder, mut writer, reader) = pair();
        let refused = writer.change_project(|project| {
            project.set_plan(Plan::Pro)?;
            Err::<(), _>(StoreError::Internal("refused".to_owned()))
        });
        assert!(refused.is_err());
        assert_eq!(reader.project().unwrap().plan().unwrap(), Plan::Free);
    }

    #[test]
    fn deploys_are_kept_up_to_a_number_and_the_one_that_is_served() {
        let (_folder, mut writer, reader) = pair();
        let file = |text: &str| SiteFile {
            path: "/a.txt".to_owned(),
            content_type: "text/plain".to_owned(),
            content: text.into(),
            gzip: None,
            tag: text.to_owned(),
        };
        assert!(!reader.project().unwrap().is_deployed().unwrap());
        for text in ["one", "two", "three", "four"] {
            change(&mut writer, |project| {
                let deploy = project.add_deploy()?;
                assert!(project.add_file(deploy, &file(text))?);
                project.go_live(deploy, 9).map(|was_there| assert!(was_there))
            });
        }
        change(&mut writer, |project| project.go_live(1, 10).map(drop));
        change(&mut writer, |project| project.keep_deploys(2));
        let project = reader.project().unwrap();
        let deploys = project.deploys().unwrap();
        assert!(deploys.iter().all(|deploy| deploy.deployed_at == 9));
        let seen: Vec<_> = deploys.iter().map(|d| (d.id, d.files, d.bytes, d.is_live)).collect();
        assert_eq!(seen, [(4, 1, 4, false), (3, 1, 5, false), (1, 1, 3, true)]);
        for (path, other) in [("/a.txt", "/b.txt"), ("/b.txt", "/a.txt")] {
            let found = project.file(path, other).unwrap().unwrap();
            assert_eq!((&found.tag[..], &found.path[..], found.has_gzip), ("one", "/a.txt", false));
            assert_eq!(project.content(&found, false).unwrap(), b"one");
        }
        assert_eq!(project.file("/b.txt", "/c.txt").unwrap(), None);
    }

    #[test]
    fn deploy_that_did_not_end_gives_way_to_the_next() {
        let (_folder, mut writer, reader) = pair();
        let file = SiteFile {
            path: "/a".to_owned(),
            content_type: String::new(),
            content: Vec::new(),
            gzip: None,
            tag: String::new(),
        };
        change(&mut writer, |project| {
            let left = project.add_deploy()?;
            assert!(project.add_file(left, &file)?);
            assert_eq!(project.deploys()?, [], "nobody sees it");
            project.add_deploy()?;
            assert!(!project.add_file(left, &file)? && !project.go_live(left, 1)?);
            Ok(())
        });
        assert!(!reader.project().unwrap().is_deployed().unwrap());
    }
}
