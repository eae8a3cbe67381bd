// SPDX-License-Identifier: Apache-2.0
// Wire: values as bytes and back. A Writer and a Reader are called alike, so one description of a
// type (shapes.h) serves both ways and the two cannot drift apart.
//
// Numbers are varints, signed ones zigzag; doubles their bits; instants the time since `base`, for
// most are close to it. A Reader never reads past its end: what is missing or impossible makes it
// bad, and it then yields zeros.
#pragma once

#include <headroom/decision.h>
#include <headroom/units.h>

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace headroom::recording {

template <class T, class Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

// A shared value is written in full once, and by number from then on. It is kept alive, so that no
// other value can get the address of a known one.
template <class T>
class InternedObjects {
 public:
  // The number, and whether it is a new one.
  std::pair<std::size_t, bool> number_of(const std::shared_ptr<const T>& value) {
    const auto [place, fresh] = numbers_.try_emplace(value.get(), values_.size());
    if (fresh) values_.push_back(value);
    return {place->second, fresh};
  }
  void add(std::shared_ptr<const T> value) { values_.push_back(std::move(value)); }
  std::size_t size() const { return values_.size(); }
  const std::shared_ptr<const T>& operator[](std::size_t number) const { return values_[number]; }

 private:
  std::vector<std::shared_ptr<const T>> values_;
  std::unordered_map<const T*, std::size_t> numbers_;
};

// What both sides remember between frames.
struct InternTables {
  InternedObjects<Pod> pods;
  InternedObjects<Taint> taints;
};

// Of bytes, files, nanoseconds, rates: no node has as many, and their sums fit into 64 bits.
inline constexpr std::int64_t kLargest = std::int64_t{1} << 60;
constexpr bool is_possible(std::int64_t count) {
  return -kLargest <= count && count <= kLargest;
}

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

class Writer {
 public:
  static constexpr bool kReads = false;

  Writer(std::string& out, InternTables& intern_tables, Instant at)
      : base(at), intern_tables_(&intern_tables), out_(&out) {}

  template <class... T>
  void operator()(const T&... values) {
    (put(*this, values), ...);
  }

  void number(const std::uint64_t& value) {
    std::uint64_t left = value;
    for (; left >= 0x80; left >>= 7)
      out_->push_back(static_cast<char>(left | 0x80));
    out_->push_back(static_cast<char>(left));
  }
  void text(const std::string& value) {
    number(value.size());
    out_->append(value);
  }
  template <class T>
  void shared(InternedObjects<T>& interned, const std::shared_ptr<const T>& value) {
    if (!value) return number(0);
    const auto [index, fresh] = interned.number_of(value);
    number(index + 1);
    if (fresh) (*this)(*value);
  }
  InternTables& intern_tables() { return *intern_tables_; }

  const Instant base;

 private:
  InternTables* intern_tables_;
  std::string* out_;
};

class Reader {
 public:
  static constexpr bool kReads = true;

  Reader(std::string_view in, InternTables& intern_tables, Instant at)
      : base(at), intern_tables_(&intern_tables), in_(in) {}

  template <class... T>
  void operator()(T&... values) {
    (put(*this, values), ...);
  }

  void number(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (in_.empty()) break;
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return;
    }
    fail();
    value = 0;
  }
  void text(std::string& value) {
    std::uint64_t size = 0;
    number(size);
    if (size > in_.size()) return fail();
    value.assign(in_.substr(0, size));
    in_.remove_prefix(size);
  }
  template <class T>
  void shared(InternedObjects<T>& interned, std::shared_ptr<const T>& value) {
    std::uint64_t index = 0;
    number(index);
    value = nullptr;
    if (index == 0) return;
    if (index == interned.size() + 1) {
      auto fresh = std::make_shared<T>();
      (*this)(*fresh);
      interned.add(std::move(fresh));
    }
    if (index > interned.size()) return fail();
    value = interned[index - 1];
  }
  InternTables& intern_tables() { return *intern_tables_; }

  bool good() const { return good_; }
  bool at_end() const { return in_.empty(); }
  std::size_t left() const { return in_.size(); }
  void fail() {
    good_ = false;
    in_ = {};
  }

  const Instant base;

 private:
  InternTables* intern_tables_;
  std::string_view in_;
  bool good_ = true;
};

// --- what any type is made of -------------------------------------------------------------------

template <class Io, class T>
requires std::unsigned_integral<std::remove_const_t<T>>
void put(Io& io, T& value) {
  std::uint64_t wide = value;
  io.number(wide);
  if constexpr (Io::kReads) value = static_cast<T>(wide);
}

template <class Io, class T>
requires std::signed_integral<std::remove_const_t<T>>
void put(Io& io, T& value) {
  std::uint64_t wide = zigzag(value);
  io.number(wide);
  if constexpr (Io::kReads) value = static_cast<T>(unzigzag(wide));
}

// An enumerator beyond the last is no value of its type: a damaged file must not make one.
template <class T>
constexpr std::uint64_t kEnumerators = 0;

template <class Io, class T>
requires std::is_enum_v<std::remove_const_t<T>>
void put(Io& io, T& value) {
  constexpr std::uint64_t kCount = kEnumerators<std::remove_const_t<T>>;
  static_assert(kCount > 0, "say in shapes.h how many enumerators there are");
  auto wide = static_cast<std::uint64_t>(value);
  io.number(wide);
  if constexpr (Io::kReads) {
    if (wide >= kCount) return io.fail();
    value = static_cast<T>(wide);
  }
}

template <class Io, Is<float> T>
void put(Io& io, T& value) {
  std::uint64_t bits = std::bit_cast<std::uint32_t>(value);
  io.number(bits);
  if constexpr (Io::kReads) value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
template <class Io, Is<double> T>
void put(Io& io, T& value) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  io.number(bits);
  if constexpr (Io::kReads) {
    value = std::bit_cast<double>(bits);
    if (!(std::abs(value) <= static_cast<double>(kLargest))) io.fail();
  }
}

template <class Io, Is<std::string> T>
void put(Io& io, T& value) {
  io.text(value);
}

template <class Io, class T>
requires Is<T, Duration> || Is<T, std::chrono::seconds>
void put(Io& io, T& value) {
  std::int64_t count = value.count();
  put(io, count);
  if constexpr (Io::kReads) value = T(count);
}

// 36 years of nanoseconds. A damaged recording has instants farther apart, and sums and differences
// of those do not fit into 64 bits.
inline constexpr Duration kFarthest{std::int64_t{1} << 60};

// The zero instant is "never", and not close to anything.
template <class Io, Is<Instant> T>
void put(Io& io, T& value) {
  std::uint64_t wide = value == Instant{} ? 0 : zigzag((value - io.base).count()) + 1;
  io.number(wide);
  if constexpr (Io::kReads) {
    const Duration from_base(wide == 0 ? 0 : unzigzag(wide - 1));
    if (from_base < -kFarthest || from_base > kFarthest) return io.fail();
    value = wide == 0 ? Instant{} : io.base + from_base;
  }
}

template <class Io, class T>
void put_optional(Io& io, T& value) {
  bool there = value.has_value();
  put(io, there);
  if constexpr (Io::kReads) {
    if (there)
      value.emplace();
    else
      value.reset();
  }
  if (there) io(*value);
}
template <class Io, class T>
void put(Io& io, std::optional<T>& value) {
  put_optional(io, value);
}
template <class Io, class T>
void put(Io& io, const std::optional<T>& value) {
  put_optional(io, value);
}

template <class T>
void put(Writer& io, const std::vector<T>& values) {
  io.number(values.size());
  for (const T& value : values)
    io(value);
}
// One after another: a size that is a lie costs no more memory than there are bytes.
template <class T>
void put(Reader& io, std::vector<T>& values) {
  std::uint64_t size = 0;
  io.number(size);
  values.clear();
  for (; size > 0 && io.good(); --size)
    io(values.emplace_back());
}

template <class Io, class T, std::size_t kSize>
void put(Io& io, std::array<T, kSize>& values) {
  for (T& value : values)
    io(value);
}
template <class Io, class T, std::size_t kSize>
void put(Io& io, const std::array<T, kSize>& values) {
  for (const T& value : values)
    io(value);
}

template <class Value, class Less>
void put(Writer& io, const std::map<std::string, Value, Less>& values) {
  io.number(values.size());
  for (const auto& [key, value] : values)
    io(key, value);
}
template <class Value, class Less>
void put(Reader& io, std::map<std::string, Value, Less>& values) {
  std::uint64_t size = 0;
  io.number(size);
  values.clear();
  for (; size > 0 && io.good(); --size) {
    std::string key;
    io(key);
    io(values[key]);
  }
}

template <class Io, class T>
requires Is<T, std::shared_ptr<const Pod>>
void put(Io& io, T& value) {
  io.shared(io.intern_tables().pods, value);
}
template <class Io, class T>
requires Is<T, std::shared_ptr<const Taint>>
void put(Io& io, T& value) {
  io.shared(io.intern_tables().taints, value);
}

}  // namespace headroom::recording
