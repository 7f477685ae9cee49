// llama.cpp's chat layer for C: templates with tools, and the parser of answers. Text goes in and out as JSON in UTF-8. No function
// throws. A function that fails returns false and sets `error`. Texts are freed with hob_chat_text_free.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hob_chat_template hob_chat_template;
typedef struct hob_chat_format   hob_chat_format;
typedef struct hob_chat_parser   hob_chat_parser;

typedef struct {
    char * data;
    size_t size;
} hob_chat_text;

typedef struct {
    uint64_t steps;
    uint64_t milliseconds;
    size_t   bytes;
    size_t   stack;
} hob_chat_limits;

void hob_chat_text_free(hob_chat_text text);

// Reads a template. `info` says what it can.
bool hob_chat_template_new(const char * source, size_t source_size, const char * bos, const char * eos,
                           const hob_chat_limits * limits, hob_chat_template ** made, hob_chat_text * info,
                           hob_chat_text * error);
void hob_chat_template_free(hob_chat_template * chat);

// Renders a conversation. `details` says how to read the answer. May run on several threads at once.
bool hob_chat_template_apply(const hob_chat_template * chat, const char * request, size_t request_size,
                             const hob_chat_limits * limits, hob_chat_text * prompt, hob_chat_text * details,
                             hob_chat_text * error);

// The format of an answer, from the `details` of its conversation. Several threads may use it at once.
bool hob_chat_format_new(const char * details, size_t details_size, hob_chat_format ** made, hob_chat_text * error);
void hob_chat_format_free(hob_chat_format * format);

// The parser of one answer, or null without memory. It may outlive the format.
hob_chat_parser * hob_chat_parser_new(const hob_chat_format * format);
void              hob_chat_parser_free(hob_chat_parser * parser);

// Adds text, and sets `deltas` to what is new since the last call. Text that does not fit the format is an error, and the parser
// stays usable.
bool hob_chat_parser_push(hob_chat_parser * parser, const char * text, size_t text_size, const hob_chat_limits * limits,
                          hob_chat_text * deltas, hob_chat_text * error);

// Adds text that is known to be reasoning, or else words, without parsing it. Returns false without memory.
bool hob_chat_parser_add(hob_chat_parser * parser, const char * text, size_t text_size, bool is_reasoning);

// Parses the whole answer, which is incomplete if it was cut off.
bool hob_chat_parser_finish(hob_chat_parser * parser, bool complete, const hob_chat_limits * limits, hob_chat_text * deltas,
                            hob_chat_text * error);

#ifdef __cplusplus
}
#endif
