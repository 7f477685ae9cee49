// Limits for code that runs a chat template or parses an answer, both of which are not trusted. Included before every source of
// llama.cpp's chat layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "ggml.h"

struct common_chat_template;

namespace autoparser {
struct autoparser;
}

namespace jinja {
struct value_t;

// Checks the depth of the lists in a value. Defined by a change of the runtime.
void check_nesting(const std::shared_ptr<value_t> & val, size_t level);
}

namespace hob {

// The analysis of the template that the current thread applies, made once.
const autoparser::autoparser & analysis_of(const common_chat_template & chat);

// A limit of the current call is reached. All later steps of the call fail too, so no handler in between can ignore it.
struct limit_reached : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] void failed(const char * condition);

// Counts one step of the current call. Checks the time and the depth of the stack too.
void step();

// Counts memory that the current call allocates.
void grow(size_t bytes);

// Checks the number of tokens of a statement or expression of a template, before the template is parsed. The depth of what the
// parser makes of it is at most this number.
void check_tag(size_t length);

// Checks the depth of a list that a template makes.
void check_level(size_t level);

// Keeps a list or an object of a template until the call ends, and takes its parts away then. Freeing one frees no other, so that the
// stack does not grow with their depth, and those that contain themselves are freed too.
void keep(const std::shared_ptr<void> & owner, void (*unlink)(void *));

// What templates print in the place of the JSON of a tool, by its name; null for the JSON.
const std::string * signature_of(const std::string & name);

// Sets what templates print for the rest of the call.
void use_signatures(std::unordered_map<std::string, std::string> signatures);

// The name of a grammar rule: each row of other characters becomes one dash.
std::string rule_name(const std::string & name);

// Whether grammars are made of the tool calls only, without what may come before them.
bool calls_only();

struct limits {
    uint64_t steps;
    uint64_t milliseconds;
    size_t   bytes;
    size_t   stack;
};

// Applies limits to the current thread while it exists.
class limited_call {
  public:
    explicit limited_call(const limits & most, bool calls_only = false);
    ~limited_call();
    limited_call(const limited_call &)             = delete;
    limited_call & operator=(const limited_call &) = delete;
};

// The standard function shares one result between threads.
std::tm * local_time(const std::time_t * time);

}  // namespace hob

namespace std {
using hob::local_time;
}

#define localtime local_time

#undef GGML_ASSERT
#define GGML_ASSERT(condition) \
    do {                       \
        if (!(condition)) {    \
            hob::failed(#condition); \
        }                      \
    } while (false)

#undef GGML_ABORT
#define GGML_ABORT(...) hob::failed("an internal check")
