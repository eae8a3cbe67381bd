// SPDX-License-Identifier: Apache-2.0
// HEADROOM_FIELDS: the members of a struct, each by its name, in order: all of them.
//
// The names bind the members (a structured binding), so a struct with another number of members
// than names does not compile: a member that was added cannot be forgotten in a file.
#pragma once

#include <string_view>
#include <tuple>

namespace headroom::state {

// kNames: "a, b, c"; tie(value): references to these members.
template <class T>
struct Fields;

// In namespace headroom::state.
#define HEADROOM_FIELDS(Type, ...)                           \
  template <>                                                \
  struct Fields<Type> {                                      \
    static constexpr std::string_view kNames = #__VA_ARGS__; \
    template <class T>                                       \
    static auto tie(T& tied_object) {                        \
      auto& [__VA_ARGS__] = tied_object;                     \
      return std::tie(__VA_ARGS__);                          \
    }                                                        \
  }

// The number of enumerators; one beyond them is no value of the type.
template <class T>
inline constexpr unsigned kEnumerators = 0;

}  // namespace headroom::state
