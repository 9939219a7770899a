'use strict';
// The reference: Swagger UI with what the interface description says beyond OpenAPI, and one field for the key.

const SCHEME = 'apiKey';
const root = document.getElementById('swagger-ui');
const announcement = document.getElementById('announcement');
const key = document.getElementById('key');
const show = document.getElementById('key-show');

// `x-hideTryItPanel`, `x-stability`, `x-sunset` and `x-successor`; no dialogs for the key; word of each response.
const Additions = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        setResponse: (original) => (path, method, response) => {
          // A failure has it in `err`; where there is none, nobody answered.
          const { status } = response.err ?? response;
          announcement.textContent = status ? `Response ${status}` : 'No response';
          return original(path, method, response);
        },
      },
      wrapSelectors: {
        allowTryItOutFor: (_, system) => (_state, path, method) =>
          operation(system, path, method)?.get('x-hideTryItPanel') !== true,
      },
    },
  },
  wrapComponents: {
    AuthorizeBtnContainer: () => () => null,
    authorizeOperationBtn: () => () => null,
    OperationSummaryPath: (Original, system) => (props) => {
      const element = system.React.createElement;
      const { operationProps } = props;
      const found = operation(system, operationProps.get('path'), operationProps.get('method'));
      return element(
        system.React.Fragment,
        null,
        element(Original, props),
        ...marks(found).map(([kind, text]) => element('span', { key: kind, className: `mark mark-${kind}` }, text)),
      );
    },
  },
});

// What stands at this path in the description itself: the summary of a closed operation lacks its extensions.
function operation(system, path, method) {
  return system.specSelectors.specJson().getIn(['paths', path, method]);
}

function marks(operation) {
  const found = [];
  const stability = operation?.get('x-stability');
  if (stability) found.push([stability, stability]);
  if (operation?.get('deprecated')) {
    const day = operation.get('x-sunset');
    const successor = operation.get('x-successor');
    const rest = [day && `to be removed on ${day}`, successor && `call ${successor} instead`];
    found.push(['deprecated', ['deprecated', ...rest.filter(Boolean)].join('; ')]);
  }
  return found;
}

const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  layout: 'BaseLayout',
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [Additions],
  tryItOutEnabled: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  // Its colours lack contrast.
  syntaxHighlight: { activated: false },
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
  onComplete: () => useKey(),
});

// The key stands in the field and in Swagger UI's memory, and nowhere else.
function useKey() {
  // As people paste it from an example.
  const value = key.value.trim().replace(/^Bearer\s+/i, '');
  if (value) ui.preauthorizeApiKey(SCHEME, value);
  else if (ui.authSelectors.authorized().size) ui.authActions.logout([SCHEME]);
}
key.addEventListener('input', useKey);
document.getElementById('key-form').addEventListener('submit', (event) => event.preventDefault());
show.addEventListener('click', () => {
  const isShown = key.type === 'text';
  key.type = isShown ? 'password' : 'text';
  show.textContent = isShown ? 'Show' : 'Hide';
  show.setAttribute('aria-pressed', String(!isShown));
});

// Names for what Swagger UI leaves without one, and a way for keys to what scrolls.
const name = (element, text) => element.hasAttribute('aria-label') || element.setAttribute('aria-label', text);

function complete() {
  for (const row of root.querySelectorAll('tr[data-param-name]')) {
    for (const field of row.querySelectorAll('input, select, textarea')) name(field, row.dataset.paramName);
  }
  for (const [selector, text] of [
    ['#servers', 'Server'],
    ['.body-param textarea', 'Request body'],
    ['.opblock-section-request-body select', 'Media type of the request'],
    ['.responses-inner select', 'Media type or example'],
    ['.copy-to-clipboard button', 'Copy'],
  ]) {
    for (const element of root.querySelectorAll(selector)) name(element, text);
  }
  for (const text of root.querySelectorAll('pre, .highlight-code, .microlight')) {
    if (text.scrollWidth > text.clientWidth || text.scrollHeight > text.clientHeight) text.tabIndex = 0;
  }
}

let isQueued = false;
new MutationObserver(() => {
  if (isQueued) return;
  isQueued = true;
  requestAnimationFrame(() => {
    isQueued = false;
    complete();
  });
}).observe(root, { childList: true, subtree: true });
