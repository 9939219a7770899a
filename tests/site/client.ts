// Calls each operation with a client that openapi-typescript made of the OpenAPI description.
import createClient from 'openapi-fetch';

import type { components, paths } from './description.js';

type Pet = components['schemas']['Pet'];

export async function callEach(baseUrl: string, key: string, name: string) {
  const client = createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${key}` } });
  const created = await client.POST('/pets', {
    params: { header: { 'Idempotency-Key': name } },
    body: { name, categoryId: 3, status: 'sold' },
  });
  const pet: Pet | undefined = created.data;
  const id = pet?.id ?? 0;
  const listed = await client.GET('/pets', { params: { query: { limit: 1, status: 'sold', after: id - 1 } } });
  const pets: Pet[] | undefined = listed.data;
  const fetched = await client.GET('/pets/{petId}', { params: { path: { petId: id } } });
  const patch = { params: { path: { petId: id }, header: { 'If-Match': '*' } }, body: { status: null } };
  const { data: changed } = await client.PATCH('/pets/{petId}', patch);
  const { data: counts } = await client.GET('/store/inventory');
  const deleted = await client.DELETE('/pets/{petId}', { params: { path: { petId: id } } });
  const changes = [changed?.status, counts?.total, deleted.response.status];
  const missing = await client.GET('/pets/{petId}', { params: { path: { petId: id + 1_000_000 } } });
  const planned = await client.GET('/store/orders');
  const refused = await client.GET('/pets', { headers: { Authorization: 'Bearer wrong' } });
  const codes: (string | undefined)[] = [missing, planned, refused].map(({ error }) => error?.code);
  return { pet, pets, fetched: fetched.data, changes, codes };
}

// What the description does not allow does not compile.
export function mistakes(client: ReturnType<typeof createClient<paths>>) {
  return [
    // @ts-expect-error: there is no such status.
    () => client.POST('/pets', { body: { name: 'Rex', categoryId: 3, status: 'gone' } }),
    // @ts-expect-error: the category is required.
    () => client.POST('/pets', { body: { name: 'Rex' } }),
    // @ts-expect-error: a limit is a number.
    () => client.GET('/pets', { params: { query: { limit: 'many' } } }),
  ];
}
