//! `petstore site …` and `petstore domain …`: the commands of the feature `site`.

mod domains;
mod site;

use super::command::Failure;

pub use domains::COMMANDS as DOMAINS;
pub use site::COMMANDS as SITE;

impl From<petstore::Refusal> for Failure {
    fn from(refusal: petstore::Refusal) -> Self {
        Self::Failed(refusal.into())
    }
}
