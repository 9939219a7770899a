//! Copies of the whole database, and their way back.

use super::*;

#[test]
fn copy_is_that_of_a_single_machine_and_moves_to_an_empty_cluster_alone() {
    let (_nodes, path) = cluster(3);
    commit(&mut open(&path), &[create("Rex")]);
    let copy = whole(&path).unwrap();
    let found = crate::store::Snapshot::of_file(&copy)
        .unwrap()
        .check()
        .unwrap();
    assert!(
        found.faults.is_empty() && found.foreign.is_empty(),
        "{:?}",
        found.foreign
    );
    let before = std::fs::read(&*copy).unwrap();
    let go_on = &|| false;
    let restore = |path: &Path| crate::restore(&copy, path, crate::RestoredKeys::Automatic, go_on);
    assert_eq!(
        restore(&path).unwrap_err().kind(),
        ErrorKind::DatabaseNotNew
    );
    assert_eq!(all_names(&path), ["Rex"]);
    let (_others, empty) = cluster(1);
    assert_eq!(restore(&empty).unwrap().pets, 1);
    assert!(
        before == std::fs::read(&*copy).unwrap(),
        "it is the operator's"
    );
    assert_eq!(all_names(&empty), ["Rex"]);
    let (folder, other) = (copy.parent().unwrap().to_owned(), whole(&path).unwrap());
    drop(copy);
    assert!(
        !folder.exists() && other.exists(),
        "two copies at once are two files"
    );
}

#[test]
fn keys_of_creates_move_from_a_file_to_a_cluster_and_back() {
    let (_nodes, path) = cluster(1);
    let folder = petstore_base::testing::Folder::new();
    let (file, back) = (folder.database(), folder.0.join("back.db"));
    let pets = [("a", "1"), ("b", "2"), ("c", "2")];
    let send = |file: &Path| {
        let mut store = crate::store::Writer::open(file).unwrap();
        let sent = pets.map(|(name, text)| {
            let made = store.insert_pet(&new_pet(name), Some(&key(text)));
            made.unwrap()
        });
        store.commit().unwrap();
        sent
    };
    let again = [Outcome::Replayed(1), Outcome::Replayed(2), Outcome::Reused];
    let first = [Outcome::Made(1), Outcome::Made(2), Outcome::Reused];
    assert_eq!(send(&file), first);
    let go_on = &|| false;
    crate::restore(&file, &path, crate::RestoredKeys::Automatic, go_on).unwrap();
    let work = pets.map(|(name, text)| once(name, text));
    assert_eq!(commit(&mut open(&path), &work), again.map(Done::Created));
    crate::backup(&path, &back, go_on).unwrap();
    assert_eq!(send(&back), again);
}

#[test]
fn cluster_that_a_service_begins_to_use_is_not_replaced() {
    let (_nodes, path) = cluster(1);
    let folder = petstore_base::testing::Folder::new();
    let file = folder.database();
    drop(crate::store::Writer::open(&file).unwrap());
    // While the backup is copied.
    let refused = crate::restore(&file, &path, crate::RestoredKeys::Automatic, &|| {
        commit(&mut open(&path), &[create("Rex")]);
        false
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::DatabaseNotNew);
    assert!(number(&path, "SELECT count(*) FROM pets") > 0);
}

#[test]
fn interrupted_restore_leaves_the_cluster_empty() {
    let (_nodes, path) = cluster(1);
    let folder = petstore_base::testing::Folder::new();
    let file = folder.database();
    drop(crate::store::Writer::open(&file).unwrap());
    let interrupted = crate::restore(&file, &path, crate::RestoredKeys::Automatic, &|| true);
    assert_eq!(interrupted.unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(number(&path, "SELECT count(*) FROM sqlite_schema"), 0);
}

#[cfg(feature = "site")]
#[test]
fn project_of_a_file_is_there_again_when_it_moves_out() {
    let (_nodes, path) = cluster(1);
    let folder = petstore_base::testing::Folder::new();
    let (file, back) = (folder.database(), folder.0.join("back.db"));
    let mut config = crate::Config::new().database(&file);
    config.hosting.platform_host = Some("sites.test".to_owned());
    drop(crate::store::Writer::open(&file).unwrap());
    let plan = |config: &crate::Config| {
        crate::Project::open(config)
            .unwrap()
            .overview()
            .unwrap()
            .plan
    };
    crate::Project::open(&config)
        .unwrap()
        .set_plan(crate::Plan::Pro)
        .unwrap();
    crate::restore(&file, &path, crate::RestoredKeys::Automatic, &|| false).unwrap();
    let refused = crate::Project::open(&crate::Config::new().database(&path)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Config("database"));
    crate::backup(&path, &back, &|| false).unwrap();
    assert_eq!(plan(&config.database(&back)), crate::Plan::Pro);
}
