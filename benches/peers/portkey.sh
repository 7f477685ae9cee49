#!/bin/sh
# Portkey's gateway: portkey.sh INSTALLATION PORT. Which engine is meant stands in the headers of each request.
set -eu
exec node "$1/node_modules/@portkey-ai/gateway/build/start-server.js" --port="$2" --headless
