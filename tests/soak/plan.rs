//! The decisions of the seed: every operation of every client, and every deed of the operator, before a round begins.
//!
//! A plan never depends on what a run meets. Where an operation needs something that exists by then, such as a pet
//! to read, it carries a number that picks one.

use crate::history::Effect;
use support::random::Random;

/// The statuses of a pet, and none.
pub const STATUSES: [Option<&str>; 4] = [None, Some("available"), Some("pending"), Some("sold")];

/// A create without its name, which the client makes unique.
#[derive(Clone, Debug)]
pub struct Draft {
    pub filler: String,
    pub category: i64,
    pub status: Option<&'static str>,
}

/// How a request goes out, and how long the client stays.
#[derive(Clone, Copy, Debug)]
pub enum Manner {
    Whole,
    /// In pieces of at most this many bytes.
    Pieces(usize),
    /// With a body in chunks.
    Chunked,
    /// The client leaves with this many bytes unsent, so the request must not be carried out.
    CutBefore(usize),
    /// The client leaves when all is sent; `true`: with a reset.
    CutAfter(bool),
    /// The client leaves after this many bytes of the response.
    CutWithin(usize),
}

/// The flaw of a create that must be rejected.
#[derive(Clone, Copy, Debug)]
pub enum Wrong {
    Json,
    Member,
    Missing,
    Status,
    Key,
    MediaType,
    TooLarge,
    IdempotencyKey,
}

/// One operation of a client. The numbers `pick` choose among what there is.
#[derive(Clone, Debug)]
pub enum Operation {
    Create {
        draft: Draft,
        manner: Manner,
        caller: u64,
    },
    /// With a retry key, and tried again at most this often, until it is acknowledged.
    CreateOnce {
        draft: Draft,
        manner: Manner,
        caller: u64,
        tries: u64,
    },
    /// The same create with a retry key on two connections at once.
    AtOnce {
        draft: Draft,
        caller: u64,
    },
    /// Creates in one piece, with retry keys or without.
    Burst {
        drafts: Vec<Draft>,
        once: bool,
    },
    /// Tries again what was never acknowledged.
    Retry {
        pick: u64,
        manner: Manner,
    },
    /// Sends again what was acknowledged.
    Replay {
        pick: u64,
    },
    /// Sends another pet with a key that was used.
    Reuse {
        pick: u64,
        draft: Draft,
    },
    Refused {
        draft: Draft,
        wrong: Wrong,
    },
    /// Changes or deletes a pet, perhaps only as it was seen before, or on two connections at once.
    Change {
        pick: u64,
        effect: Effect,
        caller: u64,
        manner: Manner,
        is_careful: bool,
        twice: bool,
    },
    /// Changes large pets, each on a connection of its own, all at once; adds those that are missing, with retry keys.
    Crowd(Crowd),
    Get {
        pick: u64,
    },
    List {
        pick: u64,
        limit: u64,
        status: Option<&'static str>,
    },
    /// Asks again for the last page, if it has changed.
    Revalidate,
    Walk {
        limit: u64,
        status: Option<&'static str>,
    },
    Ready,
}

/// A deed of the operator, or a fault of the service.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    Kill {
        pause_ms: u64,
    },
    Terminate,
    Freeze {
        ms: u64,
    },
    /// Another process holds the lock for writing; `true`: the service is killed meanwhile.
    Lock {
        ms: u64,
        kill: bool,
    },
    /// Nothing more can be written to the database.
    FullDisk {
        ms: u64,
    },
    /// Another process holds the lock, so that a crowd gathers, and then the log can only grow by so many bytes.
    FullBatch {
        ms: u64,
        room: u64,
        crowd: Crowd,
    },
    /// Another process holds a snapshot, so that the log cannot be moved.
    Snapshot {
        ms: u64,
    },
    Backup,
    KilledBackup {
        ms: u64,
    },
    Export,
    Import {
        pets: u64,
        spoilt: bool,
    },
    KilledImport {
        pets: u64,
        ms: u64,
    },
    SetStatus {
        pick: u64,
        status: &'static str,
    },
    Delete {
        pick: u64,
        count: u64,
    },
    AddKey {
        name: &'static str,
        read_only: bool,
    },
    RotateKey {
        name: &'static str,
    },
    RevokeKey {
        name: &'static str,
    },
    Check,
}

/// A change between two rounds, while no client is there.
#[derive(Clone, Copy, Debug)]
pub enum Turn {
    Nothing,
    Restore {
        pick: u64,
    },
    /// Export, and import with the ids into a new database.
    Move,
    TryBackup {
        pick: u64,
    },
}

/// One round of a life.
#[derive(Debug)]
pub struct Round {
    pub workers: u64,
    pub clients: Vec<Vec<Operation>>,
    /// Each is done when the clients have come so far.
    pub deeds: Vec<(u64, Deed)>,
    /// The service ends by SIGKILL rather than by SIGTERM.
    pub ends_by_kill: bool,
    pub walk_limit: u64,
    pub turn: Turn,
}

/// Many requests at once, as one number decides.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    pub caller: u64,
    seed: u64,
}

impl Crowd {
    fn draw(random: &mut Random) -> Self {
        Self {
            caller: random.bits(),
            seed: random.bits(),
        }
    }

    /// What it does to large pets. A batch with all of it changes more pages than the page cache holds.
    pub fn effects(self) -> Vec<Effect> {
        let mut random = Random::of_place(self.seed, [0, 0]);
        std::iter::repeat_with(|| Effect::draw(&mut random))
            .take(60)
            .collect()
    }
}

/// The names of keys, which come and go.
pub const KEY_NAMES: [&str; 3] = ["ann", "bob", "cy"];

impl Round {
    /// Draws a round. In a drill the service fails on purpose, and there is no database to do anything to.
    pub fn draw(seed: u64, round: u64, is_drill: bool) -> Self {
        let mut random = Random::of_place(seed, [round, 0]);
        let (count, each) = (6 + random.below(10), 40 + random.below(60));
        let clients = (1..=count).map(|client| {
            let mut random = Random::of_place(seed, [round, client]);
            (0..each).map(|_| Operation::draw(&mut random)).collect()
        });
        let clients = clients.collect();
        let mut deeds: Vec<_> = (0..4 + random.below(9))
            .map(|_| (random.below(count * each), Deed::draw(&mut random)))
            .collect();
        deeds.sort_by_key(|(at, _)| *at);
        if is_drill {
            deeds.clear();
        }
        let (restored, tried) = (
            Turn::Restore {
                pick: random.bits(),
            },
            Turn::TryBackup {
                pick: random.bits(),
            },
        );
        Self {
            workers: 1 + random.below(3),
            clients,
            deeds,
            ends_by_kill: random.one_in(2),
            walk_limit: 1 + random.below(100),
            turn: random.weighed(&[
                (4, Turn::Nothing),
                (4, restored),
                (1, Turn::Move),
                (1, tried),
            ]),
        }
    }
}

impl Draft {
    fn draw(random: &mut Random) -> Self {
        let most = random.weighed(&[(60, 1), (30, 40), (9, 2000), (1, 50_000)]);
        let length = random.below(most) as usize;
        let letters: Vec<char> = "abc é😀\"\\\u{1}\u{0}\n,;{}<&".chars().collect();
        let filler = match most {
            50_000 => "x".repeat(length),
            _ => std::iter::repeat_with(|| random.among(&letters))
                .take(length)
                .collect(),
        };
        let small = random.below(100) as i64;
        let category = random.weighed(&[(20, small), (1, i64::MAX), (1, i64::MIN)]);
        Self {
            filler,
            category,
            status: random.among(&STATUSES),
        }
    }
}

impl Manner {
    fn draw(random: &mut Random) -> Self {
        let (piece, unsent, taken) = (
            1 + random.below(200),
            1 + random.below(60),
            1 + random.below(300),
        );
        let (is_reset, whole) = (random.one_in(2), Self::Whole);
        random.weighed(&[
            (24, whole),
            (2, Self::Pieces(piece as usize)),
            (2, Self::Chunked),
            (2, Self::CutBefore(unsent as usize)),
            (2, Self::CutAfter(is_reset)),
            (2, Self::CutWithin(taken as usize)),
        ])
    }
}

impl Effect {
    fn draw(random: &mut Random) -> Self {
        // Few values, so that a pet often comes back to a state that it had.
        let (category, status) = (random.below(3) as i64, random.among(&STATUSES));
        random.weighed(&[
            (
                6,
                Self::Set {
                    category: None,
                    status: Some(status),
                },
            ),
            (
                2,
                Self::Set {
                    category: Some(category),
                    status: None,
                },
            ),
            (
                1,
                Self::Set {
                    category: Some(category),
                    status: Some(status),
                },
            ),
            (2, Self::Delete),
        ])
    }
}

impl Operation {
    fn draw(random: &mut Random) -> Self {
        let (pick, manner, caller) = (random.bits(), Manner::draw(random), random.bits());
        let (draft, status) = (Draft::draw(random), random.among(&STATUSES));
        match random.below(123) {
            0..22 => Self::Create {
                draft,
                manner,
                caller,
            },
            22..42 => Self::CreateOnce {
                draft,
                manner,
                caller,
                tries: random.below(4),
            },
            42..46 => Self::AtOnce { draft, caller },
            46..51 => {
                let drafts =
                    std::iter::repeat_with(|| Draft::draw(random)).take(2 + pick as usize % 6);
                Self::Burst {
                    drafts: drafts.collect(),
                    once: caller.is_multiple_of(2),
                }
            }
            51..57 => Self::Retry { pick, manner },
            57..62 => Self::Replay { pick },
            62..64 => Self::Reuse { pick, draft },
            64..70 => {
                use Wrong::{
                    IdempotencyKey, Json, Key, MediaType, Member, Missing, Status, TooLarge,
                };
                let wrongs = [
                    Json,
                    Member,
                    Missing,
                    Status,
                    Key,
                    MediaType,
                    TooLarge,
                    IdempotencyKey,
                ];
                Self::Refused {
                    draft,
                    wrong: random.among(&wrongs),
                }
            }
            70..80 => Self::Get { pick },
            80..90 => {
                // Often the same list again, which the service keeps.
                let any = 1 + random.below(100);
                Self::List {
                    pick,
                    limit: random.weighed(&[(1, 20), (1, 100), (2, any)]),
                    status,
                }
            }
            90..94 => Self::Revalidate,
            94..97 => Self::Walk {
                limit: 20 + random.below(81),
                status,
            },
            97..100 => Self::Ready,
            100..103 => Self::Crowd(Crowd::draw(random)),
            _ => {
                let (is_careful, twice) = (random.one_in(2), random.one_in(3));
                // Often one of a few pets, which clients then change at the same time.
                let pick = if random.one_in(2) { pick % 5 } else { pick };
                Self::Change {
                    pick,
                    effect: Effect::draw(random),
                    caller,
                    manner,
                    is_careful,
                    twice,
                }
            }
        }
    }
}

impl Deed {
    fn draw(random: &mut Random) -> Self {
        let (pick, yes, name) = (random.bits(), random.one_in(2), random.among(&KEY_NAMES));
        let (pause_ms, pets, ms) = (
            random.below(200),
            1 + random.below(300),
            20 + random.below(400),
        );
        match random.below(100) {
            0..22 => Self::Kill { pause_ms },
            22..26 => Self::Terminate,
            26..31 => Self::Freeze { ms: 3 * ms },
            31..38 => Self::Lock { ms, kill: false },
            38..41 => Self::Lock { ms, kill: true },
            // Longer than a create waits for it.
            41..42 => Self::Lock {
                ms: 6500,
                kill: false,
            },
            42..45 => Self::Snapshot { ms: 2 * ms },
            45..47 => Self::FullDisk { ms: 2 * ms },
            47..52 => Self::FullBatch {
                ms,
                room: random.below(2_000_000),
                crowd: Crowd::draw(random),
            },
            52..54 => Self::Backup,
            54..57 => Self::KilledBackup { ms: ms / 10 },
            57..62 => Self::Export,
            62..67 => Self::Import { pets, spoilt: yes },
            // More than one batch of an import.
            67..70 => Self::KilledImport {
                pets: 15 * pets,
                ms: ms / 2,
            },
            70..78 => Self::SetStatus {
                pick,
                status: random.among(&["available", "pending", "sold"]),
            },
            78..84 => Self::Delete {
                pick,
                count: 1 + random.below(3),
            },
            84..89 => Self::AddKey {
                name,
                read_only: random.one_in(4),
            },
            89..93 => Self::RotateKey { name },
            93..96 => Self::RevokeKey { name },
            _ => Self::Check,
        }
    }
}
