// SPDX-License-Identifier: Apache-2.0
// Terminal: the tty while `headroomctl top` runs: alternate screen and unbuffered keys. The
// destructor restores it.
#pragma once

#include "base/fd.h"

#include <headroom/result.h>

#include <termios.h>

#include <chrono>
#include <cstdint>
#include <string>

namespace headroom::ctl {

class Terminal {
 public:
  static Result<Terminal> open();
  Terminal(Terminal&& other) noexcept;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal();

  // Shows a frame of lines.
  void show(const std::string& frame) const;

  enum class Event : std::uint8_t { kTimeout, kResized, kQuit };
  Event wait(std::chrono::milliseconds timeout) const;

 private:
  Terminal(Fd signals, termios before);
  Event on_key() const;
  Event on_signal() const;

  Fd signals_;
  termios before_;
  bool active_ = true;
};

}  // namespace headroom::ctl
