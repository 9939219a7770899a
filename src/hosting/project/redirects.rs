//! Redirects from one domain of the project to another.

use crate::database::Writes;
use crate::model::{REDIRECT_STATUSES, Redirect};
use crate::project::Project;
use crate::project::domains::{known, require_plan};
use crate::project::error::{Refusal, RefusalCode};
use crate::project::name;
use crate::statements::{ProjectReads, ProjectWrites};

impl<W: Writes> Project<W> {
    /// Redirects a domain to another one, or to the project's name on the platform.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_DOMAIN`] if a domain does not exist; [`RefusalCode::PLAN_REQUIRED`] if the plan has no
    /// domains; [`RefusalCode::INVALID_REDIRECT`] if the redirect would lead to a name that is not served, to itself, or
    /// through another redirect.
    pub fn add_redirect(&mut self, from: &str, to: &str, status: u16) -> Result<Redirect, Refusal> {
        let invalid = |message: String| Err(Refusal::new(RefusalCode::INVALID_REDIRECT, message));
        if !REDIRECT_STATUSES.contains(&status) {
            return invalid(format!(
                "The status of a redirect must be 301, 302, 307 or 308, not {status}."
            ));
        }
        let (from, to) = (name::normal(from), name::normal(to));
        let is_address = self.hosting.address().as_ref() == Some(&to);
        self.store.within_transaction(|project| {
            let domain = known(project, &from)?;
            require_plan(project)?;
            if from == to {
                return invalid(format!("{from} cannot redirect to itself."));
            }
            if !is_address && !known(project, &to)?.state.is_served() {
                return invalid(format!("{to} isn't verified yet. Verify it first."));
            }
            if domain.is_primary {
                return invalid(format!(
                    "{from} is the primary domain. Make another domain primary first."
                ));
            }
            let mut others = project.redirects()?.into_iter();
            if let Some(Redirect { from, to, .. }) =
                others.find(|other| other.from == to || other.to == from)
            {
                return invalid(format!(
                    "{from} redirects to {to}, and redirects must not make a chain."
                ));
            }
            let redirect = Redirect {
                from: from.clone(),
                to: to.clone(),
                status,
            };
            project.put_redirect(&redirect)?;
            Ok(redirect)
        })
    }

    /// Removes the redirect from a domain.
    ///
    /// # Errors
    /// [`RefusalCode::UNKNOWN_REDIRECT`] if there is none.
    pub fn remove_redirect(&mut self, from: &str) -> Result<(), Refusal> {
        let from = name::normal(from);
        self.store.within_transaction(|project| {
            known(project, &from)?;
            if project.remove_redirect(&from)? {
                return Ok(());
            }
            let message = format!("There is no redirect from {from}.");
            Err(Refusal::new(RefusalCode::UNKNOWN_REDIRECT, message))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::model::DomainEvent;
    use crate::project::testing::{check, code, project};

    #[test]
    fn redirects_make_no_chains() {
        let (_folder, mut project) = project();
        for name in ["a.test", "b.test", "c.test"] {
            project.add(name, false).unwrap();
        }
        assert_eq!(
            code(project.add_redirect("a.test", "b.test", 301)),
            "invalid_redirect",
            "not verified"
        );
        for name in ["a.test", "b.test", "c.test"] {
            check(&mut project, name, DomainEvent::Right, "").unwrap();
        }
        assert_eq!(
            code(project.add_redirect("a.test", "b.test", 301)),
            "invalid_redirect",
            "primary"
        );
        project.set_primary("b.test").unwrap();
        project.add_redirect("a.test", "b.test", 301).unwrap();
        for (from, to) in [
            ("b.test", "a.test"),
            ("b.test", "c.test"),
            ("c.test", "a.test"),
            ("c.test", "c.test"),
        ] {
            assert_eq!(
                code(project.add_redirect(from, to, 301)),
                "invalid_redirect",
                "{from} {to}"
            );
        }
        project
            .add_redirect("c.test", "PETSTORE.sites.test.", 307)
            .unwrap();
        project
            .add_redirect("a.test", "petstore.sites.test", 308)
            .unwrap();
        assert_eq!(
            code(project.add_redirect("b.test", "a.test", 303)),
            "invalid_redirect"
        );
        assert_eq!(
            code(project.add_redirect("b.test", "sites.test", 301)),
            "unknown_domain"
        );
    }
}
