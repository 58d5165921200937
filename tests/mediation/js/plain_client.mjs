// What the official client makes of deeds of the actor: plain_client.mjs DEED,DEED... COMMAND ARGUMENTS...
//
// One connection for each deed, all at once. Prints one JSON text: for each, the code of an error, or
// null when there was a result, and the milliseconds.
import { need } from './tools.mjs';

const { Client } = need('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = need('@modelcontextprotocol/sdk/client/stdio.js');
const [deeds, command, ...args] = process.argv.slice(2);

async function outcome(deed) {
  const client = new Client({ name: 'plain', version: '1.0.0' }, {});
  client.onerror = () => {};
  await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'ignore' }));
  const began = performance.now();
  let code = null;
  try {
    await client.callTool({ name: 'act', arguments: { do: deed } }, undefined, { timeout: 5000 });
  } catch (error) {
    code = error.code ?? String(error);
  }
  const milliseconds = Math.round(performance.now() - began);
  await client.close();
  return [deed, { code, milliseconds }];
}

const outcomes = Object.fromEntries(await Promise.all(deeds.split(',').map(outcome)));
process.stdout.write(`${JSON.stringify(outcomes)}\n`);
