// SPDX-License-Identifier: Apache-2.0
// CpuSet: a set of logical CPUs, with the kubelet's list form ("0-3,8,10-11").
//
// A sparse bitset: it stores only words with at least one CPU. A machine with thousands of CPUs
// needs a few dozen words, and a wrong "4294967296" in a file costs one word, not half a gigabyte.
#pragma once

#include <headroom/result.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// A CPU's number. As wide as the kubelet's (Go's int), so that what it can write can be read.
using Cpu = std::int64_t;

class CpuSet {
 public:
  class Iterator;

  CpuSet() = default;
  CpuSet(std::initializer_list<Cpu> cpus);
  static CpuSet range(Cpu first, Cpu last);  // both included

  // Errors have the kubelet's text (k8s.io/utils/cpuset). headroom adds one limit: a list has at
  // most kMax CPUs, so that a damaged file cannot use up the memory.
  static constexpr Cpu kMax = 1 << 20;
  static Result<CpuSet> parse(std::string_view list);
  // In ascending order; two or more consecutive CPUs are written "a-b".
  std::string format() const;

  bool empty() const { return words_.empty(); }
  int size() const;
  bool contains(Cpu cpu) const;
  void insert(Cpu cpu);
  void erase(Cpu cpu);

  CpuSet& operator|=(const CpuSet& other);
  CpuSet& operator&=(const CpuSet& other);
  CpuSet& operator-=(const CpuSet& other);
  friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
  friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
  friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
  friend bool operator==(const CpuSet&, const CpuSet&) = default;

  int overlap(const CpuSet& other) const;  // how many CPUs are in both sets
  bool intersects(const CpuSet& other) const { return overlap(other) > 0; }
  bool subset_of(const CpuSet& other) const { return overlap(other) == size(); }

  Iterator begin() const;  // ascending
  Iterator end() const;

 private:
  struct Word {
    Cpu base = 0;            // the CPU of its lowest bit; a multiple of 64
    std::uint64_t bits = 0;  // never zero
    friend bool operator==(const Word&, const Word&) = default;
  };
  Word& word_of(Cpu cpu);  // created if there is none
  void append(Cpu base, std::uint64_t bits);
  template <class Combine>
  static CpuSet combined(const CpuSet& a, const CpuSet& b, Combine combine);

  std::vector<Word> words_;  // ascending by base
};

class CpuSet::Iterator {
 public:
  using value_type = Cpu;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::input_iterator_tag;
  using pointer = const Cpu*;
  using reference = Cpu;

  Iterator() = default;
  Cpu operator*() const { return word_->base + __builtin_ctzll(left_); }
  Iterator& operator++() {
    left_ &= left_ - 1;
    if (left_ == 0) enter(word_ + 1);
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Iterator&, const Iterator&) = default;

 private:
  friend class CpuSet;
  Iterator(const Word* word, const Word* end) : end_(end) { enter(word); }
  void enter(const Word* word) {
    word_ = word;
    left_ = word == end_ ? 0 : word->bits;
  }

  const Word* word_ = nullptr;
  const Word* end_ = nullptr;
  std::uint64_t left_ = 0;  // bits of the word not yet passed
};

inline CpuSet::Iterator CpuSet::begin() const {
  return {words_.data(), words_.data() + words_.size()};
}
inline CpuSet::Iterator CpuSet::end() const {
  const Word* const end = words_.data() + words_.size();
  return {end, end};
}

}  // namespace headroom
