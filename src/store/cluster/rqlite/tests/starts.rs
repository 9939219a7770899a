//! The databases that a start finds, creates and rejects.

use super::*;

#[test]
fn instances_that_start_at_once_make_one_schema() {
    let (_nodes, path) = cluster(3);
    let start = |path: PathBuf| thread::spawn(move || drop(open(&path)));
    let paths = [
        path.clone(),
        turned(&path),
        turned(&turned(&path)),
        path.clone(),
    ];
    paths
        .map(start)
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(number(&path, "SELECT count(*) FROM project"), 1);
    assert_eq!(number(&path, "SELECT count(*) FROM cluster_changes"), 1);
    let client = connect(&path).unwrap();
    schema::require_current(&client, &path).unwrap();
}

#[test]
fn database_of_another_program_or_of_a_later_version_is_refused_and_left() {
    let (_nodes, path) = cluster(1);
    run(&path, "CREATE TABLE theirs (x)");
    assert_eq!(
        Cluster::open(&path).err().unwrap().kind(),
        petstore_base::error::ErrorKind::DatabaseForeign
    );
    assert_eq!(number(&path, "SELECT count(*) FROM sqlite_schema"), 1);
    run(&path, "DROP TABLE theirs");
    assert_eq!(
        Cluster::open_existing(&path).err().unwrap().kind(),
        petstore_base::error::ErrorKind::ClusterOutdated
    );
    drop(Cluster::open(&path).unwrap());
    run(
        &path,
        "CREATE TRIGGER cluster_theirs AFTER INSERT ON pets BEGIN SELECT 1; END",
    );
    let refused = Cluster::open(&path).err().unwrap().to_string();
    assert!(refused.contains("cluster_"), "{refused}");
    run(&path, "PRAGMA user_version = 99");
    assert_eq!(
        Cluster::open(&path).err().unwrap().kind(),
        petstore_base::error::ErrorKind::DatabaseNewer
    );
}

#[test]
fn failed_start_leaves_nothing_that_lets_services_write() {
    let (_nodes, path) = cluster(1);
    run(
        &path,
        &format!(
            "PRAGMA application_id = {}",
            crate::store::migrations::APPLICATION_ID
        ),
    );
    run(&path, "CREATE TABLE pets (theirs)");
    assert!(Cluster::open(&path).is_err());
    assert_eq!(
        number(
            &path,
            "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'cluster%'"
        ),
        0
    );
}
