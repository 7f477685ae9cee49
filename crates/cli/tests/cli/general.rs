//! Behaviour of all commands: help, version, the configuration file, completions.

use crate::home::{Home, finish};

#[tokio::test]
async fn help_lists_commands_and_examples() {
    let ran = Home::empty().run(&["--help"]).await;
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.stdout, @r"
    One address for the models on your machine

    Usage: hob [OPTIONS] [COMMAND]

    Commands:
      serve        Start the HTTP server
      ask          Ask a model a question
      chat         Chat with a model
      model        List, find, download and choose models
      tools        List, inspect and run the tools that agents use
      memory       Index and search your documents
      sources      List and check the calendars, feeds and pages that agents read
      scheduler    Schedule prompts, once or repeatedly
      recipes      List and add ready tasks, such as a morning briefing
      mcp          Run Hob's tools as an MCP server (stdio)
      feedback     Rate an answer as good or bad
      router       Show or reset what the model router has learned
      key          Create and change named API keys
      audit        Show, export or check the log of changes
      telemetry    Show, export or delete recorded calls
      bench        Measure how fast an engine answers
      channel      Connect Telegram, e-mail, WhatsApp or a gateway, and send messages
      database     Copy all data between SQLite and PostgreSQL
      backup       Save all data to one file, while Hob may run
      restore      Restore the data of a backup
      init         Detect the hardware and write a configuration file
      doctor       Diagnose problems and suggest fixes
      health       Check whether the server is healthy
      reload       Make the running server read its configuration, keys and certificate again
      service      Run the server as a service that starts by itself
      update       Show whether there is a newer Hob, and how to update this one
      completions  Print a shell completion script
      help         Print this message or the help of the given subcommand(s)

    Options:
      -v, --verbose...  Use verbose output on stderr; repeat for more detail (-vv)
      -h, --help        Print help
      -V, --version     Print version

    Examples:
      hob                                   show what is running and what to do next
      hob init                              detect the hardware and write a configuration
      hob chat                              chat with the default model
      hob ask 'Why is the sky blue?'        ask the default model
      hob serve                             serve OpenAI clients on http://localhost:8000/v1
      hob doctor                            find out what is wrong
      hob run, ps, list, pull, show, stop, rm   the same as in Ollama
    ");
}

#[tokio::test]
async fn help_of_ask_and_chat_lists_their_options() {
    let home = Home::empty();
    let help = async |command: &str| {
        let text = home.run(&[command, "--help"]).await.stdout;
        text.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>()
    };
    insta::assert_snapshot!(help("ask").await, @r"
    Ask a model a question

    If 'hob serve' runs with the same home, it answers: no model is loaded, and the answer starts at
    once. Otherwise this process answers.

    Usage: hob ask [OPTIONS] [QUERY]...

    Arguments:
      [QUERY]...
              Question to ask, or '-' to read it from stdin. Piped text is added below the question

    Options:
      -i, --image <FILE>
              Picture for the model to look at; repeat it for several. The model must read pictures

          --router <POLICY>
              Choose the model automatically: 'heuristic' (rules) or 'grpo' (learned). Use -v to see the
              choice and the reason

              [possible values: heuristic, grpo]

      -f, --file <FILE>
              Document to read: text, PDF, Word, HTML, mail and more; repeat it for several. No passages
              from memory are added then

          --system <TEXT>
              Instructions for the model, before the question

          --schema <FILE>
              JSON schema of the answer. The answer is JSON, and is checked

      -c, --continue
              Continue the most recent saved conversation, of 'hob chat' or of 'hob ask -c', and save
              this question and its answer there. Without it, 'hob ask' saves nothing

      -m, --model <MODEL>
              Model to use [default: as configured, or the engine's first]

      -e, --engine <ENGINE>
              Engine to use, with no fallback [default: as configured, or one that is running]

              [possible values: ollama, vllm, sglang, llamacpp, litellm, cloud, embedded]

      -t, --temperature <TEMPERATURE>
              Sampling temperature, 0.0 to 2.0 (default: [intelligence] temperature)

          --max-tokens <MAX_TOKENS>
              Maximum number of tokens to generate (default: [intelligence] max_tokens)

      -a, --agent <AGENT>
              Agent to use: simple, orchestrator, react, codeact or none [default: none, or orchestrator
              with --tools or --require-tool]

          --tools <TOOLS>
              Comma-separated tools that the agent may use [default: all]; see 'hob tools list'

          --require-tool
              Require the model to call a tool before it answers; small models rarely do so unasked

          --json
              Print one JSON object with content, usage, model, engine and finish_reason; with an agent,
              also turns and tool_results

          --no-stream
              Print the answer when it is complete instead of streaming it

          --no-context
              Do not add passages from memory to the question

          --offline
              Do not download a model, even if no engine is running

          --standalone
              Answer in this process, even if a server of this home is running

      -v, --verbose...
              Use verbose output on stderr; repeat for more detail (-vv)

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      hob ask 'Why is the sky blue?'
      hob ask -m qwen3:8b -t 0 'Name three rivers.'
      git diff | hob ask 'Write a commit message for this change.'
      hob ask - < question.txt
      hob ask -i photo.jpg 'What is this?'
      hob ask -f report.pdf -f notes.md 'What do these have in common?'
      hob ask -c 'And in French?'           continue the most recent saved conversation
      hob ask --system 'Answer in one word.' 'What is the capital of France?'
      hob ask --schema person.json 'Describe Ada Lovelace.' | jq .name
      hob ask -a orchestrator --tools calculator 'What is 17 * 23?'
      hob ask -v --router heuristic 'What is 17 * 23?'
      hob ask --json 'Hello' | jq .usage
    ");
    insta::assert_snapshot!(help("chat").await, @r"
    Chat with a model

    On a terminal, type a message and read the answer as it streams; /help lists the commands.
    Conversations are saved; resume one with --continue. Piped input is one message, and only its answer
    is printed.

    If 'hob serve' runs with the same home, it answers: no model is loaded. Otherwise this process
    answers.

    Usage: hob chat [OPTIONS]

    Options:
      -c, --continue
              Continue the most recent conversation

      -r, --resume <ID>
              Resume a conversation by its ID

      -l, --list
              List saved conversations, most recent first

      -m, --model <MODEL>
              Model to use [default: as configured, or the engine's first]

      -e, --engine <ENGINE>
              Engine to use, with no fallback [default: as configured, or one that is running]

              [possible values: ollama, vllm, sglang, llamacpp, litellm, cloud, embedded]

      -t, --temperature <TEMPERATURE>
              Sampling temperature, 0.0 to 2.0 (default: [intelligence] temperature)

          --max-tokens <MAX_TOKENS>
              Maximum number of tokens to generate (default: [intelligence] max_tokens)

      -a, --agent <AGENT>
              Agent to use: simple, orchestrator, react, codeact or none [default: none, or orchestrator
              with --tools]

          --tools <TOOLS>
              Comma-separated tools that the agent may use [default: all]; see 'hob tools list'

          --no-context
              Do not add passages from memory, until '/memory on'

          --offline
              Do not download a model, even if no engine is running

          --standalone
              Answer in this process, even if a server of this home is running

      -v, --verbose...
              Use verbose output on stderr; repeat for more detail (-vv)

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      hob chat                              start a conversation
      hob chat --continue                   continue the most recent conversation
      hob chat --list                       list saved conversations
      hob chat --resume 12                  resume conversation 12
      hob chat --standalone                 do not use the running server
      hob chat -a orchestrator --tools calculator,web_fetch
      echo 'And in French?' | hob chat --continue
    ");
}

#[tokio::test]
async fn the_version_is_printed() {
    let ran = Home::empty().run(&["--version"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hob 0.1.0\n"));
}

#[tokio::test]
async fn every_command_explains_itself() {
    let home = Home::empty();
    for command in [
        &["serve"][..],
        &["ask"],
        &["chat"],
        &["model"],
        &["model", "list"],
        &["model", "info"],
        &["model", "pull"],
        &["tools"],
        &["tools", "list"],
        &["tools", "info"],
        &["tools", "run"],
        &["mcp"],
        &["telemetry"],
        &["telemetry", "stats"],
        &["telemetry", "export"],
        &["telemetry", "clear"],
        &["bench"],
        &["bench", "run"],
        &["bench", "compare"],
        &["init"],
        &["doctor"],
        &["completions"],
    ] {
        let ran = home.run(&[command, &["--help"]].concat()).await;
        assert_eq!(ran.code, Some(0), "{command:?}");
        assert!(ran.stdout.contains("Usage: hob"), "{command:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "{command:?} is piped, and must be plain");
    }
}

#[tokio::test]
async fn an_invalid_value_is_reported_with_file_key_and_expected_value() {
    let home = Home::with_config("[server]\nport = \"many\"\n");
    for arguments in [&["serve"][..], &["ask", "hi"], &["model", "list"]] {
        let ran = home.run(arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
        for needle in ["config.toml:2", "server.port", "expected", "many"] {
            assert!(ran.stderr.contains(needle), "'{needle}' is missing in: {}", ran.stderr);
        }
    }
}

#[tokio::test]
async fn an_unknown_key_is_a_warning_with_a_suggestion() {
    let home = Home::with_config("[server]\nprot = 1\n");
    let ran = home.run(&["model", "info", "x"]).await;
    assert!(
        ran.stderr
            .starts_with("warning: ~/config.toml:2: unknown key 'server.prot' (did you mean 'server.port'?)"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn an_invalid_log_filter_is_an_error() {
    let home = Home::empty();
    let mut command = home.hob(&["model", "list"]);
    command.env("HOB_LOG", "hob=[[[");
    let ran = finish(command).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("HOB_LOG"), "{}", ran.stderr);
}

#[tokio::test]
async fn completions_contain_the_commands() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish"] {
        let ran = home.run(&["completions", shell]).await;
        assert_eq!(ran.code, Some(0), "{shell}");
        for needle in ["doctor", "max-tokens", "sglang", "chat", "resume"] {
            assert!(ran.stdout.contains(needle), "{shell} does not complete '{needle}'");
        }
    }
    assert_eq!(home.run(&["completions", "tcsh"]).await.code, Some(2));
}

#[tokio::test]
async fn a_word_for_another_command_gets_a_tip() {
    let home = Home::empty();
    for (word, tip) in [
        ("tasks", "tip: 'hob scheduler' manages scheduled tasks"),
        ("up", "tip: 'hob serve' starts the server"),
    ] {
        let ran = home.run(&[word]).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{word}");
        assert!(ran.stderr.contains(tip), "{word}: {}", ran.stderr);
    }
}
