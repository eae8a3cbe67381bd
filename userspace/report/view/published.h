// SPDX-License-Identifier: Apache-2.0
// Published<T>: hands a T from the loop thread to any readers, through reused buffers.
//
// The writer fills a buffer that has no reader and then publishes it: the mutex is held only to
// swap an index, so a slow reader never delays the loop. A recently used buffer is preferred to an
// idle one: while no reader is slow, two of them are used, and the others give their memory back
// after kIdle publications; once each has grown, publishing allocates nothing. If readers hold
// every other buffer, the publication is skipped and counted: readers then see slightly older
// values.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

namespace headroom::report {

// Four: the published one, the one being written, and two for readers slower than the loop.
template <class T, std::size_t kSlots = 4>
class Published {
 public:
  // Publications after which a buffer that none of them used is emptied.
  static constexpr std::uint64_t kIdle = 60;

  // Held by a reader. Its buffer is not written to while the guard exists.
  class ReadGuard {
   public:
    ReadGuard() = default;
    ReadGuard(ReadGuard&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), slot_(other.slot_) {}
    ReadGuard& operator=(ReadGuard&& other) noexcept {
      if (this != &other) {
        release();
        from_ = std::exchange(other.from_, nullptr);
        slot_ = other.slot_;
      }
      return *this;
    }
    ReadGuard(const ReadGuard&) = delete;
    ReadGuard& operator=(const ReadGuard&) = delete;
    ~ReadGuard() { release(); }

    explicit operator bool() const { return from_ != nullptr; }
    const T& operator*() const { return from_->slots_[slot_]; }
    const T* operator->() const { return &from_->slots_[slot_]; }

   private:
    friend Published;
    ReadGuard(const Published* from, std::size_t slot) : from_(from), slot_(slot) {}
    void release() {
      if (!from_) return;
      const std::lock_guard lock(from_->mutex_);
      --from_->readers_[slot_];
      from_ = nullptr;
    }

    const Published* from_ = nullptr;
    std::size_t slot_ = 0;
  };

  Published() = default;
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  // The latest publication; empty before the first. Any thread. The guard must not outlive this
  // object.
  ReadGuard latest() const {
    const std::lock_guard lock(mutex_);
    if (!current_) return {};
    ++readers_[*current_];
    return ReadGuard(this, *current_);
  }

  // Calls fill(T& next, const T* current), then publishes `next`. `next` still holds an older
  // publication: fill() must overwrite all of it. `current` is the latest publication; null: none.
  // Returns false if the publication was skipped. One writer thread only.
  template <class Fill>
  bool publish(Fill&& fill) {
    const auto slot = free_slot();
    if (!slot) {
      ++skipped_;
      return false;
    }
    // Only this thread writes current_, so reading it here without the lock is not a data race.
    fill(slots_[*slot], current_ ? &slots_[*current_] : nullptr);
    written_[*slot] = ++publications_;
    // Emptied without the mutex: no reader gets a buffer that is not the published one.
    if (const auto idle = make_current(*slot)) {
      slots_[*idle] = T{};
      written_[*idle] = 0;
    }
    return true;
  }

  // Publications skipped because readers held every buffer. Writer's thread only.
  std::uint64_t skipped() const { return skipped_; }

 private:
  // The first buffer that is free, so that the same two alternate until readers hold them.
  std::optional<std::size_t> free_slot() {
    const std::lock_guard lock(mutex_);
    for (std::size_t slot = 0; slot < kSlots; ++slot)
      if (slot != current_ && readers_[slot] == 0) return slot;
    return std::nullopt;
  }

  // Returns a buffer that has been idle for long, if there is one.
  std::optional<std::size_t> make_current(std::size_t published) {
    const std::lock_guard lock(mutex_);
    current_ = published;
    for (std::size_t slot = 0; slot < kSlots; ++slot)
      if (written_[slot] > 0 && publications_ - written_[slot] >= kIdle && readers_[slot] == 0)
        return slot;
    return std::nullopt;
  }

  mutable std::mutex mutex_;
  std::array<T, kSlots> slots_{};
  std::array<std::uint64_t, kSlots> written_{};  // the number of its publication; 0: it is empty
  std::uint64_t publications_ = 0;
  mutable std::array<std::uint32_t, kSlots> readers_{};
  std::optional<std::size_t> current_;
  std::uint64_t skipped_ = 0;
};

}  // namespace headroom::report
