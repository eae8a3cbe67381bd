// SPDX-License-Identifier: Apache-2.0
// The grammar is that of k8s.io/utils/cpuset Parse(): no blanks, no strides; "+3" is
// 3, because strconv.Atoi reads it.
#include <headroom/cpuset.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

namespace headroom {
namespace {

constexpr Cpu kWordBits = 64;

constexpr Cpu base_of(Cpu cpu) {
  return cpu & ~(kWordBits - 1);
}
constexpr std::uint64_t bit_of(Cpu cpu) {
  return std::uint64_t{1} << (cpu & (kWordBits - 1));
}
// Bits first … last of one word, both included.
constexpr std::uint64_t bits_between(Cpu first, Cpu last) {
  return (~std::uint64_t{0} >> (kWordBits - 1 - (last - first))) << (first & (kWordBits - 1));
}

// --- reading as Go's strconv.Atoi does -------------------------------------------------------

// As %q for what may stand in a configuration file.
std::string quoted(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

tl::unexpected<Error> not_a_number(std::string_view text, const char* why) {
  return failure("strconv.Atoi: parsing " + quoted(text) + ": " + why);
}

Result<Cpu> parse_int(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative || text.starts_with('+') ? 1 : 0);
  if (digits.empty()) return not_a_number(text, "invalid syntax");
  Cpu value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return not_a_number(text, "invalid syntax");
    const Cpu digit = negative ? '0' - c : c - '0';
    if (__builtin_mul_overflow(value, Cpu{10}, &value) ||
        __builtin_add_overflow(value, digit, &value))
      return not_a_number(text, "value out of range");
  }
  return value;
}

struct Range {
  Cpu first;
  Cpu last;
};

Result<Range> parse_item(std::string_view item) {
  const auto dash = item.find('-');
  const auto first = parse_int(item.substr(0, dash));
  if (!first) return tl::make_unexpected(first.error());
  if (dash == std::string_view::npos) return Range{*first, *first};
  const auto last = parse_int(item.substr(dash + 1));
  if (!last) return tl::make_unexpected(last.error());
  if (*first <= *last) return Range{*first, *last};
  return failure("invalid range " + quoted(item) + " (" + std::to_string(*first) + " > " +
                 std::to_string(*last) + ")");
}

}  // namespace

// --- making ----------------------------------------------------------------------------------

CpuSet::CpuSet(std::initializer_list<Cpu> cpus) {
  for (const Cpu cpu : cpus)
    insert(cpu);
}

CpuSet CpuSet::range(Cpu first, Cpu last) {
  assert(first >= 0);
  CpuSet set;
  if (first > last) return set;
  for (Cpu base = base_of(first);; base += kWordBits) {
    set.append(base, bits_between(std::max(first, base), std::min(last, base + (kWordBits - 1))));
    if (base == base_of(last)) return set;
  }
}

Result<CpuSet> CpuSet::parse(std::string_view list) {
  CpuSet set;
  if (list.empty()) return set;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view item = list.substr(at, comma - at);
    const auto range = parse_item(item);
    if (!range) return tl::make_unexpected(range.error());
    if (range->last - range->first >= kMax)
      return failure("range " + quoted(item) + " names more than " + std::to_string(kMax) +
                     " CPUs");
    set |= CpuSet::range(range->first, range->last);
    if (set.size() > kMax)
      return failure("the list names more than " + std::to_string(kMax) + " CPUs");
    at = comma + 1;
  }
  return set;
}

std::string CpuSet::format() const {
  std::string text;
  for (auto each = begin(); each != end();) {
    const Cpu first = *each;
    Cpu last = first;
    while (++each != end() && *each == last + 1)
      ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += '-' + std::to_string(last);
  }
  return text;
}

// --- one CPU ---------------------------------------------------------------------------------

int CpuSet::size() const {
  int size = 0;
  for (const Word& word : words_)
    size += std::popcount(word.bits);
  return size;
}

bool CpuSet::contains(Cpu cpu) const {
  const auto word = std::ranges::lower_bound(words_, base_of(cpu), {}, &Word::base);
  return word != words_.end() && word->base == base_of(cpu) && (word->bits & bit_of(cpu));
}

CpuSet::Word& CpuSet::word_of(Cpu cpu) {
  const auto word = std::ranges::lower_bound(words_, base_of(cpu), {}, &Word::base);
  if (word != words_.end() && word->base == base_of(cpu)) return *word;
  return *words_.insert(word, {base_of(cpu), 0});
}

void CpuSet::insert(Cpu cpu) {
  assert(cpu >= 0);
  word_of(cpu).bits |= bit_of(cpu);
}

void CpuSet::erase(Cpu cpu) {
  const auto word = std::ranges::lower_bound(words_, base_of(cpu), {}, &Word::base);
  if (word == words_.end() || word->base != base_of(cpu)) return;
  word->bits &= ~bit_of(cpu);
  if (word->bits == 0) words_.erase(word);
}

// --- algebra ---------------------------------------------------------------------------------

void CpuSet::append(Cpu base, std::uint64_t bits) {
  if (bits) words_.push_back({base, bits});
}

template <class Combine>
CpuSet CpuSet::combined(const CpuSet& a, const CpuSet& b, Combine combine) {
  constexpr Cpu kNone = std::numeric_limits<Cpu>::max();
  CpuSet set;
  auto in_a = a.words_.begin();
  auto in_b = b.words_.begin();
  while (in_a != a.words_.end() || in_b != b.words_.end()) {
    const Cpu base = std::min(in_a == a.words_.end() ? kNone : in_a->base,
                              in_b == b.words_.end() ? kNone : in_b->base);
    const bool from_a = in_a != a.words_.end() && in_a->base == base;
    const bool from_b = in_b != b.words_.end() && in_b->base == base;
    set.append(base, combine(from_a ? in_a->bits : 0, from_b ? in_b->bits : 0));
    if (from_a) ++in_a;
    if (from_b) ++in_b;
  }
  return set;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
  return *this = combined(*this, other, [](std::uint64_t a, std::uint64_t b) { return a | b; });
}
CpuSet& CpuSet::operator&=(const CpuSet& other) {
  return *this = combined(*this, other, [](std::uint64_t a, std::uint64_t b) { return a & b; });
}
CpuSet& CpuSet::operator-=(const CpuSet& other) {
  return *this = combined(*this, other, [](std::uint64_t a, std::uint64_t b) { return a & ~b; });
}

int CpuSet::overlap(const CpuSet& other) const {
  return (*this & other).size();
}

}  // namespace headroom
