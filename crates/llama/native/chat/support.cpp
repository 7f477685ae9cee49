// What the chat layer of llama.cpp needs from the rest of its library `common`, without compiling all of that: limits, text
// helpers, a log that drops everything, schemas and grammars.
//
// Schemas are read more leniently than by llama.cpp: a schema only tells the parser the names and kinds of arguments, and Hob
// enforces it with its own grammar engine. A grammar is returned as JSON: rules in llama.cpp's syntax, and schemas by reference.
#include "guard.h"

#include "chat.h"
#include "common.h"
#include "json-schema-to-grammar.h"
#include "json-schema.h"
#include "json.h"
#include "log.h"

#include <chrono>
#include <cstdarg>
#include <sstream>
#include <unordered_map>

// The original reader of schemas refuses what it cannot make a grammar of.
#define common_chat_schema_from_json llama_chat_schema_from_json
#include "json-schema.cpp"
#undef common_chat_schema_from_json

namespace hob {

namespace {

// A list or an object of a template.
struct kept_value {
    std::shared_ptr<void> owner;
    void (*unlink)(void *);
};

struct call_state {
    limits       left;
    uint64_t     deadline;
    const char * stack_base;
    bool         calls_only;
    bool         over;

    std::unordered_map<std::string, std::string> signatures;
    std::unordered_map<void *, kept_value>       kept;
};

thread_local call_state * current = nullptr;

// Tokens of a statement or expression of a template. Those of real templates have some hundreds. Each may be a level of the tree that
// the parser makes, and freeing the tree is recursive: this many levels use some hundred kilobytes of the stack.
constexpr size_t MAX_TAG = 4096;

// The depth of a list that a template makes.
constexpr size_t MAX_LEVEL = 200;

// About the bytes of a list or an object without its parts.
constexpr size_t KEPT_BYTES = 400;

// The time that the processor has worked for this thread. On a busy machine much more time passes. Where it is not known, that counts.
uint64_t milliseconds_used() {
#ifdef CLOCK_THREAD_CPUTIME_ID
    struct timespec used = {};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0) {
        return static_cast<uint64_t>(used.tv_sec) * 1000 + static_cast<uint64_t>(used.tv_nsec) / 1000000;
    }
#endif
    const auto passed = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(passed).count());
}

[[noreturn]] void exceed(const char * what) {
    current->over = true;
    throw limit_reached(what);
}

}  // namespace

void failed(const char * condition) {
    throw std::runtime_error(std::string("internal error: ") + condition);
}

void step() {
    if (current == nullptr) {
        return;
    }
    if (current->over || current->left.steps == 0) {
        exceed("it takes too many steps");
    }
    current->left.steps--;
    if ((current->left.steps & 0xff) == 0 && milliseconds_used() > current->deadline) {
        exceed("it takes too long");
    }
    char         here  = 0;
    const auto   depth = current->stack_base - &here;
    const size_t used  = static_cast<size_t>(depth < 0 ? -depth : depth);
    if (used > current->left.stack) {
        exceed("it is nested too deeply");
    }
}

void grow(size_t bytes) {
    if (current == nullptr) {
        return;
    }
    if (bytes > current->left.bytes) {
        exceed("it needs too much memory");
    }
    current->left.bytes -= bytes;
}

void check_tag(size_t length) {
    if (current != nullptr && length > MAX_TAG) {
        exceed("a statement or an expression of it is too long");
    }
}

void check_level(size_t level) {
    if (current != nullptr && level > MAX_LEVEL) {
        exceed("it nests lists too deeply");
    }
}

void keep(const std::shared_ptr<void> & owner, void (*unlink)(void *)) {
    if (current != nullptr && current->kept.emplace(owner.get(), kept_value{ owner, unlink }).second) {
        grow(KEPT_BYTES);
    }
}

const std::string * signature_of(const std::string & name) {
    if (current == nullptr) {
        return nullptr;
    }
    const auto found = current->signatures.find(name);
    return found == current->signatures.end() ? nullptr : &found->second;
}

void use_signatures(std::unordered_map<std::string, std::string> signatures) {
    if (current != nullptr) {
        current->signatures = std::move(signatures);
    }
}

std::string rule_name(const std::string & name) {
    std::string clean;
    bool        is_replaced = false;
    for (const char c : name) {
        const bool is_valid = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
        if (is_valid) {
            clean += c;
        } else if (!is_replaced) {
            clean += '-';
        }
        is_replaced = !is_valid;
    }
    return clean;
}

bool calls_only() {
    return current != nullptr && current->calls_only;
}

limited_call::limited_call(const limits & most, bool calls_only) {
    char           base     = 0;
    const uint64_t deadline = milliseconds_used() + most.milliseconds;
    current                 = new call_state{ most, deadline, &base, calls_only, false, {}, {} };
}

limited_call::~limited_call() {
    for (auto & [at, one] : current->kept) {
        one.unlink(at);
    }
    delete current;
    current = nullptr;
}

std::tm * local_time(const std::time_t * time) {
    static thread_local std::tm result;
#ifdef _WIN32
    localtime_s(&result, time);
#else
    localtime_r(time, &result);
#endif
    return &result;
}

namespace {

// Where a schema came from. The nodes live only as long as the call that makes them.
struct schema_origin {
    std::shared_ptr<const common_json> document;
    std::string                        pointer;
};

thread_local std::unordered_map<const common_chat_schema *, schema_origin> origins;

std::string pointer_token(const std::string & name) {
    std::string token;
    for (char c : name) {
        if (c == '~') {
            token += "~0";
        } else if (c == '/') {
            token += "~1";
        } else {
            token += c;
        }
    }
    return token;
}

// The part of a document that a local reference names, or null.
const common_json * resolve(const common_json & document, const std::string & reference) {
    if (reference.empty() || reference[0] != '#') {
        return nullptr;
    }
    const common_json * at = &document;
    size_t              from = 1;
    while (from < reference.size()) {
        if (reference[from] != '/') {
            return nullptr;
        }
        size_t      to = reference.find('/', from + 1);
        std::string token = reference.substr(from + 1, to == std::string::npos ? to : to - from - 1);
        string_replace_all(token, "~1", "/");
        string_replace_all(token, "~0", "~");
        if (!at->is_object() || !at->contains(token)) {
            return nullptr;
        }
        at   = &at->at(token);
        from = to == std::string::npos ? reference.size() : to;
    }
    return at;
}

class schema_reader {
    std::shared_ptr<const common_json> document;

    static constexpr int MAX_DEPTH = 32;

    common_chat_schema_ptr noted(common_chat_schema_ptr node, const std::string & pointer) {
        origins[node.get()] = { document, pointer };
        return node;
    }

    common_chat_schema_ptr of_type(const common_json & schema, const std::string & type, const std::string & pointer, int depth) {
        if (type == "null") {
            return std::make_unique<common_chat_schema_null>();
        }
        if (type == "boolean") {
            return std::make_unique<common_chat_schema_boolean>();
        }
        if (type == "number") {
            return std::make_unique<common_chat_schema_number>();
        }
        if (type == "integer") {
            return std::make_unique<common_chat_schema_integer>();
        }
        if (type == "string") {
            return std::make_unique<common_chat_schema_string>();
        }
        if (type == "array") {
            auto node   = std::make_unique<common_chat_schema_array>();
            node->items = schema.contains("items") && schema.at("items").is_object() ?
                              read(schema.at("items"), pointer + "/items", depth) :
                              noted(std::make_unique<common_chat_schema_any>(), pointer + "/items");
            return node;
        }
        if (type == "object") {
            auto node = std::make_unique<common_chat_schema_object>();
            if (schema.contains("properties") && schema.at("properties").is_object()) {
                for (const auto & [name, property] : schema.at("properties").items()) {
                    bool required = false;
                    if (schema.contains("required") && schema.at("required").is_array()) {
                        for (const auto & one : schema.at("required")) {
                            required = required || (one.is_string() && one.get<std::string>() == name);
                        }
                    }
                    node->properties.push_back(
                        { name, read(property, pointer + "/properties/" + pointer_token(name), depth), required });
                }
            }
            return node;
        }
        return std::make_unique<common_chat_schema_any>();
    }

    template <typename T>
    common_chat_schema_ptr several(const common_json & schemas, const std::string & pointer, int depth) {
        auto   node  = std::make_unique<T>();
        size_t index = 0;
        for (const auto & one : schemas) {
            node->children.push_back(read(one, pointer + "/" + std::to_string(index++), depth));
        }
        return node;
    }

    common_chat_schema_ptr node_of(const common_json & schema, const std::string & pointer, int depth) {
        if (!schema.is_object() || depth > MAX_DEPTH) {
            return std::make_unique<common_chat_schema_any>();
        }
        if (schema.contains("$ref") && schema.at("$ref").is_string()) {
            const auto * target = resolve(*document, schema.at("$ref").get<std::string>());
            return target == nullptr ? std::make_unique<common_chat_schema_any>() : node_of(*target, pointer, depth + 1);
        }
        if (schema.contains("const")) {
            return std::make_unique<common_chat_schema_const>(schema.at("const"));
        }
        if (schema.contains("enum") && schema.at("enum").is_array()) {
            auto node = std::make_unique<common_chat_schema_enum>();
            for (const auto & value : schema.at("enum")) {
                node->values.push_back(value);
            }
            return node;
        }
        for (const char * key : { "anyOf", "oneOf" }) {
            if (schema.contains(key) && schema.at(key).is_array()) {
                return several<common_chat_schema_any_of>(schema.at(key), pointer + "/" + key, depth + 1);
            }
        }
        if (schema.contains("type")) {
            const auto & type = schema.at("type");
            if (type.is_string()) {
                return of_type(schema, type.get<std::string>(), pointer, depth + 1);
            }
            if (type.is_array()) {
                auto node = std::make_unique<common_chat_schema_any_of>();
                for (const auto & one : type) {
                    if (one.is_string()) {
                        node->children.push_back(noted(of_type(schema, one.get<std::string>(), pointer, depth + 1), pointer));
                    }
                }
                return node;
            }
        }
        if (schema.contains("allOf") && schema.at("allOf").is_array()) {
            return several<common_chat_schema_all_of>(schema.at("allOf"), pointer + "/allOf", depth + 1);
        }
        if (schema.contains("properties")) {
            return of_type(schema, "object", pointer, depth + 1);
        }
        for (const char * key : { "pattern", "minLength", "maxLength", "format" }) {
            if (schema.contains(key)) {
                return std::make_unique<common_chat_schema_string>();
            }
        }
        return std::make_unique<common_chat_schema_any>();
    }

    common_chat_schema_ptr read(const common_json & schema, const std::string & pointer, int depth) {
        step();
        return noted(node_of(schema, pointer, depth), pointer);
    }

  public:
    explicit schema_reader(const common_json & schema) : document(std::make_shared<const common_json>(schema)) {}

    common_chat_schema_ptr root() { return read(*document, "", 0); }
};

}  // namespace

// The schemas of a call are forgotten with it.
void forget_schemas() {
    origins.clear();
}

}  // namespace hob

common_chat_schema_document common_chat_schema_from_json(const common_json & schema) {
    common_chat_schema_document document;
    document.root = hob::schema_reader(schema).root();
    return document;
}

std::string gbnf_format_literal(const std::string & literal) {
    std::string text = "\"";
    for (char c : literal) {
        switch (c) {
            case '"':  text += "\\\""; break;
            case '\\': text += "\\\\"; break;
            case '\n': text += "\\n";  break;
            case '\r': text += "\\r";  break;
            case '\t': text += "\\t";  break;
            default:   text += c;
        }
    }
    return text + "\"";
}

std::string build_grammar(const std::function<void(const common_grammar_builder &)> & cb, const common_grammar_options &) {
    common_json rules   = common_json::object();
    common_json schemas = common_json::object();
    // As in llama.cpp, other characters of a name become a hyphen, and a second rule of the same name gets a number.
    auto add = [&](const std::string & name, const std::string & body) {
        std::string plain;
        for (char c : name) {
            bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
            if (allowed) {
                plain += c;
            } else if (plain.empty() || plain.back() != '-') {
                plain += '-';
            }
        }
        std::string key = plain;
        for (int number = 0; rules.contains(key) && rules.at(key).get<std::string>() != body; number++) {
            key = plain + std::to_string(number);
        }
        rules[key] = body;
        return key;
    };
    common_grammar_builder builder{
        /* .add_rule = */ add,
        /* .add_schema = */
        [&](const std::string &, const common_chat_schema & schema) {
            std::string key = "schema-" + std::to_string(schemas.size());
            auto        found = hob::origins.find(&schema);
            schemas[key] = found == hob::origins.end() ?
                               common_json::object({ { "document", true }, { "pointer", "" } }) :
                               common_json::object({ { "document", *found->second.document },
                                                     { "pointer", found->second.pointer } });
            return key;
        },
    };
    cb(builder);
    return common_json::object({ { "rules", rules }, { "schemas", schemas } }).dump_safe();
}

// Only the route without Jinja templates uses it, which Hob does not.
std::string json_schema_to_grammar(const common_json &, bool) {
    throw std::runtime_error("internal error: a schema without a template");
}

std::string string_join(const std::vector<std::string> & values, const std::string & separator) {
    std::string text;
    for (size_t i = 0; i < values.size(); i++) {
        text += (i == 0 ? "" : separator) + values[i];
    }
    return text;
}

std::vector<std::string> string_split(const std::string & text, const std::string & delimiter) {
    std::vector<std::string> parts;
    size_t                   from = 0;
    for (size_t at = text.find(delimiter); at != std::string::npos; at = text.find(delimiter, from)) {
        parts.push_back(text.substr(from, at - from));
        from = at + delimiter.size();
    }
    parts.push_back(text.substr(from));
    return parts;
}

void string_replace_all(std::string & text, const std::string & search, const std::string & replacement) {
    if (search.empty()) {
        return;
    }
    for (size_t at = text.find(search); at != std::string::npos; at = text.find(search, at + replacement.size())) {
        text.replace(at, search.size(), replacement);
    }
}

// Messages of the chat layer are for its developers.
int common_log_get_verbosity_thold() {
    return -1;
}

struct common_log * common_log_main() {
    return nullptr;
}

void common_log_add(struct common_log *, enum ggml_log_level, const char *, ...) {}

// Only the routes that are given a model use these, which Hob does not.
std::string common_token_to_piece(const struct llama_vocab *, llama_token, bool) {
    throw std::runtime_error("internal error: a token without a model");
}

std::vector<llama_token> common_tokenize(const struct llama_vocab *, const std::string &, bool, bool) {
    throw std::runtime_error("internal error: a text without a model");
}
