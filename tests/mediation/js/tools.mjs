// The pinned packages of scripts/install-mcp-tools, for programs that do not lie beside them.
import { createRequire } from 'node:module';

export const need = createRequire(new URL('../../../build/tools/mcp/package.json', import.meta.url));

/** Calls `hear` with every line of a stream; only the byte 0x0A ends one. */
export function lines(stream, hear) {
  const parts = []; // of the line that has not ended
  stream.on('data', (data) => {
    let from = 0;
    for (let at = data.indexOf(10); at >= 0; at = data.indexOf(10, from)) {
      parts.push(data.subarray(from, at));
      const line = Buffer.concat(parts.splice(0)).toString('utf8');
      from = at + 1;
      if (line !== '') hear(line);
    }
    parts.push(data.subarray(from));
  });
}
