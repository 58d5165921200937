// Serves one stdio command per session over Streamable HTTP: http_bridge.mjs COMMAND ARGUMENTS...
//
// Says its port on stdout, and ends with its stdin. Messages pass as they are. What the command sends
// of its own accord goes to the request that it belongs to: progress by its token, the rest to the
// request that was opened last.
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { lines, need } from './tools.mjs';

const { StreamableHTTPServerTransport } = need('@modelcontextprotocol/sdk/server/streamableHttp.js');
const LOCAL = new Set(['localhost', '127.0.0.1', '[::1]']);
const [command, ...args] = process.argv.slice(2);
const sessions = new Map();

class Session {
  constructor() {
    this.open = new Map(); // id of a request: its progress token
    this.transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => { sessions.set(id, this); },
    });
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.child.stdin.on('error', () => {});
    this.child.on('error', () => this.transport.close());
    this.child.on('exit', () => this.transport.close());
    lines(this.child.stdout, (line) => this.fromCommand(JSON.parse(line)));
  }

  async begin() {
    this.transport.onmessage = (message) => this.fromClient(message);
    this.transport.onclose = () => {
      sessions.delete(this.transport.sessionId);
      this.child.stdin.end();
    };
    await this.transport.start();
  }

  fromClient(message) {
    if (message.method !== undefined && message.id !== undefined) {
      this.open.set(message.id, message.params?._meta?.progressToken);
    }
    this.child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  fromCommand(message) {
    if (message.method === undefined) {
      this.open.delete(message.id);
      this.transport.send(message).catch(() => {});
      return;
    }
    const token = message.method === 'notifications/progress' ? message.params.progressToken : undefined;
    const ids = [...this.open.keys()];
    const owner = token === undefined ? ids.at(-1) : ids.find((id) => this.open.get(id) === token);
    this.transport.send(message, owner === undefined ? undefined : { relatedRequestId: owner }).catch(() => {});
  }
}

/** Whether a page of another site could not have made the request. */
function isLocal({ host, origin }) {
  if (!LOCAL.has((host ?? '').replace(/:\d+$/, ''))) return false;
  return origin === undefined || (URL.canParse(origin) && LOCAL.has(new URL(origin).hostname));
}

async function serve(request, response) {
  const id = request.headers['mcp-session-id'];
  let session = sessions.get(id);
  if (!isLocal(request.headers) || (id !== undefined && session === undefined)) {
    response.writeHead(id === undefined || !isLocal(request.headers) ? 403 : 404).end();
    return;
  }
  if (session === undefined) {
    session = new Session();
    await session.begin();
  }
  await session.transport.handleRequest(request, response);
}

const server = http.createServer((request, response) => {
  serve(request, response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${server.address().port}\n`));

function end() {
  const waiting = [...sessions.values()].map(({ child }) => new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) done();
    child.on('exit', done);
    child.stdin.end();
  }));
  Promise.all(waiting).then(() => process.exit(0));
}
process.stdin.on('end', end).resume();
