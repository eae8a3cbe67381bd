// SPDX-License-Identifier: Apache-2.0
// to_json(), from_json(): values as JSON and back; a struct is an object with its Fields' names.
//
// A field that is missing in the JSON keeps its default (an older release wrote it). An unknown
// field is ignored. They are called by their qualified names: nlohmann's own of the same name would
// be candidates too.
#pragma once

#include "base/state/json_integer.h"

#include <headroom/quantity.h>
#include <headroom/signal.h>
#include <headroom/units.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace headroom::state {

// HEADROOM_FIELDS: names all members of a struct, in their order.
//
// The names bind the members (a structured binding), so a struct with another number of members
// than names does not compile: a member that was added cannot be forgotten in a file.

// kNames: "a, b, c"; tie(value): references to these members.
template <class T>
struct Fields;

// To be used in namespace headroom::state.
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

// The number of enumerators; a larger number is not a value of the type.
template <class T>
inline constexpr unsigned kEnumerators = 0;

// encode(value) and decode(json, value); false: the JSON is not a value of the type. JSON of the
// wrong kind throws nlohmann's exception.
template <class T>
struct Codec;

template <class T>
nlohmann::json to_json(const T& value) {
  return Codec<T>::encode(value);
}
template <class T>
bool from_json(const nlohmann::json& json, T& value) {
  return Codec<T>::decode(json, value);
}

// Takes the first name from "a, b, c".
inline std::string take_name(std::string_view& names) {
  const std::size_t comma = std::min(names.find(','), names.size());
  std::string name(names.substr(0, comma));
  names.remove_prefix(std::min(comma + 1, names.size()));
  std::erase(name, ' ');
  return name;
}

template <class T>
bool field_from_json(const nlohmann::json& object, const std::string& name, T& value) {
  const auto found = object.find(name);
  return found == object.end() || state::from_json(*found, value);
}

template <class T>
struct Codec {
  static nlohmann::json encode(const T& value) {
    nlohmann::json object = nlohmann::json::object();
    std::string_view names = Fields<T>::kNames;
    std::apply(
        [&](const auto&... member) { ((object[take_name(names)] = state::to_json(member)), ...); },
        Fields<T>::tie(value));
    return object;
  }
  static bool decode(const nlohmann::json& json, T& value) {
    if (!json.is_object()) return false;
    std::string_view names = Fields<T>::kNames;
    return std::apply(
        [&](auto&... member) { return (field_from_json(json, take_name(names), member) && ...); },
        Fields<T>::tie(value));
  }
};

template <class T>
requires std::is_arithmetic_v<T> || std::same_as<T, std::string>
struct Codec<T> {
  static nlohmann::json encode(const T& value) { return value; }
  static bool decode(const nlohmann::json& json, T& value) {
    if constexpr (std::integral<T> && !std::same_as<T, bool>)
      value = integer_of<T>(json);
    else
      value = json.get<T>();
    return true;
  }
};

template <class T>
requires std::is_enum_v<T>
struct Codec<T> {
  static_assert(kEnumerators<T> > 0, "give the number of enumerators");
  static nlohmann::json encode(T value) { return static_cast<unsigned>(value); }
  static bool decode(const nlohmann::json& json, T& value) {
    const auto number = integer_of<unsigned>(json);
    value = static_cast<T>(number);
    return number < kEnumerators<T>;
  }
};

template <>
struct Codec<Signal> {
  static nlohmann::json encode(Signal value) { return name(value); }
  static bool decode(const nlohmann::json& json, Signal& value) {
    const auto known = signal_named(json.get<std::string>());
    value = known.value_or(value);
    return known.has_value();
  }
};

template <class Count, class Period>
struct Codec<std::chrono::duration<Count, Period>> {
  using Length = std::chrono::duration<Count, Period>;
  static nlohmann::json encode(Length value) { return value.count(); }
  static bool decode(const nlohmann::json& json, Length& value) {
    Count count{};
    if (!Codec<Count>::decode(json, count)) return false;
    value = Length(count);
    return true;
  }
};

template <>
struct Codec<Instant> {
  static nlohmann::json encode(Instant value) { return value.time_since_epoch().count(); }
  static bool decode(const nlohmann::json& json, Instant& value) {
    value = Instant(Duration(integer_of<std::int64_t>(json)));
    return true;
  }
};

template <>
struct Codec<Bytes> {
  static nlohmann::json encode(Bytes value) { return value.count; }
  static bool decode(const nlohmann::json& json, Bytes& value) {
    return state::from_json(json, value.count);
  }
};

template <>
struct Codec<MilliCpu> {
  static nlohmann::json encode(MilliCpu value) { return value.count; }
  static bool decode(const nlohmann::json& json, MilliCpu& value) {
    return state::from_json(json, value.count);
  }
};

template <>
struct Codec<CgroupId> {
  static nlohmann::json encode(CgroupId id) { return id.value; }
  static bool decode(const nlohmann::json& json, CgroupId& id) {
    return state::from_json(json, id.value);
  }
};

template <>
struct Codec<Quantity> {
  static nlohmann::json encode(const Quantity& value) { return value.canonical(); }
  static bool decode(const nlohmann::json& json, Quantity& value) {
    const auto parsed = Quantity::parse(json.get<std::string>());
    if (parsed) value = *parsed;
    return parsed.has_value();
  }
};

// Text in an array of fixed size, terminated by a zero.
template <std::size_t kSize>
struct Codec<std::array<char, kSize>> {
  static nlohmann::json encode(const std::array<char, kSize>& text) {
    return std::string(text.data());
  }
  static bool decode(const nlohmann::json& json, std::array<char, kSize>& text) {
    const auto read = json.get<std::string>();
    text.fill('\0');
    read.copy(text.data(), kSize - 1);
    return true;
  }
};

template <class T, std::size_t kSize>
requires(!std::same_as<T, char>) struct Codec<std::array<T, kSize>> {
  static nlohmann::json encode(const std::array<T, kSize>& values) {
    nlohmann::json list = nlohmann::json::array();
    for (const T& value : values)
      list.push_back(state::to_json(value));
    return list;
  }
  // An element that is missing keeps its default (an older release had fewer).
  static bool decode(const nlohmann::json& json, std::array<T, kSize>& values) {
    if (!json.is_array() || json.size() > kSize) return false;
    for (std::size_t i = 0; i < json.size(); ++i)
      if (!state::from_json(json[i], values[i])) return false;
    return true;
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static nlohmann::json encode(const std::optional<T>& value) {
    return value ? state::to_json(*value) : nlohmann::json();
  }
  static bool decode(const nlohmann::json& json, std::optional<T>& value) {
    value.reset();
    return json.is_null() || state::from_json(json, value.emplace());
  }
};

template <class T>
struct Codec<std::shared_ptr<const T>> {
  static nlohmann::json encode(const std::shared_ptr<const T>& value) {
    return value ? state::to_json(*value) : nlohmann::json();
  }
  static bool decode(const nlohmann::json& json, std::shared_ptr<const T>& value) {
    value = nullptr;
    if (json.is_null()) return true;
    auto read = std::make_shared<T>();
    if (!state::from_json(json, *read)) return false;
    value = std::move(read);
    return true;
  }
};

template <class T>
struct Codec<std::vector<T>> {
  static nlohmann::json encode(const std::vector<T>& values) {
    nlohmann::json list = nlohmann::json::array();
    for (const T& value : values)
      list.push_back(state::to_json(value));
    return list;
  }
  static bool decode(const nlohmann::json& json, std::vector<T>& values) {
    values.clear();
    return json.is_array() && std::ranges::all_of(json, [&](const nlohmann::json& entry) {
             return state::from_json(entry, values.emplace_back());
           });
  }
};

template <class T, class Less>
struct Codec<std::map<std::string, T, Less>> {
  static nlohmann::json encode(const std::map<std::string, T, Less>& values) {
    nlohmann::json object = nlohmann::json::object();
    for (const auto& [key, value] : values)
      object[key] = state::to_json(value);
    return object;
  }
  static bool decode(const nlohmann::json& json, std::map<std::string, T, Less>& values) {
    values.clear();
    if (!json.is_object()) return false;
    for (const auto& [key, entry] : json.items())
      if (!state::from_json(entry, values[key])) return false;
    return true;
  }
};

// Encoded as a list of [id, value].
template <class T>
struct Codec<std::map<CgroupId, T>> {
  static nlohmann::json encode(const std::map<CgroupId, T>& values) {
    nlohmann::json list = nlohmann::json::array();
    for (const auto& [id, value] : values)
      list.push_back(nlohmann::json::array({state::to_json(id), state::to_json(value)}));
    return list;
  }
  static bool decode(const nlohmann::json& json, std::map<CgroupId, T>& values) {
    values.clear();
    return json.is_array() && std::ranges::all_of(json, [&](const nlohmann::json& entry) {
             CgroupId id;
             return state::from_json(entry.at(0), id) && state::from_json(entry.at(1), values[id]);
           });
  }
};

}  // namespace headroom::state
