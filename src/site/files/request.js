// Requests to the API: how they are sent, and why one got no response.

// An Idempotency-Key for one create, as long and as random as a UUID; crypto.randomUUID needs HTTPS.
export function freshKey() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

// The parameters of the next page, from the Link of a list.
export function nextPage({ headers, url }) {
  const [, next] = /<([^>]*)>\s*;\s*rel="?next"?/.exec(headers.get('Link')) ?? [];
  return next && new URL(next, url).searchParams;
}

// Sends a request to the API, with the key if there is one.
export async function send({ url, method, headers, body, token }) {
  const began = performance.now();
  const credential = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(url, {
    method,
    body,
    headers: { ...headers, ...credential },
    credentials: 'omit',
    cache: 'no-store',
  });
  const text = await response.text();
  return { response, text, ms: performance.now() - began };
}

// The reason why there is no response, in our words, since each browser has its own.
export function explain(error, { url, headers, method, token }) {
  const isRefused = ([name, value]) => {
    try {
      return !new Headers([[name, value]]);
    } catch {
      return true;
    }
  };
  const [refused] = Object.entries({ ...headers, ...(token && { Authorization: token }) }).find(isRefused) ?? [];
  const what = refused === 'Authorization' ? 'API key' : refused;
  if (what) return `A browser cannot send this ${what}. Use letters, digits and punctuation from ASCII.`;
  if (!navigator.onLine) return 'You are offline, so nothing was sent.';
  const { origin } = new URL(url, location.href);
  const isOwn = origin === location.origin;
  const lost = isOwn
    ? 'The service is not responding, or the connection broke.'
    : `${origin} is not responding, or does not allow requests from ${location.origin} (CORS: start it with --allow-origin ${location.origin}).`;
  const why = error.name === 'AbortError' ? 'The request was stopped.' : lost;
  return method === 'GET' ? why : `${why} The request may have been carried out: look before you send it again.`;
}
