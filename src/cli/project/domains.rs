//! `petstore domain …`: the domains of the project site and their redirects.

use petstore::{DomainState, DomainView, Error, ErrorKind, Overview, Project, Redirect};

use crate::cli::command::{Command, CommandResult, Flag, Invocation, Takes};
use crate::cli::output::{past, print};

/// The settings that describe the hosting of the project.
const HOSTING: Takes = Takes::Only(&[
    "database",
    "project",
    "platform-host",
    "base-url",
    "staging-url",
    "resolver",
    "certificate-authority",
]);

const fn row(
    name: &'static str,
    operands: &'static str,
    about: &'static str,
    run: fn(&Invocation) -> CommandResult,
) -> Command {
    Command {
        takes: HOSTING,
        ..Command::new(name, operands, about, run)
    }
}

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[Flag::new(
            "www",
            "also add www.NAME, and redirect it to NAME",
        )],
        ..row(
            "domain add",
            "NAME",
            "add a domain and print the DNS record to create",
            add,
        )
    },
    row(
        "domain verify",
        "NAME",
        "check the DNS record and the CAA records of a domain",
        verify,
    ),
    row(
        "domain reverify",
        "NAME",
        "the same as domain verify",
        verify,
    ),
    row(
        "domain primary",
        "NAME",
        "make a domain the canonical address of all pages",
        set_primary,
    ),
    Command {
        flags: &[Flag::new("json", "print JSON, for programs")],
        ..row(
            "domain list",
            "",
            "list the domains and their redirects",
            list,
        )
    },
    row(
        "domain remove",
        "NAME",
        "remove a domain; the service stops serving it immediately",
        remove,
    ),
    Command {
        flags: &[Flag::with(
            "status",
            "STATUS",
            "301 (the default), 302, 307 or 308",
        )],
        ..row(
            "domain redirect add",
            "FROM TO",
            "redirect a domain to another one",
            add_redirect,
        )
    },
    row(
        "domain redirect remove",
        "FROM",
        "remove a redirect, and show the site again",
        remove_redirect,
    ),
];

fn add(call: &Invocation) -> CommandResult {
    let domains = Project::open(&call.config)?.add(call.operand(0), call.has("www"))?;
    let mut text = String::new();
    for domain in &domains {
        let zone = &domain.record.zone;
        text += &format!(
            "Create this record in the DNS settings of {zone}:\n\n{}",
            record(domain)
        );
    }
    text += "DNS changes can take up to 48 hours to become visible everywhere. The service looks for the record every ten minutes. To check it now, run:\n\n";
    for domain in &domains {
        text += &format!("  petstore domain verify {}\n", domain.domain.name);
    }
    if let [domain, www] = &domains[..] {
        text += &format!(
            "\n{} redirects to {} with 301 when both are verified\n",
            www.domain.name, domain.domain.name
        );
    }
    Ok(print(&text)?)
}

/// Formats the record to create, and a remark if there is one.
fn record(domain: &DomainView) -> String {
    let record = &domain.record;
    format!(
        "  type   {}\n  name   {}\n  value  {}\n  TTL    {}\n\n{}",
        record.kind,
        record.name,
        record.value,
        record.ttl,
        record
            .remark
            .map(|remark| format!("{remark}\n\n"))
            .unwrap_or_default()
    )
}

fn verify(call: &Invocation) -> CommandResult {
    let view = Project::open(&call.config)?.check(call.operand(0))?;
    let domain = &view.domain;
    let message = domain.message.as_deref().unwrap_or_default();
    if !view.is_in_order() {
        let code = domain.reason.as_deref().unwrap_or_default();
        let line = format!("{} ({code})", message.trim_end_matches('.'));
        return Err(Error::new(ErrorKind::Refused, line).into());
    }
    let text = format!("{}: {}\n{message}", domain.name, view.state_text);
    Ok(print(&(text.trim_end().to_owned() + "\n"))?)
}

fn set_primary(call: &Invocation) -> CommandResult {
    let mut project = Project::open(&call.config)?;
    project.set_primary(call.operand(0))?;
    let name = project.find(call.operand(0))?;
    Ok(print(&format!(
        "{name} is primary: pages requested under other names point to it as their canonical address, so that search \
         engines index them once\n"
    ))?)
}

fn list(call: &Invocation) -> CommandResult {
    let overview = Project::open(&call.config)?.overview()?;
    // Serialising plain structs cannot fail.
    let json = || serde_json::to_string(&overview).unwrap_or_default() + "\n";
    Ok(print(&if call.has("json") {
        json()
    } else {
        text(&overview)
    })?)
}

fn text(overview: &Overview) -> String {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let deploy = overview
        .deploy
        .as_ref()
        .map(|deploy| format!("{} of {}", deploy.id, past(deploy.deployed_at)));
    let mut text = format!(
        "plan     {}\nplatform {}\ndeploy   {}\n",
        overview.plan.as_str(),
        or_none(&overview.address),
        or_none(&deploy)
    );
    for view in &overview.domains {
        let domain = &view.domain;
        let primary = if domain.is_primary { ", primary" } else { "" };
        let shown = if view.display_name == domain.name {
            ""
        } else {
            &format!(" ({})", view.display_name)
        };
        text += &format!(
            "\n{}{shown}{primary}\n  {} since {}: {}\n",
            domain.name,
            domain.state.as_str(),
            past(domain.since),
            view.state_text
        );
        text += &domain
            .message
            .as_ref()
            .map(|message| format!("  {message}\n"))
            .unwrap_or_default();
        if let Some(redirect) = overview
            .redirects
            .iter()
            .find(|redirect| redirect.from == domain.name)
        {
            text += &format!("  redirects to {} with {}\n", redirect.to, redirect.status);
        }
        if matches!(
            domain.state,
            DomainState::PendingDns | DomainState::DnsChanged
        ) {
            text += &if overview.platform_host.is_some() {
                format!("{}\n", record(view).trim_end())
            } else {
                "  to see its DNS record, add --platform-host HOST\n".to_owned()
            };
        }
    }
    text
}

fn remove(call: &Invocation) -> CommandResult {
    let removed = Project::open(&call.config)?.remove(call.operand(0))?;
    let mut text = format!(
        "{} is removed and no longer served, unless it is the host of the service's --base-url or --staging-url; if it is \
         not, delete its DNS record, so that nobody else on the platform can serve the name\n",
        removed.name
    );
    for Redirect { from, to, .. } in removed.redirects {
        text += &format!("the redirect from {from} to {to} is removed as well\n");
    }
    if removed.was_primary {
        text += "there is no primary domain now; the next one that verifies becomes primary\n";
    }
    Ok(print(&text)?)
}

fn add_redirect(call: &Invocation) -> CommandResult {
    let number = |text: &str| text.parse().ok();
    let status = call
        .read("status", "301, 302, 307 or 308", number)?
        .unwrap_or(301);
    let redirect =
        Project::open(&call.config)?.add_redirect(call.operand(0), call.operand(1), status)?;
    Ok(print(&format!(
        "{} redirects to {} with {}\n",
        redirect.from, redirect.to, redirect.status
    ))?)
}

fn remove_redirect(call: &Invocation) -> CommandResult {
    Project::open(&call.config)?.remove_redirect(call.operand(0))?;
    Ok(print(&format!(
        "{} shows the site again\n",
        call.operand(0)
    ))?)
}
