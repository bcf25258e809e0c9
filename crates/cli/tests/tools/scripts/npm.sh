# needs: npm node / npm
set -e
export npm_config_cache=$PWD/cache npm_config_offline=true npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
mkdir app lib && (cd lib && npm init -y > /dev/null && echo 'module.exports = 42' > index.js && npm pack --silent)
cd app && npm init -y > /dev/null && npm pkg set scripts.hello='node -p "40 + 2"' && npm run --silent hello
npm install --silent ../lib/lib-1.0.0.tgz && node -p 'require("lib")' && npm ls --depth 0 --parseable | wc -l
