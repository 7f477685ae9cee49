export OPENAI_API_BASE=${HOB_URL:-http://localhost:8000/v1} OPENAI_API_KEY=hob
aider --model openai/default --no-show-model-warnings \
    --message 'Greet the world by its name.' greeting.py
