// Drafts: what was typed or chosen for a pet and is not saved yet. They are kept by pet, apart from the table, so that no page,
// filter, conflict or added pet can lose them.
export const WORDS = { name: 'name', categoryId: 'category', status: 'status' };
export const MEMBERS = Object.keys(WORDS);

const drafts = new Map();
const listeners = [];
export const whenDraftsChange = (listener) => listeners.push(listener);
const changed = (id) => {
  for (const listener of listeners) listener(id);
};

export const allDrafts = () => [...drafts.values()];
export const draftOf = (id, to) => drafts.get(`${to.base} ${id}`);
export const isKept = (draft) => drafts.get(`${draft.to.base} ${draft.id}`) === draft;

// A member as its field shows it. A field of one line leaves out line breaks.
export function asShown(pet, name) {
  if (name === 'status') return pet.status ?? '';
  return name === 'name' ? pet.name.replace(/[\r\n]/g, '') : pet[name];
}

// Keeps the value of a field. `seen` is the value that the page showed for the pet when somebody began to change it.
export function keep(pet, to, name, mine) {
  const stored = asShown(pet, name);
  const draft = draftOf(pet.id, to) ?? { id: pet.id, name: pet.name, to, members: {}, waiting: 0, problem: null };
  const { seen = stored } = draft.members[name] ?? {};
  if (mine === stored && !draft.waiting) delete draft.members[name];
  else draft.members[name] = { seen, mine };
  draft.problem = null;
  settle(draft);
}

// Keeps a draft only as long as there is something in it.
export function settle(draft) {
  const key = `${draft.to.base} ${draft.id}`;
  draft.version = (draft.version ?? 0) + 1;
  const isEmpty = !Object.keys(draft.members).length && !draft.waiting;
  if (isEmpty) drafts.delete(key);
  else drafts.set(key, draft);
  changed(draft.id);
}

export function discard(draft) {
  drafts.delete(`${draft.to.base} ${draft.id}`);
  changed(draft.id);
}

// Takes back that drafts were discarded, unless there are newer ones.
export function restore(draft) {
  if (!draftOf(draft.id, draft.to)) settle(draft);
}

// What is shown for a member: the draft, or else what is stored.
export const valueOf = (pet, draft, name) => draft?.members[name]?.mine ?? asShown(pet, name);
