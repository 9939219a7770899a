//! Deploys: publishes a folder of static files, and rolls back to an earlier one.

use std::path::Path;

use crate::database::Writes;
use crate::model::Deploy;
use crate::project::Project;
use crate::project::error::{Refusal, RefusalCode};
use crate::project::folder::{self, StaticFile};
use crate::statements::{ProjectReads, ProjectWrites};
use petstore_base::clock::unix_time;

/// The most retained deploys, in addition to the live one.
const MAX_DEPLOYS: i64 = 5;
/// The most files that a transaction of a deploy writes: few, so that creates do not wait long for it.
const BATCH: usize = 8;

impl<W: Writes> Project<W> {
    /// Publishes the built-in site, alongside the static files of a folder if one is given. On failure, nothing
    /// changes. Returns the number of the deploy, and the number of its static files.
    ///
    /// # Errors
    /// [`RefusalCode::INVALID_FOLDER`] if the folder cannot be published as it is; [`RefusalCode::UNKNOWN_DEPLOY`] if
    /// another deploy ended before this one.
    pub fn deploy(&mut self, folder: Option<&Path>) -> Result<(i64, usize), Refusal> {
        let files = folder
            .map(|folder| folder::list(folder, W::is_built_in))
            .transpose()?
            .unwrap_or_default();
        let deploy = self
            .store
            .within_transaction(|project| project.add_deploy())?;
        for files in files.chunks(BATCH) {
            let files = files
                .iter()
                .map(StaticFile::read)
                .collect::<Result<Vec<_>, _>>()?;
            self.store.within_transaction(|project| {
                files
                    .iter()
                    .try_for_each(|file| project.add_file(deploy, file))
            })?;
        }
        self.store.within_transaction(|project| {
            if !project.go_live(deploy, unix_time())? {
                let message = "Another deploy ended before this one, and replaced it.";
                return Err(Refusal::new(RefusalCode::UNKNOWN_DEPLOY, message));
            }
            Ok(project.retain_deploys(MAX_DEPLOYS)?)
        })?;
        Ok((deploy, files.len()))
    }

    /// Returns the retained deploys, the newest first.
    ///
    /// # Errors
    /// [`RefusalCode::STORAGE_UNAVAILABLE`] if the database cannot be read.
    pub fn deploys(&self) -> Result<Vec<Deploy>, Refusal> {
        Ok(self.store.deploys()?)
    }

    /// Makes an earlier deploy live again: the one with this number, or the one before the live one. Returns its
    /// number.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DEPLOY`] if there is no such deploy.
    pub fn roll_back(&mut self, id: Option<i64>) -> Result<i64, Refusal> {
        self.store.within_transaction(|project| {
            let deploys = project.deploys()?;
            let live = deploys
                .iter()
                .find(|deploy| deploy.is_live)
                .map(|deploy| deploy.id);
            let is_wanted = |deploy: &&Deploy| match id {
                Some(id) => deploy.id == id,
                None => live.is_some_and(|live| deploy.id < live),
            };
            let Some(found) = deploys.iter().find(is_wanted) else {
                let which = id.map_or("earlier deploy".to_owned(), |id| format!("deploy {id}"));
                let message = format!(
                    "There is no {which} to go back to; 'petstore site list' lists the deploys."
                );
                return Err(Refusal::new(RefusalCode::UNKNOWN_DEPLOY, message));
            };
            project.go_live(found.id, unix_time())?;
            Ok(found.id)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::testing::{code, project};
    use petstore_base::testing::Folder as TestFolder;
    use petstore_base::testing::random::Random;

    #[test]
    fn file_is_compressed_if_that_saves_a_tenth() {
        let folder = TestFolder::new();
        let mut random = Random::new(1);
        let mut bytes =
            |bound| -> Vec<u8> { (0..1000).map(|_| random.index(bound) as u8).collect() };
        for (content, is_smaller) in [
            (vec![0; 1000], true),
            (bytes(16), true),
            (bytes(256), false),
            (b"x".to_vec(), false),
        ] {
            std::fs::write(folder.0.join("file.txt"), &content).unwrap();
            let file = folder::list(&folder.0, |_| false).unwrap()[0]
                .read()
                .unwrap();
            assert_eq!(file.gzip.is_some(), is_smaller, "{} bytes", content.len());
            assert_eq!(file.content, content);
        }
    }

    #[test]
    fn deploys_are_listed_from_the_newest_and_the_one_before_can_be_live_again() {
        let (_folder, mut project) = project();
        let second = project.deploy(None).unwrap().0;
        let listed = |project: &Project<_>| -> Vec<_> {
            project
                .deploys()
                .unwrap()
                .iter()
                .map(|deploy| (deploy.id, deploy.is_live))
                .collect()
        };
        assert_eq!(listed(&project), [(second, true), (second - 1, false)]);
        assert_eq!(project.roll_back(None).unwrap(), second - 1);
        assert_eq!(listed(&project), [(second, false), (second - 1, true)]);
        assert_eq!(code(project.roll_back(None)), "unknown_deploy");
    }

    #[test]
    fn deploy_that_was_replaced_does_not_go_live() {
        let (_folder, mut project) = project();
        let left = project
            .store
            .within_transaction(|project| project.add_deploy())
            .unwrap();
        project.deploy(None).unwrap();
        assert_eq!(code(project.roll_back(Some(left))), "unknown_deploy");
    }
}
