// Requests to the API: how they are sent, and why one got no response.

// An Idempotency-Key for one create, as long and as random as a UUID; crypto.randomUUID needs HTTPS.
export function freshKey() {
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

// The parameters of the next page, from the Link of a list.
export function nextPage({ headers, url }) {
  const [, next] = /<([^>]*)>\s*;\s*rel="?next"?/.exec(headers.get('Link')) ?? [];
  return next && URL.canParse(next, url) ? new URL(next, url).searchParams : undefined;
}

// The time for a response: longer than a proxy waits for the service.
const SECONDS = 90;

// Sends a request to the API, with the key if there is one. A failure has `isSent`: whether the request may have left. A
// browser that is offline reaches a service on its own machine.
export async function send({ url, method, headers, body, token }) {
  const began = performance.now();
  const credential = token ? { Authorization: `Bearer ${token}` } : {};
  let isSent = false;
  try {
    const request = new Request(url, {
      method,
      body,
      headers: { ...headers, ...credential },
      credentials: 'omit',
      cache: 'no-store',
      signal: AbortSignal.timeout(SECONDS * 1_000),
    });
    isSent = true;
    const response = await fetch(request);
    const text = await response.text();
    return { response, text, ms: performance.now() - began };
  } catch (error) {
    throw Object.assign(error, { isSent });
  }
}

// The reason why there is no response, in our words, since each browser has its own.
export function explain(error, { url, headers, method, token, seconds = SECONDS }) {
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
  const { origin } = new URL(url, location.href);
  const isOwn = origin === location.origin;
  let why = isOwn
    ? 'The service is not responding, or the connection broke.'
    : `${origin} is not responding, or does not allow requests from ${location.origin} (CORS: start it with --allow-origin ${location.origin}).`;
  if (!navigator.onLine) why = 'You are offline.';
  if (error.name === 'AbortError') why = 'The request was stopped.';
  if (error.name === 'TimeoutError') why = `There was no response within ${seconds} seconds.`;
  return method === 'GET' ? why : `${why} The request may have been carried out: look before you send it again.`;
}
