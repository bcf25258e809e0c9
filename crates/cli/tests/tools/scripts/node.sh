# needs: node / nodejs
set -e
cat > all.mjs <<'J'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import fs from 'node:fs'; import http from 'node:http'; import os from 'node:os'; import net from 'node:net';
import { execFileSync, spawn, fork } from 'node:child_process'; import { once } from 'node:events'; import crypto from 'node:crypto';
const say = (...words) => console.log(...words);
if (!isMainThread) { parentPort.postMessage(workerData * 2); }
else if (process.argv[2] === 'child') { process.on('message', m => { process.send(m + '!'); process.disconnect(); }); }
else {
  const replies = await Promise.all([1, 2, 3].map(async n => (await once(new Worker(new URL(import.meta.url), { workerData: n }), 'message'))[0]));
  say('workers', replies);
  fs.mkdirSync('watched'); const watcher = fs.watch('watched'); const change = once(watcher, 'change');
  fs.writeFileSync('watched/file', 'x'); say('watch', (await change)[1]); watcher.close();
  const server = http.createServer((_, r) => r.end('served')).listen(0, 'localhost'); await once(server, 'listening');
  say('fetch', await (await fetch(`http://localhost:${server.address().port}/`)).text()); server.close(); server.closeAllConnections();
  const unix = net.createServer(s => s.end('unix')).listen('node.sock'); await once(unix, 'listening');
  const [data] = await once(net.connect('node.sock'), 'data'); say('socket', String(data)); unix.close();
  say('exec', String(execFileSync('sh', ['-c', 'echo out'])).trim());
  const child = fork(process.argv[1], ['child']); child.send('ipc'); say('fork', (await once(child, 'message'))[0]);
  const [code] = await once(spawn('sh', ['-c', 'exit 4'], { stdio: 'inherit' }), 'exit'); say('spawn', code);
  say('cpus', os.cpus().length > 0, os.totalmem() > 0, crypto.randomBytes(4).length, os.tmpdir() !== '');
  fs.writeFileSync(os.tmpdir() + '/t', 't'); fs.cpSync('watched', 'copied', { recursive: true }); fs.rmSync('copied', { recursive: true });
  say('memory', new WebAssembly.Memory({ initial: 1, maximum: 10, shared: true }).buffer.byteLength);
}
J
node all.mjs
