//! `petstore site …`: the plan of the project and the deploys of its site.

use std::path::Path;

use petstore::Project;

use crate::cli::command::{Command, CommandError, CommandResult, Invocation};
use crate::cli::output::{count, past, print, table};

pub const COMMANDS: &[Command] = &[
    Command::new(
        "site plan",
        "[PLAN]",
        "show or set the plan of the project: free, pro or enterprise",
        plan,
    ),
    Command::new(
        "site deploy",
        "[FOLDER]",
        "publish the site, with the static files in FOLDER, or without any",
        deploy,
    ),
    Command::new("site list", "", "list the stored deploys", list),
    Command::new(
        "site rollback",
        "[DEPLOY]",
        "go back to DEPLOY, or to the one before",
        roll_back,
    ),
];

fn plan(call: &Invocation) -> CommandResult {
    let mut project = Project::open(&call.config)?;
    if let Some(word) = call.operands.first() {
        let plan = word.to_ascii_lowercase().parse();
        project.set_plan(plan.map_err(|expected| CommandError::wrong("PLAN", expected, word))?)?;
    }
    Ok(print(&format!("{}\n", project.overview()?.plan.as_str()))?)
}

fn deploy(call: &Invocation) -> CommandResult {
    let folder = call.operands.first().map(Path::new);
    let (deploy, files) = Project::open(&call.config)?.deploy(folder)?;
    let mut text = format!(
        "deploy {deploy} is live, with {}\n",
        count(files as u64, "static file")
    );
    if folder.is_some_and(|folder| folder.join("index.html").is_file()) {
        text += "/ still shows the reference; your index.html is at /index.html\n";
    }
    Ok(print(&text)?)
}

fn list(call: &Invocation) -> CommandResult {
    let mut rows = vec![["DEPLOY", "DEPLOYED", "FILES", "BYTES", ""].map(str::to_owned)];
    for deploy in Project::open(&call.config)?.deploys()? {
        let live = if deploy.is_live { "live" } else { "" };
        let [id, files, bytes] =
            [deploy.id, deploy.files, deploy.bytes].map(|number| number.to_string());
        rows.push([id, past(deploy.deployed_at), files, bytes, live.to_owned()]);
    }
    Ok(print(&table(&rows))?)
}

fn roll_back(call: &Invocation) -> CommandResult {
    let id = |word: &String| {
        word.parse()
            .map_err(|_| CommandError::wrong("DEPLOY", "the number of a deploy", word))
    };
    let live =
        Project::open(&call.config)?.roll_back(call.operands.first().map(id).transpose()?)?;
    Ok(print(&format!("deploy {live} is live\n"))?)
}
