// SPDX-License-Identifier: Apache-2.0
// LockedValue: a value that one thread sets and any thread reads.
#pragma once

#include <mutex>

namespace headroom {

template <class Value>
class LockedValue {
 public:
  void set(const Value& value) {
    const std::lock_guard lock(mutex_);
    value_ = value;
  }
  Value get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  Value value_{};  // guarded by mutex_
};

}  // namespace headroom
