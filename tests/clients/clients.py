"""The clients that './dev test --clients' runs: their programs, what these need, and what a reader of their pages is promised."""

from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"

# What the small model says to the question of the programs, and how the programs show the rest.
PARIS = r"\bParis\b"
ANSWER = rf"^answer: .*{PARIS}"
STREAM = rf"^stream: .*{PARIS}"
TOOL = r"^tool: weather .*\bcity\b.*\b(Paris|Rome)\b"
PLACE = r".*\bcity\b.*\b(Paris|Rome)\b.*\bin_europe\b.*\b([Tt]rue|[Ff]alse)\b"
PARSED = rf"^parsed: {PLACE}"
VECTORS = r"^vectors: 2 of 384 numbers$"
CONTINUED = rf"^continued: .*{PARIS}"
SDK = [ANSWER, STREAM, TOOL, PARSED, VECTORS]
RESPONSES = [ANSWER, STREAM, TOOL, PARSED, r"^more: .*\S", r"^stored: [Tt]rue$"]
OLLAMA = [ANSWER, STREAM, rf"^generated: .*{PARIS}", PARSED, VECTORS, r"^models: .*smollm2", r"^can: .*\bcompletion\b"]
BOILER = r"The tool said [\s\S]*1\.5 bar"

# What the pages tell a reader to set.
FOR_ANTHROPIC = {"ANTHROPIC_BASE_URL": "{host}", "ANTHROPIC_API_KEY": "hob"}
FOR_OLLAMA = {"OLLAMA_HOST": "{host}"}

# The edit that a scripted engine makes.
BEFORE, AFTER = {"greeting.py": "print('Hello, nobody!')\n"}, {"greeting.py": "print('Hello, world!')\n"}


@dataclass
class Client:
    """A client, what runs its programs, and what they print."""

    name: str
    programs: list
    expected: list
    requirements: str = ""
    npm: str = ""
    # Where in the npm packages the program is, if not in '.bin'.
    program_in: str = ".bin"
    engine: str = "embedded"
    newest_python: tuple = (3, 99)
    # '{url}' and '{host}' stand for Hob's address with and without '/v1'.
    environment: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    left_behind: dict = field(default_factory=dict)


CLIENTS = [
    Client("openai-python", ["openai_python.py"], [*SDK, CONTINUED], requirements="openai-python"),
    Client("openai-python with responses", ["openai_responses.py"], RESPONSES, requirements="openai-python"),
    Client("openai-js", ["openai_js.mjs"], [*SDK, CONTINUED], npm="sdks"),
    Client("openai-js with responses", ["openai_responses.mjs"], RESPONSES, npm="sdks"),
    Client("langchain", ["langchain.py"], [*SDK, rf"^responses: .*{PARIS}"], requirements="langchain"),
    Client("llama-index", ["llamaindex.py"], SDK, requirements="llama-index"),
    Client("ai-sdk", ["ai_sdk.mjs"], SDK, npm="sdks"),
    Client("ai-sdk with openai", ["ai_sdk_openai.mjs"], [ANSWER, STREAM, TOOL, PARSED], npm="sdks"),
    Client("ai-sdk with anthropic", ["ai_sdk_anthropic.mjs"], [ANSWER, STREAM, TOOL, PARSED], npm="sdks"),
    Client(
        "anthropic-python",
        ["anthropic_python.py"],
        [ANSWER, STREAM, TOOL, PARSED, r"^tokens: \d+$"],
        requirements="anthropic",
        environment=FOR_ANTHROPIC,
    ),
    Client(
        "anthropic-js",
        ["anthropic_js.mjs"],
        [ANSWER, STREAM, TOOL, PARSED, r"^tokens: \d+$"],
        npm="sdks",
        environment=FOR_ANTHROPIC,
    ),
    Client("ollama-python", ["ollama_python.py"], OLLAMA, requirements="ollama", environment=FOR_OLLAMA),
    Client(
        "ollama-python with tools",
        ["ollama_python_tools.py"],
        [BOILER],
        requirements="ollama",
        engine="scripted",
        environment=FOR_OLLAMA,
    ),
    Client("ollama-js", ["ollama_js.mjs"], OLLAMA, npm="sdks", environment=FOR_OLLAMA),
    Client(
        "ollama-js with tools", ["ollama_js_tools.mjs"], [BOILER], npm="sdks", engine="scripted", environment=FOR_OLLAMA
    ),
    Client(
        "openai-agents",
        ["openai_agents.py"],
        [ANSWER, STREAM, PARSED],
        requirements="openai-agents",
        environment={"OPENAI_AGENTS_DISABLE_TRACING": "1"},
    ),
    Client(
        "openai-agents with tools",
        ["openai_agents_tools.py"],
        [BOILER],
        requirements="openai-agents",
        engine="scripted",
        environment={"OPENAI_AGENTS_DISABLE_TRACING": "1"},
    ),
    Client(
        "pydantic-ai",
        ["pydantic_agent.py"],
        [
            line
            for model in ("OpenAIChatModel", "OpenAIResponsesModel", "AnthropicModel")
            for line in (rf"^{model}$", ANSWER, STREAM, PARSED)
        ],
        requirements="pydantic-ai",
        environment=FOR_ANTHROPIC,
    ),
    Client(
        "instructor",
        ["instructor_modes.py"],
        [
            rf"^{api} {mode}: {PLACE}"
            for api, modes in {
                "openai/default": ["TOOLS", "JSON_SCHEMA", "JSON", "MD_JSON", "PARALLEL_TOOLS", "RESPONSES_TOOLS"],
                "anthropic/default": ["TOOLS", "JSON_SCHEMA", "JSON", "PARALLEL_TOOLS"],
            }.items()
            for mode in modes
        ],
        requirements="instructor",
        engine="scripted",
        environment=FOR_ANTHROPIC,
    ),
    Client(
        "litellm",
        ["litellm_client.py"],
        [
            rf"^{api}/default {kind}: .*{PARIS}"
            for api in ("openai", "anthropic", "ollama_chat")
            for kind in ("answer", "stream")
        ]
        + [rf"^response: .*{PARIS}", CONTINUED, VECTORS],
        requirements="litellm",
        # It would fetch a list of prices.
        environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    ),
    Client("llm", ["llm.sh"], [PARIS, PARIS, r'\{\s*"in_europe":\s*(true|false)\s*\}'], requirements="llm"),
    Client(
        "llm with tools",
        ["llm.sh", "llm_tools.sh"],
        [r"The tool said \d+\.\d+"],
        requirements="llm",
        engine="scripted",
    ),
    Client(
        "aider",
        ["aider.sh"],
        [r"Applied edit to greeting\.py"],
        requirements="aider",
        engine="scripted",
        newest_python=(3, 12),
        # What a person is asked, a test answers beforehand.
        environment={
            "AIDER_YES_ALWAYS": "true",
            "AIDER_GIT": "false",
            "AIDER_CHECK_UPDATE": "false",
            "AIDER_ANALYTICS_DISABLE": "true",
            "AIDER_PRETTY": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        files=BEFORE,
        left_behind=AFTER,
    ),
    Client(
        "continue",
        ["continue.sh"],
        [PARIS, r"The tool said [\s\S]*the boiler is to be bled"],
        npm="continue",
        engine="scripted",
        files={"config.yaml": PROGRAMS / "continue.yaml", "notes.txt": "On Monday the boiler is to be bled.\n"},
    ),
    Client(
        "codex",
        ["codex.sh"],
        [PARIS, r"The tool said [\s\S]*greeting\.py"],
        npm="codex",
        engine="scripted",
        # Codex keeps its sandbox's helper at home, and refuses to if that is in the directory for temporary files.
        environment={"TMPDIR": "{home}/tmp"},
        files={**BEFORE, ".codex/config.toml": PROGRAMS / "codex.toml", "tmp/empty": ""},
        left_behind=AFTER,
    ),
    Client(
        "claude-code",
        ["claude_code.sh"],
        [PARIS, r"The tool said [\s\S]*greeting\.py"],
        npm="claude-code",
        # npm's link needs a script of the package that is not run here.
        program_in="@anthropic-ai/claude-code-*",
        engine="scripted",
        environment={
            "ANTHROPIC_BASE_URL": "{host}",
            "ANTHROPIC_AUTH_TOKEN": "hob",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8000",
        },
        files=BEFORE,
        left_behind=AFTER,
    ),
]
