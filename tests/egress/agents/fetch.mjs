// Fetches a page in one of Node's ways.
//   fetch.mjs fetch|get URL
import http from 'node:http';
import https from 'node:https';

const [, , way, url] = process.argv;

function get(target) {
    return new Promise((resolve, reject) => {
        (target.startsWith('https:') ? https : http).get(target, (answer) => {
            let body = '';
            answer.on('data', (piece) => { body += piece; });
            answer.on('end', () => resolve([answer.statusCode, body]));
        }).on('error', reject);
    });
}

async function fetched(target) {
    const answer = await fetch(target);
    return [answer.status, await answer.text()];
}

try {
    const [status, body] = await (way === 'fetch' ? fetched : get)(url);
    console.log(status, body);
    process.exit(status === 200 ? 0 : 1);
} catch (error) {
    console.log(url, error.message, error.cause?.message ?? '');
    process.exit(1);
}
