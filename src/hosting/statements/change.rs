//! The statements that change the project.

use super::ProjectReads;
use crate::database::Writes;
use crate::model::{Domain, Plan, Redirect, SiteFile};
use petstore_base::error::Error;

/// Changes of the project within [`Writes::within_transaction`]. Each method fails if the database cannot be written.
pub trait ProjectWrites: Writes {
    /// Sets the plan.
    fn set_plan(&mut self, plan: Plan) -> Result<(), Error> {
        self.write("UPDATE project SET plan = ?1", &[plan.as_str().into()])
            .map(drop)
    }

    /// Inserts or updates a domain, all but whether it is primary.
    fn put_domain(&mut self, domain: &Domain) -> Result<(), Error> {
        self.write(
            "INSERT INTO domains (name, state, since, reason, message, added_at, checked_at, is_primary)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)
             ON CONFLICT (name) DO UPDATE SET state = ?2, since = ?3, reason = ?4, message = ?5, checked_at = ?7",
            &[(&domain.name).into(), domain.state.as_str().into(), domain.since.into(), domain.reason.as_ref().into(), domain.message.as_ref().into(), domain.added_at.into(), domain.checked_at.into()],
        )
        .map(drop)
    }

    /// Makes this domain the only primary one.
    fn set_primary(&mut self, name: &str) -> Result<(), Error> {
        self.write(
            "UPDATE domains SET is_primary = 0 WHERE is_primary = 1",
            &[],
        )?;
        self.write(
            "UPDATE domains SET is_primary = 1 WHERE name = ?1",
            &[name.into()],
        )
        .map(drop)
    }

    /// Removes a domain, and the redirects from it and to it. Returns whether it existed.
    fn remove_domain(&mut self, name: &str) -> Result<bool, Error> {
        self.write(
            "DELETE FROM redirects WHERE source = ?1 OR target = ?1",
            &[name.into()],
        )?;
        Ok(self.write("DELETE FROM domains WHERE name = ?1", &[name.into()])? > 0)
    }

    /// Inserts a redirect, or replaces the one from the same domain.
    fn put_redirect(&mut self, redirect: &Redirect) -> Result<(), Error> {
        self.write(
            "INSERT INTO redirects (source, target, status) VALUES (?1, ?2, ?3)
             ON CONFLICT (source) DO UPDATE SET target = ?2, status = ?3",
            &[
                (&redirect.from).into(),
                (&redirect.to).into(),
                i64::from(redirect.status).into(),
            ],
        )
        .map(drop)
    }

    /// Removes a redirect. Returns whether it existed.
    fn remove_redirect(&mut self, from: &str) -> Result<bool, Error> {
        Ok(self.write("DELETE FROM redirects WHERE source = ?1", &[from.into()])? > 0)
    }

    /// Begins a deploy, which nobody sees before `go_live`. Returns its number.
    fn add_deploy(&mut self) -> Result<i64, Error> {
        self.write("INSERT INTO deploys (deployed_at) VALUES (NULL)", &[])?;
        let number = "SELECT seq FROM sqlite_sequence WHERE name = 'deploys'";
        Ok(self
            .first(number, &[], |row| row.integer(0))?
            .unwrap_or_default())
    }

    /// Adds a static file to a deploy, unless another deploy has removed that, as `go_live` will report.
    fn add_file(&mut self, deploy: i64, file: &SiteFile) -> Result<(), Error> {
        self.write(
            "INSERT INTO deploy_files (deploy, path, content_type, content, gzip, tag)
             SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM deploys WHERE id = ?1)",
            &[
                deploy.into(),
                (&file.path).into(),
                (&file.content_type).into(),
                (&file.content).into(),
                file.gzip.as_ref().into(),
                (&file.tag).into(),
            ],
        )
        .map(drop)
    }

    /// Makes a finished deploy the live one, at this Unix time in seconds. Returns `false` if it does not exist.
    fn go_live(&mut self, deploy: i64, now: i64) -> Result<bool, Error> {
        let whole = "UPDATE deploys SET deployed_at = ifnull(deployed_at, ?2) WHERE id = ?1";
        let is_there = self.write(whole, &[deploy.into(), now.into()])? > 0;
        if is_there {
            self.write("UPDATE project SET deploy = ?1", &[deploy.into()])?;
        }
        Ok(is_there)
    }

    /// Removes all deploys but the newest `count` and the live one, and with them what is unfinished.
    fn retain_deploys(&mut self, count: i64) -> Result<(), Error> {
        let others = "NOT IN (SELECT deploy FROM project UNION SELECT * FROM
            (SELECT id FROM deploys WHERE deployed_at IS NOT NULL ORDER BY id DESC LIMIT ?1))";
        let files = "DELETE FROM deploy_files WHERE deploy IN (SELECT id FROM deploys WHERE ";
        self.write(&format!("{files}id {others})"), &[count.into()])?;
        self.write(
            &format!("DELETE FROM deploys WHERE id {others}"),
            &[count.into()],
        )
        .map(drop)
    }
}

impl<W: Writes> ProjectWrites for W {}

#[cfg(feature = "project")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DomainEvent, Reason};
    use crate::project::testing::{change, pair};
    use crate::statements::ProjectReads;

    #[test]
    fn domain_is_stored_as_it_was_put() {
        let (_folder, mut writer, reader) = pair();
        let reason = Reason {
            code: "wrong_target".to_owned(),
            message: "Not ours.".to_owned(),
        };
        let domain = Domain::new("a.test".to_owned(), 5);
        change(&mut writer, |project| project.put_domain(&domain));
        assert_eq!(reader.domains().unwrap(), std::slice::from_ref(&domain));
        let mut changed =
            domain
                .after(DomainEvent::Right, None, 7)
                .after(DomainEvent::Wrong, Some(reason), 9);
        change(&mut writer, |project| {
            project.put_domain(&changed)?;
            project.put_domain(&Domain::new("b.test".to_owned(), 6))?;
            project.set_primary("b.test")?;
            project.set_primary("a.test")
        });
        changed.is_primary = true;
        let project = reader;
        assert_eq!(project.domain("a.test").unwrap(), Some(changed));
        assert_eq!(project.primary().unwrap().as_deref(), Some("a.test"));
        assert_eq!(project.domain("c.test").unwrap(), None);
    }

    #[test]
    fn removed_domain_takes_its_redirects_with_it() {
        let (_folder, mut writer, reader) = pair();
        let redirect = |from: &str, to: &str| Redirect {
            from: from.into(),
            to: to.into(),
            status: 301,
        };
        change(&mut writer, |project| {
            for name in ["a.test", "b.test", "c.test"] {
                project.put_domain(&Domain::new(name.to_owned(), 0))?;
            }
            project.put_redirect(&redirect("a.test", "b.test"))?;
            project.put_redirect(&redirect("b.test", "c.test"))?;
            project.put_redirect(&redirect("c.test", "x.test"))
        });
        change(&mut writer, |project| {
            project.remove_domain("b.test").map(|was| assert!(was))
        });
        change(&mut writer, |project| {
            project.remove_domain("b.test").map(|was| assert!(!was))
        });
        assert_eq!(reader.redirects().unwrap(), [redirect("c.test", "x.test")]);
    }

    #[test]
    fn refused_change_leaves_everything_as_it_was() {
        let (_folder, mut writer, reader) = pair();
        let refused = writer.within_transaction(|project| {
            project.set_plan(Plan::Pro)?;
            Err::<(), _>(Error::new(
                petstore_base::error::ErrorKind::Internal,
                "refused",
            ))
        });
        assert!(refused.is_err());
        assert_eq!(reader.plan().unwrap(), Plan::Free);
    }

    #[test]
    fn newest_deploys_and_the_live_one_are_kept() {
        let (_folder, mut writer, reader) = pair();
        let file = |text: &str| SiteFile {
            path: "/a.txt".to_owned(),
            content_type: "text/plain".to_owned(),
            content: text.into(),
            gzip: None,
            tag: text.to_owned(),
        };
        assert!(!reader.is_deployed().unwrap());
        for text in ["one", "two", "three", "four"] {
            change(&mut writer, |project| {
                let deploy = project.add_deploy()?;
                project.add_file(deploy, &file(text))?;
                project
                    .go_live(deploy, 9)
                    .map(|was_there| assert!(was_there))
            });
        }
        change(&mut writer, |project| project.go_live(1, 10).map(drop));
        change(&mut writer, |project| project.retain_deploys(2));
        let project = reader;
        let deploys = project.deploys().unwrap();
        assert!(deploys.iter().all(|deploy| deploy.deployed_at == 9));
        let seen: Vec<_> = deploys
            .iter()
            .map(|d| (d.id, d.files, d.bytes, d.is_live))
            .collect();
        assert_eq!(seen, [(4, 1, 4, false), (3, 1, 5, false), (1, 1, 3, true)]);
        for (path, other) in [("/a.txt", "/b.txt"), ("/b.txt", "/a.txt")] {
            let found = project.file(path, other).unwrap().unwrap();
            assert_eq!(
                (&found.tag[..], &found.path[..], found.gzip_length),
                ("one", "/a.txt", None)
            );
            assert_eq!(project.content(&found, false).unwrap().unwrap(), b"one");
        }
        assert_eq!(project.file("/b.txt", "/c.txt").unwrap(), None);
    }

    #[test]
    fn next_deploy_that_is_finished_removes_those_that_are_not() {
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
            project.add_file(left, &file)?;
            assert_eq!(project.deploys()?, [], "nobody sees it");
            let next = project.add_deploy()?;
            assert!(project.go_live(next, 1)?);
            project.retain_deploys(1)?;
            project.add_file(left, &file)?;
            assert!(!project.go_live(left, 1)?);
            assert!(project.is_true("SELECT count(*) = 0 FROM deploy_files")?);
            Ok(())
        });
        assert!(reader.is_deployed().unwrap());
    }
}
