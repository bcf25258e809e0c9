# needs: node / nodejs
set -e
mkdir d
node -e 'const fs = require("fs"); const w = fs.watch("d", (event, name) => { console.log(event, name); w.close() }); fs.writeFileSync("d/new", "")'
