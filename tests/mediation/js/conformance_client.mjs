// The client that the conformance suite tests: conformance_client.mjs COMMAND ARGUMENTS... URL
//
// It speaks to COMMAND over stdio, which reaches the suite's server at URL; "{url}" in an argument
// stands for it.
import { need } from './tools.mjs';

const { Client } = need('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = need('@modelcontextprotocol/sdk/client/stdio.js');
const { ElicitRequestSchema } = need('@modelcontextprotocol/sdk/types.js');

const url = process.argv.at(-1);
const [command, ...args] = process.argv.slice(2, -1).map((word) => word.replace('{url}', url));
const client = new Client({ name: 'conformance-client', version: '1.0.0' },
  { capabilities: { elicitation: { form: { applyDefaults: true } } } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: {} }));
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
const { tools } = await client.listTools();
for (const { name } of tools) {
  const said = await client.callTool({ name, arguments: name === 'add_numbers' ? { a: 5, b: 3 } : {} });
  process.stdout.write(`${name}: ${JSON.stringify(said)}\n`);
}
await client.close();
