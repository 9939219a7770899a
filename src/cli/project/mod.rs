//! `petstore site …` and `petstore domain …`: the commands of the feature `site`.

mod domains;
mod site;

use super::command::CommandError;

pub use domains::COMMANDS as DOMAINS;
pub use site::COMMANDS as SITE;

impl From<petstore::Refusal> for CommandError {
    fn from(refusal: petstore::Refusal) -> Self {
        Self::Failed(refusal.into())
    }
}
