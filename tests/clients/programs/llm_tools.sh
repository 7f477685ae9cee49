# The model calls the tool and answers with its result.
llm -m hob --tool llm_version 'Which version of llm is this?'
