// An HTTP/2 server that says which protocol a request came over.
//   http2_server.mjs CERTIFICATE_AND_KEY PORT
import { readFileSync } from 'node:fs';
import { createSecureServer } from 'node:http2';

const [, , file, port] = process.argv;
const pem = readFileSync(file);
createSecureServer({ key: pem, cert: pem, allowHTTP1: true }, (request, response) => {
    response.end(`over HTTP/${request.httpVersion}\n`);
}).listen({ host: '::', port: Number(port) });
