// How std::regex reads the text of a prompt. Included by unicode.cpp.
//
// The tokenizers of many models split text with std::regex, and libstdc++ matches recursively: a few calls for each character of a word,
// a number or a row of spaces. A word of some thousand characters used up the stack and ended the process. Here, the text that
// std::regex reads seems to end where a match has used too much of the stack. So a longer word is split into several, as if each
// were at the end of a text, and all else is split as before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>

#if defined(__GLIBCXX__)

// Bytes of the stack for a match. The smallest stack of a thread that tokenizes has 2 MiB.
constexpr uintptr_t HOB_MATCH_STACK = 512 << 10;

// A position in a text.
template <typename CharT>
struct hob_position {
    using iterator_category = std::random_access_iterator_tag;
    using value_type        = CharT;
    using difference_type   = ptrdiff_t;
    using pointer           = const CharT *;
    using reference         = const CharT &;

    const CharT * at     = nullptr;
    // The stack grows down to here.
    uintptr_t     lowest = 0;

    reference operator*() const { return *at; }
    pointer operator->() const { return at; }
    reference operator[](difference_type n) const { return at[n]; }

    hob_position & operator++() { ++at; return *this; }
    hob_position & operator--() { --at; return *this; }
    hob_position operator++(int) { hob_position old = *this; ++at; return old; }
    hob_position operator--(int) { hob_position old = *this; --at; return old; }
    hob_position & operator+=(difference_type n) { at += n; return *this; }
    hob_position & operator-=(difference_type n) { at -= n; return *this; }
    hob_position operator+(difference_type n) const { return { at + n, lowest }; }
    hob_position operator-(difference_type n) const { return { at - n, lowest }; }
    difference_type operator-(const hob_position & other) const { return at - other.at; }

    // A match asks before each character whether the text ends there.
    bool operator==(const hob_position & other) const {
        return at == other.at || reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) < lowest;
    }
    bool operator!=(const hob_position & other) const { return !(*this == other); }
    bool operator<(const hob_position & other) const { return at < other.at; }
    bool operator>(const hob_position & other) const { return at > other.at; }
    bool operator<=(const hob_position & other) const { return at <= other.at; }
    bool operator>=(const hob_position & other) const { return at >= other.at; }
};

template <typename CharT>
static hob_position<CharT> hob_at(const std::basic_string<CharT> & text, size_t offset) {
    return { text.data() + offset, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - HOB_MATCH_STACK };
}

#else

// Other libraries do not match recursively.
template <typename CharT>
using hob_position = typename std::basic_string<CharT>::const_iterator;

template <typename CharT>
static hob_position<CharT> hob_at(const std::basic_string<CharT> & text, size_t offset) {
    return text.begin() + offset;
}

#endif
