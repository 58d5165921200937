// A client of two eras, which asks for the newer first: modern_client.mjs TOOL COMMAND ARGUMENTS...
// Prints one JSON text: the tools, and what TOOL answered.
import { need } from './tools.mjs';

const { Client } = need('@modelcontextprotocol/client');
const { StdioClientTransport } = need('@modelcontextprotocol/client/stdio');

const [tool, command, ...args] = process.argv.slice(2);
const client = new Client({ name: 'modern', version: '1.0.0' },
  { capabilities: {}, versionNegotiation: { mode: 'auto' } });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
const { tools } = await client.listTools();
const said = await client.callTool({ name: tool, arguments: { message: 'hello' } });
await client.close();
process.stdout.write(`${JSON.stringify({ tools: tools.map(({ name }) => name), said })}\n`);
