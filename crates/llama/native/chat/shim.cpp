#include "guard.h"

#include "shim.h"

#include "chat-auto-parser.h"
#include "chat.h"
#include "json.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

namespace hob {
void forget_schemas();
}

struct hob_chat_template {
    common_chat_templates_ptr templates;
    // Made by the first conversation that needs it.
    mutable std::mutex                                lock;
    mutable std::unique_ptr<autoparser::autoparser>   analysis;
};

// A parser takes a millisecond to load, so the answers to a request share it.
struct hob_chat_format {
    std::shared_ptr<const common_chat_parser_params> params;
};

struct hob_chat_parser {
    std::shared_ptr<const common_chat_parser_params> params;
    std::string                                      text;
    common_chat_msg                                  told;
};

namespace {

// The template that the thread applies.
thread_local const hob_chat_template * applied = nullptr;

}  // namespace

const autoparser::autoparser & hob::analysis_of(const common_chat_template & chat) {
    if (applied == nullptr) {
        failed("a template is applied outside of a call");
    }
    std::lock_guard<std::mutex> guard(applied->lock);
    if (!applied->analysis) {
        auto made = std::make_unique<autoparser::autoparser>();
        made->analyze_template(chat);
        // An analysis that reached a limit is not one.
        step();
        applied->analysis = std::move(made);
    }
    return *applied->analysis;
}

namespace {

hob_chat_text to_text(const std::string & from) {
    hob_chat_text text = { static_cast<char *>(std::malloc(from.size() + 1)), from.size() };
    if (text.data == nullptr) {
        throw std::bad_alloc();
    }
    std::memcpy(text.data, from.data(), from.size());
    text.data[from.size()] = '\0';
    return text;
}

// Runs `work` within limits; every exception becomes text.
template <typename T>
bool guarded(const hob_chat_limits & most, bool calls_only, hob_chat_text * error, const T & work) noexcept {
    const char * reason = "unknown";
    try {
        hob::limited_call call({ most.steps, most.milliseconds, most.bytes, most.stack }, calls_only);
        try {
            work();
            hob::forget_schemas();
            return true;
        } catch (...) {
            hob::forget_schemas();
            throw;
        }
    } catch (const std::exception & caught) {
        try {
            *error = to_text(caught.what());
            return false;
        } catch (...) {
            reason = "out of memory";
        }
    } catch (...) {
        // Jinja's break and continue outside of a loop.
        reason = "a statement in the wrong place";
    }
    try {
        *error = to_text(reason);
    } catch (...) {
        *error = { nullptr, 0 };
    }
    return false;
}

common_json caps_of(const common_chat_templates * templates) {
    common_json caps = common_json::object();
    for (const auto & [name, value] : common_chat_templates_get_caps(templates)) {
        caps[name] = value;
    }
    return caps;
}

common_chat_templates_inputs inputs_of(const common_json & request) {
    common_chat_templates_inputs inputs;
    inputs.messages              = common_chat_msgs_parse_oaicompat(request.at("messages"));
    inputs.tools                 = common_chat_tools_parse_oaicompat(request.at("tools"));
    inputs.tool_choice           = common_chat_tool_choice_parse_oaicompat(request.at("tool_choice").get<std::string>());
    inputs.parallel_tool_calls   = request.at("parallel_tool_calls").get<bool>();
    inputs.add_generation_prompt = request.at("add_generation_prompt").get<bool>();
    inputs.enable_thinking       = request.at("enable_thinking").get<bool>();
    inputs.reasoning_format      = COMMON_REASONING_FORMAT_DEEPSEEK;
    for (const auto & [name, value] : request.at("variables").items()) {
        inputs.chat_template_kwargs[name] = value.dump_safe();
    }
    return inputs;
}

const char * trigger_name(common_grammar_trigger_type type) {
    switch (type) {
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN:      return "pattern";
        case COMMON_GRAMMAR_TRIGGER_TYPE_PATTERN_FULL: return "full_pattern";
        default:                                       return "word";
    }
}

common_json details_of(const common_chat_params & params) {
    common_json triggers = common_json::array();
    for (const auto & trigger : params.grammar_triggers) {
        triggers.push_back({ { "kind", trigger_name(trigger.type) }, { "value", trigger.value } });
    }
    return common_json::object({
        { "format", static_cast<int>(params.format) },
        { "parser", params.parser },
        { "generation_prompt", params.generation_prompt },
        { "grammar", params.grammar },
        { "triggers", triggers },
        { "preserved_tokens", params.preserved_tokens },
        { "stops", params.additional_stops },
        { "thinks", params.supports_thinking },
        { "thinking_start", params.thinking_start_tag },
        { "thinking_ends", params.thinking_end_tags },
    });
}

// What `now` has beyond `told`. A parser may take back what it is not sure of; that is told once it is certain.
std::string tail(const std::string & told, const std::string & now) {
    return now.size() > told.size() && now.compare(0, told.size(), told) == 0 ? now.substr(told.size()) : std::string();
}

common_json deltas_to(hob_chat_parser & parser, const common_chat_msg & now, bool is_last) {
    auto &      told      = parser.told;
    std::string reasoning = tail(told.reasoning_content, now.reasoning_content);
    std::string content   = tail(told.content, now.content);
    told.reasoning_content += reasoning;
    told.content += content;
    common_json calls = common_json::array();
    for (size_t at = 0; at < now.tool_calls.size(); at++) {
        const auto & call = now.tool_calls[at];
        const bool   is_known = at < told.tool_calls.size();
        // A name is complete when something follows it.
        const bool is_certain = !call.arguments.empty() || at + 1 < now.tool_calls.size() || is_last;
        if (!is_known && (call.name.empty() || !is_certain)) {
            break;
        }
        common_json delta = common_json::object({ { "index", at } });
        if (!is_known) {
            delta["name"] = call.name;
            delta["id"]   = call.id;
            told.tool_calls.push_back({ call.name, "", call.id });
        }
        std::string arguments = tail(told.tool_calls[at].arguments, call.arguments);
        if (is_known && arguments.empty()) {
            continue;
        }
        told.tool_calls[at].arguments += arguments;
        delta["arguments"] = arguments;
        calls.push_back(delta);
    }
    return common_json::object({ { "reasoning", reasoning }, { "content", content }, { "calls", calls } });
}

// Text that could have begun a mark is not told before it is clear that it does not. At the end it is clear: a character that no
// mark has shows what the text is.
void add_held_text(const hob_chat_parser & parser, common_chat_msg & now) {
    static const std::string END = "\xEF\xBF\xBE";
    try {
        auto ended = common_chat_parse(parser.text + END, /* is_partial= */ false, *parser.params);
        for (auto * part : { &ended.content, &ended.reasoning_content }) {
            if (ended.tool_calls.empty() && string_ends_with(*part, END)) {
                part->resize(part->size() - END.size());
                now = ended;
                return;
            }
        }
    } catch (const std::exception &) {
        // The text ends inside of something else.
    }
}

}  // namespace

extern "C" {

void hob_chat_text_free(hob_chat_text text) {
    std::free(text.data);
}

bool hob_chat_template_new(const char * source, size_t source_size, const char * bos, const char * eos,
                           const hob_chat_limits * limits, hob_chat_template ** made, hob_chat_text * info,
                           hob_chat_text * error) {
    return guarded(*limits, false, error, [&] {
        auto chat       = std::make_unique<hob_chat_template>();
        chat->templates = common_chat_templates_init(nullptr, std::string(source, source_size), bos, eos);
        // A template that uses up its limits while it is examined is not usable.
        hob::step();
        *info = to_text(caps_of(chat->templates.get()).dump_safe());
        *made = chat.release();
    });
}

void hob_chat_template_free(hob_chat_template * chat) {
    delete chat;
}

bool hob_chat_template_apply(const hob_chat_template * chat, const char * request, size_t request_size,
                             const hob_chat_limits * limits, hob_chat_text * prompt, hob_chat_text * details,
                             hob_chat_text * error) {
    // Whether the grammar is of calls only is a part of the request, so the request is read first, without a template's limits.
    common_json wanted;
    bool        calls_only = false;
    const bool  is_read    = guarded(*limits, false, error, [&] {
        wanted     = common_json::parse(std::string(request, request_size));
        calls_only = wanted.at("calls_only").get<bool>();
    });
    return is_read && guarded(*limits, calls_only, error, [&] {
        applied = chat;
        std::unordered_map<std::string, std::string> signatures;
        for (const auto & [name, signature] : wanted.at("signatures").items()) {
            signatures[name] = signature.get<std::string>();
        }
        hob::use_signatures(std::move(signatures));
        const auto params = common_chat_templates_apply(chat->templates.get(), inputs_of(wanted));
        hob::step();
        hob_chat_text text = to_text(params.prompt);
        try {
            *details = to_text(details_of(params).dump_safe());
        } catch (...) {
            hob_chat_text_free(text);
            throw;
        }
        *prompt = text;
    });
}

bool hob_chat_format_new(const char * details, size_t details_size, hob_chat_format ** made, hob_chat_text * error) {
    // The details come from the template, which had its limits.
    const hob_chat_limits most = { UINT64_MAX, UINT32_MAX, SIZE_MAX, SIZE_MAX };
    return guarded(most, false, error, [&] {
        const auto given  = common_json::parse(std::string(details, details_size));
        auto       params = std::make_shared<common_chat_parser_params>();
        params->format            = static_cast<common_chat_format>(given.at("format").get<int>());
        params->generation_prompt = given.at("generation_prompt").get<std::string>();
        params->reasoning_format  = COMMON_REASONING_FORMAT_DEEPSEEK;
        const auto saved = given.at("parser").get<std::string>();
        if (!saved.empty()) {
            params->parser.load(saved);
        }
        auto format    = std::make_unique<hob_chat_format>();
        format->params = std::move(params);
        *made          = format.release();
    });
}

void hob_chat_format_free(hob_chat_format * format) {
    delete format;
}

hob_chat_parser * hob_chat_parser_new(const hob_chat_format * format) {
    try {
        auto parser    = std::make_unique<hob_chat_parser>();
        parser->params = format->params;
        return parser.release();
    } catch (...) {
        return nullptr;
    }
}

void hob_chat_parser_free(hob_chat_parser * parser) {
    delete parser;
}

bool hob_chat_parser_push(hob_chat_parser * parser, const char * text, size_t text_size, const hob_chat_limits * limits,
                          hob_chat_text * deltas, hob_chat_text * error) {
    return guarded(*limits, false, error, [&] {
        parser->text.append(text, text_size);
        // Text that ends too early is no error here; text that cannot continue is one.
        const auto now = common_chat_parse(parser->text, /* is_partial= */ false, *parser->params);
        *deltas        = to_text(deltas_to(*parser, now, false).dump_safe());
    });
}

bool hob_chat_parser_add(hob_chat_parser * parser, const char * text, size_t text_size, bool is_reasoning) {
    try {
        parser->text.append(text, text_size);
        (is_reasoning ? parser->told.reasoning_content : parser->told.content).append(text, text_size);
        return true;
    } catch (...) {
        return false;
    }
}

bool hob_chat_parser_finish(hob_chat_parser * parser, bool complete, const hob_chat_limits * limits, hob_chat_text * deltas,
                            hob_chat_text * error) {
    return guarded(*limits, false, error, [&] {
        auto now = common_chat_parse(parser->text, !complete, *parser->params);
        if (now.tool_calls.empty()) {
            add_held_text(*parser, now);
        }
        *deltas = to_text(deltas_to(*parser, now, true).dump_safe());
    });
}

}  // extern "C"
