claude -p 'What is the capital of France? Answer in one sentence.'
claude -p --permission-mode acceptEdits 'Greet the world in greeting.py.'
