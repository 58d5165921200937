"""Node.js and npm work inside as outside."""
import os

import inside

PROCESSES = r"""
const { spawn, spawnSync, execFileSync, fork } = require('child_process');
if (process.argv[2] === 'child') {
    process.on('message', (m) => { process.send(m * 2); process.disconnect(); });
    return;
}
const cat = spawnSync('cat', [], { input: 'x'.repeat(300000), stdio: ['pipe', 'pipe', 'pipe'] });
console.log(cat.status, cat.stdout.length, cat.error);
const quiet = spawnSync('sh', ['-c', 'echo out; echo err >&2; exit 4'], { stdio: ['ignore', 'pipe', 'pipe'] });
console.log(quiet.status, String(quiet.stdout).trim(), String(quiet.stderr).trim(), quiet.error);
spawnSync('echo', ['inherited'], { stdio: 'inherit' });
console.log(spawnSync('sleep', ['100'], { timeout: 50 }).signal);
console.log(String(execFileSync(process.execPath, ['-p', '6 * 7'])).trim());
const child = spawn('tr', ['a-z', 'A-Z']);
child.stdout.on('data', (d) => console.log(String(d).trim()));
child.on('close', (code) => {
    console.log('closed', code);
    const other = fork(__filename, ['child']);
    other.on('message', (m) => console.log('answer', m));
    other.on('exit', (c) => console.log('left', c));
    other.send(21);
});
child.stdin.end('streamed\n');
"""

THREADS = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
if (!isMainThread) {
    const cells = new Int32Array(workerData.shared);
    for (let i = 0; i < 1000; i++) Atomics.add(cells, 0, 1);
    parentPort.postMessage(workerData.number * 2);
    return;
}
const shared = new SharedArrayBuffer(8);
Promise.all([0, 1, 2, 3].map((number) => new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: { number, shared } });
    worker.on('message', resolve);
    worker.on('error', reject);
}))).then((said) => console.log(said.join(), new Int32Array(shared)[0]));
"""

WATCH = r"""
const fs = require('fs');
fs.mkdirSync('watched');
const watcher = fs.watch('watched', (kind, name) => {
    console.log(kind, name);
    watcher.close();
});
fs.writeFileSync('watched/new', 'x');
"""

SERVERS = r"""
const net = require('net'), http = require('http');
const pipe = net.createServer((s) => s.end('through a path')).listen('socket', () =>
    net.connect('socket').on('data', (d) => console.log(String(d))).on('close', () => {
        pipe.close();
        if (process.argv[2] === 'tcp') web();
    }));
function web() {
    const server = http.createServer((q, r) => r.end('served ' + q.url)).listen(0, '127.0.0.1', () =>
        fetch(`http://localhost:${server.address().port}/page`).then((r) => r.text()).then((text) => {
            console.log(text);
            server.closeAllConnections();
            server.close();
        }));
}
"""


class Node(inside.Case):
    def setUp(self):
        super().setUp()
        self.assertTrue(os.access(inside.NODE, os.X_OK), "run scripts/install-node")
        self.sight = ["--read", inside.NODE]

    def node(self, text, *arguments, flags=(), **options):
        self.same(inside.NODE, "program.js", *arguments, files={"program.js": text},
                  flags=[*self.sight, *flags], **options)

    def test_child_processes(self):
        self.node(PROCESSES, tells=["0 300000 undefined", "4 out err undefined", "inherited", "SIGTERM",
                                    "42", "STREAMED", "closed 0", "answer 42"])

    def test_worker_threads(self):
        self.node(THREADS, tells=["0,2,4,6 4000"])

    def test_watching_files(self):
        self.node(WATCH, tells=["rename new"])

    def test_unix_sockets(self):
        self.node(SERVERS, tells=["through a path"])

    def test_local_web_server(self):
        self.node(SERVERS, "tcp", flags=["--net", "local"], tells=["through a path", "served /page"])

    def test_npm_runs_a_script_offline(self):
        self.need("npm")
        self.same("npm", "run", "--silent", "hello", timeout=2 * inside.PATIENCE, files={
            "package.json": '{"name":"x","version":"1.0.0","scripts":'
                            '{"prehello":"echo before","hello":"node -p \\"6*7\\" && echo $npm_package_name"}}'},
                  tells=["before", "42", "x"])
