# A model that is good at it calls the tool, and answers with what it said.
llm -m hob --tool llm_version 'Which version of llm is this?'
