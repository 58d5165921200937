// A server with the tools, prompts and resources that the official conformance suite asks for.
import { need } from './tools.mjs';

const { Server } = need('@modelcontextprotocol/sdk/server/index.js');
const { StdioServerTransport } = need('@modelcontextprotocol/sdk/server/stdio.js');
const types = need('@modelcontextprotocol/sdk/types.js');

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const SOUND = Buffer.concat([
  Buffer.from('RIFF'), Buffer.from([36, 0, 0, 0]), Buffer.from('WAVEfmt '),
  Buffer.from([16, 0, 0, 0, 1, 0, 1, 0, 64, 31, 0, 0, 64, 31, 0, 0, 1, 0, 8, 0]),
  Buffer.from('data'), Buffer.from([0, 0, 0, 0]),
]).toString('base64');

const pause = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
const words = (text) => ({ type: 'text', text });
const picture = { type: 'image', data: PICTURE, mimeType: 'image/png' };
const embedded = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const answer = (...content) => ({ content });
const nothing = { type: 'object', properties: {} };
const one = (name) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] });

async function logs(_, { sendNotification }) {
  for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await sendNotification({ method: 'notifications/message', params: { level: 'info', data } });
    await pause(50);
  }
  return answer(words('logged'));
}

async function progresses(_, { sendNotification, _meta: meta }) {
  const progressToken = meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progressToken !== undefined) {
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100, message: `${progress} of 100` },
      });
    }
    await pause(50);
  }
  return answer(words('there'));
}

async function samples({ prompt }, { sendRequest }) {
  const params = { messages: [{ role: 'user', content: words(prompt) }], maxTokens: 100 };
  const said = await sendRequest({ method: 'sampling/createMessage', params }, types.CreateMessageResultSchema);
  return answer(words(`LLM response: ${said.content.text}`));
}

async function elicits(message, requestedSchema, { sendRequest }) {
  const params = { message, requestedSchema };
  const said = await sendRequest({ method: 'elicitation/create', params }, types.ElicitResultSchema);
  return answer(words(`User response: ${JSON.stringify(said)}`));
}

const form = (properties, required = []) => ({ type: 'object', properties, required });
const titled = ['value1', 'value2', 'value3'].map((each) => ({ const: each, title: `Title of ${each}` }));
const plain = ['option1', 'option2', 'option3'];
const DEFAULTS = form({
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
});
const ENUMS = form({
  untitledSingle: { type: 'string', enum: plain },
  titledSingle: { type: 'string', oneOf: titled },
  legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
  untitledMulti: { type: 'array', items: { type: 'string', enum: plain } },
  titledMulti: { type: 'array', items: { anyOf: titled } },
});
const PERSON = form({ username: { type: 'string' }, email: { type: 'string' } }, ['username', 'email']);

// name: what it takes, what it does
const TOOLS = {
  test_simple_text: [nothing, () => answer(words('This is a simple text response for testing.'))],
  test_image_content: [nothing, () => answer(picture)],
  test_audio_content: [nothing, () => answer({ type: 'audio', data: SOUND, mimeType: 'audio/wav' })],
  test_embedded_resource: [nothing, () => answer(embedded('test://embedded-resource', 'text/plain', 'embedded'))],
  test_multiple_content_types: [nothing, () => answer(
    words('several'), picture, embedded('test://several', 'application/json', '{"several":true}'))],
  test_tool_with_logging: [nothing, logs],
  test_tool_with_progress: [nothing, progresses],
  test_error_handling: [nothing, () => ({
    isError: true, ...answer(words('This tool intentionally returns an error for testing')) })],
  test_sampling: [one('prompt'), samples],
  test_elicitation: [one('message'), ({ message }, extra) => elicits(message, PERSON, extra)],
  test_elicitation_sep1034_defaults: [nothing, (_, extra) => elicits('defaults', DEFAULTS, extra)],
  test_elicitation_sep1330_enums: [nothing, (_, extra) => elicits('enums', ENUMS, extra)],
};

const argument = (name) => ({ name, description: `the ${name}`, required: true });
const user = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
const PROMPTS = {
  test_simple_prompt: [[], () => user(words('This is a simple prompt for testing.'))],
  test_prompt_with_arguments: [[argument('arg1'), argument('arg2')],
    ({ arg1, arg2 }) => user(words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
  test_prompt_with_embedded_resource: [[argument('resourceUri')],
    ({ resourceUri }) => user(embedded(resourceUri, 'text/plain', 'embedded'), words('Please look at it.'))],
  test_prompt_with_image: [[], () => user(picture, words('Please look at it.'))],
};

const RESOURCES = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PICTURE },
  'test://watched-resource': { mimeType: 'text/plain', text: 'watched' },
};

function read(uri) {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  const found = id === undefined ? RESOURCES[uri] : { mimeType: 'application/json', text: JSON.stringify({ id }) };
  if (found === undefined) throw new types.McpError(-32002, 'there is no such resource', { uri });
  return { contents: [{ uri, ...found }] };
}

function known(table, what, name) {
  if (!Object.hasOwn(table, name)) throw new types.McpError(-32602, `Unknown ${what}: ${name}`);
  return table[name];
}

const server = new Server({ name: 'conformance-fixture', version: '1.0.0' }, {
  capabilities: {
    tools: { listChanged: true }, prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true }, logging: {}, completions: {},
  },
});

const handlers = [
  [types.ListToolsRequestSchema, () => ({
    tools: Object.entries(TOOLS).map(([name, [inputSchema]]) => (
      { name, description: `Does ${name}`, inputSchema })) })],
  [types.CallToolRequestSchema, ({ params }, extra) => (
    known(TOOLS, 'tool', params.name)[1](params.arguments ?? {}, extra))],
  [types.ListPromptsRequestSchema, () => ({
    prompts: Object.entries(PROMPTS).map(([name, [args]]) => (
      { name, description: `Is ${name}`, arguments: args })) })],
  [types.GetPromptRequestSchema, ({ params }) => known(PROMPTS, 'prompt', params.name)[1](params.arguments ?? {})],
  [types.ListResourcesRequestSchema, () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => (
      { uri, name: uri.slice(7), description: `Is ${uri}`, mimeType })) })],
  [types.ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', description: 'By number' }] })],
  [types.ReadResourceRequestSchema, ({ params }) => read(params.uri)],
  [types.SubscribeRequestSchema, () => ({})],
  [types.UnsubscribeRequestSchema, () => ({})],
  [types.SetLevelRequestSchema, () => ({})],
  [types.CompleteRequestSchema, () => ({
    completion: { values: ['paris', 'park', 'party'], total: 3, hasMore: false } })],
];
for (const [schema, handler] of handlers) server.setRequestHandler(schema, handler);
await server.connect(new StdioServerTransport());
