// What the official client sees of server-everything behind a command: round_trip.mjs COMMAND ARGUMENTS...
//
// Prints one JSON text. Nothing is judged here.
import { need } from './tools.mjs';

const { Client } = need('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = need('@modelcontextprotocol/sdk/client/stdio.js');
const types = need('@modelcontextprotocol/sdk/types.js');

const counts = {};
const count = (what) => { counts[what] = (counts[what] ?? 0) + 1; };
const client = new Client({ name: 'round-trip', version: '1.0.0' },
  { capabilities: { elicitation: { form: {} }, sampling: {}, roots: { listChanged: true } } });
client.setRequestHandler(types.ElicitRequestSchema, async () => {
  count('elicitation');
  const content = { name: 'somebody', check: true, email: 'a@agent.example', integer: 1, number: 1 };
  return { action: 'accept', content };
});
client.setRequestHandler(types.CreateMessageRequestSchema, async () => {
  count('sampling');
  return { role: 'assistant', model: 'a-model', content: { type: 'text', text: 'sampled words' } };
});
client.setRequestHandler(types.ListRootsRequestSchema, async () => {
  count('roots');
  return { roots: [{ uri: 'file:///root-of-the-agent', name: 'of the agent' }] };
});
client.fallbackNotificationHandler = async ({ method }) => count(method);

const seen = { results: {} };
const [command, ...args] = process.argv.slice(2);
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
seen.server = client.getServerVersion();
seen.capabilities = client.getServerCapabilities();
seen.instructions = client.getInstructions() ?? null;

const plainly = async (name, given = {}, options = undefined) => {
  try {
    return await client.callTool({ name, arguments: given }, undefined, { timeout: 20000, ...options });
  } catch (error) {
    return { code: error.code, message: error.message };
  }
};
const example = ({ type, enum: values }) => (
  values?.[0] ?? { number: 1, integer: 1, boolean: true, array: [], object: {} }[type] ?? 'words');
const required = ({ required: names = [], properties }) => (
  Object.fromEntries(names.map((name) => [name, example(properties[name])])));

// What the server knows of its client's roots and forms, its tools may depend on.
await new Promise((done) => { setTimeout(done, 300); });
const { tools } = await client.listTools();
seen.tools = tools;
for (const { name, inputSchema } of tools) {
  // These reach for the network, last minutes, or are tried below.
  if (!/gzip|research|long-running|async/.test(name)) seen.results[name] = await plainly(name, required(inputSchema));
}

const LONG = 'trigger-long-running-operation';
const steps = [];
const onprogress = (step) => steps.push(step);
seen.progress = { steps, result: await plainly(LONG, { duration: 1, steps: 4 }, { onprogress }) };
const abort = new AbortController();
setTimeout(() => abort.abort('enough'), 300);
seen.aborted = await plainly(LONG, { duration: 5, steps: 5 }, { signal: abort.signal });
seen.unknown = await plainly('no-such-tool');

const odd = '\u2028\u2029\u0085\u0000\u{1f600}\ud83d\ude00\u202e"\\/\r\n';
const oddly = await plainly('echo', { message: odd });
seen.odd = oddly.content?.[0].text === `Echo: ${odd}`;
const large = 'A'.repeat(8 << 20);
const largely = await plainly('echo', { message: large });
seen.large = largely.content?.[0].text === `Echo: ${large}`;

const list = async (what) => { try { return (await what()); } catch (error) { return { code: error.code }; } };
seen.resources = (await list(() => client.listResources())).resources?.length ?? null;
seen.prompts = (await list(() => client.listPrompts())).prompts?.length ?? null;
seen.level = await list(() => client.setLoggingLevel('debug'));
await client.ping();
seen.counts = counts;
await client.close();
process.stdout.write(`${JSON.stringify(seen)}\n`);
