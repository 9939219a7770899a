//! The record of changes, held against the pets and the model: what it tells, in its order, leads to the pets that are
//! there, it has every change that was acknowledged, and no id is ever another change.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::model::{Model, Seen};
use crate::run::Run;
use crate::service::Service;

#[derive(Default)]
pub struct Record {
    /// Every change that was ever read, by its id.
    known: BTreeMap<i64, String>,
    /// The highest id before the last restore, and the number of changes that the backup had.
    before: Option<(i64, usize)>,
}

impl Record {
    /// A restore was carried out: from now on, ids are higher than all before.
    pub fn restored(&mut self) {
        let highest = self.known.last_key_value().map_or(0, |(id, _)| *id);
        self.before = Some((highest, 0));
    }

    /// Holds what a service that has ended has recorded against its pets.
    pub fn hold(&mut self, run: &Run, service: &Service, pets: &[Seen]) {
        let model = run.model();
        let (mut last, mut updates) = (0, HashMap::new());
        let mut there: BTreeMap<i64, Value> = BTreeMap::new();
        let text = service.succeed(&["changes"]);
        if let Some((highest, count @ 0)) = &mut self.before {
            *count = text.lines().count();
            let newest = text.lines().filter_map(id_of).max();
            assert!(
                newest <= Some(*highest),
                "a restore has made {newest:?} of {highest}"
            );
        }
        for (place, line) in text.lines().enumerate() {
            let fault = |why: &str| -> ! { model.fault(&[], format!("{why}: {line:.500}")) };
            let change: Value = serde_json::from_str(line).expect("JSON");
            let id = id_of(line).expect("an id");
            if id <= last
                || self
                    .before
                    .is_some_and(|(highest, count)| place >= count && id <= highest)
            {
                fault("an id is not higher than those before it");
            }
            last = id;
            if self.known.entry(id).or_insert_with(|| line.to_owned()) != line {
                fault("an id has become another change");
            }
            let pet = change["petId"].as_i64().expect("the id of a pet");
            if there.remove(&pet).unwrap_or_default() != change["before"] {
                fault("a change before this one is not recorded");
            }
            let (before, after) = (&change["before"], &change["pet"]);
            let is_of_kind = match change["kind"].as_str() {
                Some("created") => before.is_null() && !after.is_null(),
                Some("updated") => !before.is_null() && !after.is_null() && before != after,
                Some("deleted") => !before.is_null() && after.is_null(),
                _ => false,
            };
            if !is_of_kind || !change["key"].is_string() {
                fault("a change is not what it says");
            }
            if change["kind"] == "updated" {
                *updates.entry(pet).or_insert(0) += 1;
            }
            if !after.is_null() {
                there.insert(pet, after.clone());
            }
        }
        let told: Vec<_> = there.values().map(crate::visitor::seen).collect();
        let shown = |pets: &[Seen]| {
            pets.iter()
                .map(|pet| format!("{pet:?}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(&told), shown(pets), "the record leads to other pets");
        expect_acknowledged(&model, &updates);
        run.count("records of changes");
    }
}

/// Expects at least as many changes of a pet as were acknowledged and surely changed it.
fn expect_acknowledged(model: &Model, updates: &HashMap<i64, u32>) {
    for (place, intent) in model.intents.iter().enumerate() {
        let recorded = intent
            .id
            .and_then(|id| updates.get(&id))
            .copied()
            .unwrap_or(0);
        if recorded < intent.surely_changed {
            let missing = format!(
                "{recorded} changes are recorded of {}",
                intent.surely_changed
            );
            model.fault(&[place], missing);
        }
    }
}

fn id_of(line: &str) -> Option<i64> {
    line.strip_prefix("{\"id\":")?
        .split(',')
        .next()?
        .parse()
        .ok()
}
