cn --config config.yaml --print 'What is the capital of France? Answer in one sentence.'
cn --config config.yaml --print 'What does notes.txt say?'
