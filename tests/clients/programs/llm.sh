# Add Hob to llm, once.
cat > "$(dirname "$(llm logs path)")/extra-openai-models.yaml" <<END
- model_id: hob
  model_name: default
  api_base: ${HOB_URL:-http://localhost:8000/v1}
  supports_schema: true
  supports_tools: true
END

# A streamed answer, and a whole one.
llm -m hob -o temperature 0 -o max_tokens 16 'What is the capital of France? Answer in one sentence.'
llm -m hob -o temperature 0 -o max_tokens 16 --no-stream 'What is the capital of France? Answer in one sentence.'

# Structured output.
llm -m hob -o temperature 0 -o max_tokens 64 --no-stream 'What is the capital of France?' \
    --schema '{"type": "object", "properties": {"in_europe": {"type": "boolean"}}, "required": ["in_europe"]}'
