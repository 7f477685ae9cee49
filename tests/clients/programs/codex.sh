codex exec --skip-git-repo-check 'What is the capital of France? Answer in one sentence.'
codex exec --skip-git-repo-check --sandbox workspace-write 'Greet the world in greeting.py.'
