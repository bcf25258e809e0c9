// A server that speaks HTTP/2 only. http2.js PORT CERTIFICATE
const { readFileSync } = require("fs");
const pem = readFileSync(process.argv[3]);
const server = require("http2").createSecureServer({ key: pem, cert: pem });
server.on("stream", (stream, fields) => {
  stream.respond({ ":status": 200 });
  stream.end(`${fields[":path"]} of ${fields[":authority"]}\n`);
});
server.listen(Number(process.argv[2]), "0.0.0.0", () => console.log("ready"));
