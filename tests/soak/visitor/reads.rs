//! Reads of a client, each held against the model.

use super::{Came, LATE, Page, Visitor, seen};
use crate::model::{Look, Seen, Tick};
use crate::plan::Manner;
use crate::request::Request;
use crate::run::has_failed;
use support::client::Reply;

impl Visitor<'_> {
    /// Sends a GET; the response if it has the answer.
    pub(super) fn read(&mut self, target: &str, fields: &str) -> Option<(Tick, Reply)> {
        let id = self.next_id();
        let pick = self.count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = if self.is_sure { 0 } else { self.key(pick) };
        let mut request = Request::get(target, &self.run.model().keys.get(key).text, &id);
        request.fields += fields;
        let begun = self.run.model().tick();
        let Came::Reply(reply) = self.ask(&request, Manner::Whole) else {
            return None;
        };
        self.expect_key(key, begun, false, reply.status);
        match reply.status {
            200 | 304 | 404 => return Some((begun, reply)),
            401 | 408 => {}
            503 => self.excused(&reply),
            _ => self.fault(&[], format!("a good GET got {reply:.300?}")),
        }
        None
    }

    pub(super) fn get(&mut self, pick: u64) {
        let picked = self.run.model().pick(pick);
        let Some((id, _)) = picked else { return };
        let Some((begun, reply)) = self.read(&format!("/v1/pets/{id}"), "") else {
            return;
        };
        self.observe_one(id, begun, &reply);
    }

    pub(super) fn observe_one(&self, id: i64, begun: Tick, reply: &Reply) {
        let pets = if reply.status == 404 {
            Vec::new()
        } else {
            vec![seen(&reply.json())]
        };
        let look = Look {
            begun,
            after: id - 1,
            up_to: id,
            status: None,
        };
        self.run.model().observe(&look, &pets);
    }

    /// Gets a page; returns where the next one begins, which is `None` after the last. `None` if it was not answered.
    pub(super) fn page(
        &mut self,
        after: i64,
        limit: u64,
        status: Option<&'static str>,
    ) -> Option<Option<i64>> {
        let filter = status
            .map(|status| format!("&status={status}"))
            .unwrap_or_default();
        let from = if after == 0 {
            String::new()
        } else {
            format!("&after={after}")
        };
        let target = format!("/v1/pets?limit={limit}{filter}{from}");
        let (begun, reply) = self.read(&target, "")?;
        let pets: Vec<Seen> = reply
            .expect(200)
            .json()
            .as_array()
            .expect("an array")
            .iter()
            .map(seen)
            .collect();
        let last = pets.last().map_or(after, |pet| pet.id);
        let next = format!("</v1/pets?limit={limit}{filter}&after={last}>; rel=\"next\"");
        let link = reply.header("Link");
        if pets.len() > limit as usize || link.is_some_and(|link| link != next) {
            self.fault(
                &[],
                format!(
                    "{target} has {} pets and the link {link:?}, not {next}",
                    pets.len()
                ),
            );
        }
        let up_to = if link.is_some() { last } else { i64::MAX };
        let look = Look {
            begun,
            after,
            up_to,
            status,
        };
        self.run.model().observe(&look, &pets);
        let tag = reply.header("ETag").expect("a list has a tag").to_owned();
        self.page = Some(Page {
            target,
            tag,
            look,
            pets,
        });
        Some(link.map(|_| last))
    }

    /// If a page has not changed, it must be right as it was.
    pub(super) fn revalidate(&mut self) {
        let Some(page) = self.page.take() else { return };
        let field = format!("If-None-Match: {}\r\n", page.tag);
        let Some((begun, reply)) = self.read(&page.target, &field) else {
            return;
        };
        if reply.status == 304 {
            let look = Look { begun, ..page.look };
            self.run.model().observe(&look, &page.pets);
        }
        self.run.count(format!("revalidated with {}", reply.status));
    }

    /// From the first page to the last. The parts meet without a gap, so every pet is met exactly once.
    pub(super) fn walk(&mut self, limit: u64, status: Option<&'static str>) {
        let mut after = Some(0);
        while let Some(from) = after
            && !has_failed()
        {
            after = self.page(from, limit, status).flatten();
        }
        self.run.count("walks");
    }

    /// Walks over all pets, and asks again for a page that is not answered; returns what it met.
    pub fn walk_surely(&mut self, limit: u64) -> Vec<Seen> {
        let (mut met, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after
            && !has_failed()
        {
            let before = self.asked_at;
            match self.page(from, limit, None) {
                Some(next) => {
                    met.extend(self.page.iter().flat_map(|page| page.pets.clone()));
                    after = next;
                }
                None if self.run.is_drill => {}
                // The run was stopped between two pages, for longer than a connection may be idle.
                None if self.asked_at.duration_since(before) >= LATE => {}
                None => self.fault(
                    &[],
                    "a service without other clients does not answer".to_owned(),
                ),
            }
        }
        met
    }
}
