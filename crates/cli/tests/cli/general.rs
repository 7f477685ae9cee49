//! What holds for all commands: help, version, the configuration file, completions.

use crate::home::{Home, finish};

#[tokio::test]
async fn help_says_what_there_is_and_gives_examples() {
    let ran = Home::empty().run(&["--help"]).await;
    assert_eq!(ran.code, Some(0));
    insta::assert_snapshot!(ran.stdout, @r"
    One address for the models on your machine

    Usage: hob [OPTIONS] [COMMAND]

    Commands:
      serve        Start the HTTP server
      ask          Ask a model a question
      chat         Talk with a model
      model        Show and download models
      tools        Show and try the tools that agents use
      memory       Index your documents, and find what is in them
      scheduler    Have something asked at a set time, once or again and again
      mcp          Serve the tools of the house to an MCP client, over stdin and stdout
      feedback     Say whether an answer was good
      router       See which model is chosen for which questions, where the choice is Hob's
      telemetry    Show, export and delete the record of what was asked
      bench        Measure how fast an engine answers
      channel      Send messages, and see what a messaging gateway has
      init         Look at this machine and write a configuration file for it
      doctor       Find out what is wrong, and what to do about it
      health       Ask the server that runs here whether it is well
      completions  Print a script that completes hob's commands in your shell
      help         Print this message or the help of the given subcommand(s)

    Options:
      -v, --verbose...  Say more on stderr; -vv says even more
      -h, --help        Print help
      -V, --version     Print version

    Examples:
      hob                                   see what is running, and what to do next
      hob init                              look at this machine and write a configuration
      hob chat                              talk with the default model
      hob ask 'Why is the sky blue?'        ask the default model
      hob serve                             answer OpenAI clients on http://localhost:8000/v1
      hob doctor                            find out why something does not work
    ");
}

#[tokio::test]
async fn ask_and_chat_say_what_they_take() {
    let home = Home::empty();
    let help = async |command: &str| {
        let text = home.run(&[command, "--help"]).await.stdout;
        text.lines().map(|line| line.trim_end().to_owned() + "\n").collect::<String>()
    };
    insta::assert_snapshot!(help("ask").await, @r"
    Ask a model a question

    Usage: hob ask [OPTIONS] [QUERY]

    Arguments:
      [QUERY]  The question; '-' reads it from stdin. Text that is piped in is added below the question

    Options:
      -m, --model <MODEL>              Model to ask [default: as configured, or the engine's first]
          --router <POLICY>            Have the model chosen that suits the question: by rules, or by
                                       what was learnt. -v says which it is and why [possible values:
                                       heuristic, grpo]
      -e, --engine <ENGINE>            Engine to ask, and no other [default: as configured, or one that
                                       runs] [possible values: ollama, vllm, sglang, llamacpp, litellm,
                                       cloud, embedded]
      -t, --temperature <TEMPERATURE>  How freely to choose words, 0.0 to 2.0 [default: 0.7]
          --max-tokens <MAX_TOKENS>    The most tokens the answer may have [default: 1024]
      -a, --agent <AGENT>              Agent that answers: simple, orchestrator, react, codeact or none
                                       [default: none, or orchestrator with --tools or --require-tool]
          --tools <TOOLS>              Tools the agent may use, separated by commas [default: all]; see
                                       'hob tools list'
          --require-tool               Have the model use a tool before it answers; small models rarely
                                       do by themselves
          --json                       Print one JSON object: content, usage, model, engine,
                                       finish_reason; with an agent also turns and tool_results
          --no-stream                  Print the answer when it is complete, not as it comes
          --no-context                 Answer without what the memory has on the question
          --offline                    Fetch no model to start with, even if nothing else answers
      -v, --verbose...                 Say more on stderr; -vv says even more
      -h, --help                       Print help

    Examples:
      hob ask 'Why is the sky blue?'
      hob ask -m qwen3:8b -t 0 'Name three rivers.'
      git diff | hob ask 'Write a commit message for this change.'
      hob ask - < question.txt
      hob ask -a orchestrator --tools calculator 'What is 17 * 23?'
      hob ask -v --router heuristic 'What is 17 * 23?'
      hob ask --json 'Hello' | jq .usage
    ");
    insta::assert_snapshot!(help("chat").await, @r"
    Talk with a model

    On a terminal, type a message and see the answer as it comes; /help shows what else there is.
    Conversations are kept, and can be gone on with. What is piped in is one message, and then only the
    answer is printed.

    Usage: hob chat [OPTIONS]

    Options:
      -c, --continue
              Go on with the conversation that was used last

      -r, --resume <ID>
              Go on with this conversation, by its number

      -l, --list
              List the conversations, the last one first

      -m, --model <MODEL>
              Model to ask [default: as configured, or the engine's first]

      -e, --engine <ENGINE>
              Engine to ask, and no other [default: as configured, or one that runs]

              [possible values: ollama, vllm, sglang, llamacpp, litellm, cloud, embedded]

      -t, --temperature <TEMPERATURE>
              How freely to choose words, 0.0 to 2.0 [default: 0.7]

          --max-tokens <MAX_TOKENS>
              The most tokens an answer may have [default: 1024]

      -a, --agent <AGENT>
              Agent that answers: simple, orchestrator, react, codeact or none [default: none, or
              orchestrator with --tools]

          --tools <TOOLS>
              Tools the agent may use, separated by commas [default: all]; see 'hob tools list'

          --no-context
              Answer without what the memory has on a question, until '/memory on'

          --offline
              Fetch no model to start with, even if nothing else answers

      -v, --verbose...
              Say more on stderr; -vv says even more

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      hob chat                              begin a conversation
      hob chat --continue                   go on with the last one
      hob chat --list                       see which there are
      hob chat --resume 12                  go on with one of them
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
async fn a_bad_value_names_file_key_and_what_was_expected() {
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
async fn an_unknown_key_is_a_warning_with_the_nearest_one() {
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
async fn a_log_filter_that_cannot_be_read_is_an_error() {
    let home = Home::empty();
    let mut command = home.hob(&["model", "list"]);
    command.env("HOB_LOG", "hob=[[[");
    let ran = finish(command).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("HOB_LOG"), "{}", ran.stderr);
}

#[tokio::test]
async fn completions_know_the_commands() {
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
