// A stdio server that stands for one on HTTP: stdio_to_http.mjs URL
import { lines, need } from './tools.mjs';

const { StreamableHTTPClientTransport } = need('@modelcontextprotocol/sdk/client/streamableHttp.js');

const complain = (error) => process.stderr.write(`stdio_to_http: ${error}\n`);
const transport = new StreamableHTTPClientTransport(new URL(process.argv.at(-1)));
transport.onerror = complain;
transport.onmessage = (message) => {
  if (message.result?.protocolVersion !== undefined) transport.setProtocolVersion(message.result.protocolVersion);
  process.stdout.write(`${JSON.stringify(message)}\n`);
};
await transport.start();
lines(process.stdin, (line) => { transport.send(JSON.parse(line)).catch(complain); });
process.stdin.on('end', () => { transport.close().then(() => process.exit(0)); });
