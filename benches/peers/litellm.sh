#!/bin/sh
# LiteLLM's proxy in front of the stand-in engine: litellm.sh INSTALLATION PORT ENGINE_PORT. Its files go where it is started.
set -eu
for model in bench bench-slow; do
    printf -- '- model_name: %s\n  litellm_params: { model: openai/%s, api_base: "http://127.0.0.1:%s/v1", api_key: none }\n' \
        "$model" "$model" "$3"
done | { echo 'model_list:'; cat; } >config.yaml
# Only this machine reaches it, and the others ask for no key either.
export LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY=true
exec "$1/bin/litellm" --config config.yaml --host 127.0.0.1 --port "$2" --num_workers 2 --telemetry False
