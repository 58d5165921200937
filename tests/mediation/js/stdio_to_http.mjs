// A stdio server that stands for one on HTTP: stdio_to_http.mjs URL
//
// What a server asks by itself comes on a stream that the client opens when it is initialized. Nothing
// is passed on before the server has answered to that: it would be lost.
import { lines, need } from './tools.mjs';

const { StreamableHTTPClientTransport } = need('@modelcontextprotocol/sdk/client/streamableHttp.js');

const INITIALIZED = 'notifications/initialized';
const complain = (error) => process.stderr.write(`stdio_to_http: ${error}\n`);
const settled = Promise.withResolvers(); // the server's own stream is open, or there is none
const watched = async (url, options) => {
  const opens = options?.method === 'GET';
  const begins = options?.method === 'POST' && JSON.parse(options.body).method === INITIALIZED;
  try {
    const response = await fetch(url, options);
    if (opens || (begins && response.status !== 202)) settled.resolve();
    return response;
  } catch (error) {
    settled.resolve();
    throw error;
  }
};
const transport = new StreamableHTTPClientTransport(new URL(process.argv.at(-1)), { fetch: watched });
transport.onerror = complain;
transport.onmessage = (message) => {
  if (message.result?.protocolVersion !== undefined) transport.setProtocolVersion(message.result.protocolVersion);
  process.stdout.write(`${JSON.stringify(message)}\n`);
};
await transport.start();
let before = Promise.resolve();
lines(process.stdin, (line) => {
  const message = JSON.parse(line);
  before = before.then(() => {
    const sent = transport.send(message).catch(complain);
    return message.method === INITIALIZED ? sent.then(() => settled.promise) : undefined;
  });
});
process.stdin.on('end', () => { transport.close().then(() => process.exit(0)); });
