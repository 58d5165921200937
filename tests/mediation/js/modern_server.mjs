// A server of two eras, with one tool that echoes.
import { need } from './tools.mjs';

const { McpServer } = need('@modelcontextprotocol/server');
const { serveStdio } = need('@modelcontextprotocol/server/stdio');
const { z } = need('zod');

serveStdio(() => {
  const server = new McpServer({ name: 'modern', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.registerTool('echo', { description: 'Echoes', inputSchema: z.object({ message: z.string() }) },
    async ({ message }) => ({ content: [{ type: 'text', text: message }] }));
  return server;
});
