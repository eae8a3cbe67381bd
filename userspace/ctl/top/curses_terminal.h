// SPDX-License-Identifier: Apache-2.0
// CursesTerminal: the full-screen terminal of `headroomctl top`, by ncurses. The destructor
// restores the terminal.
#pragma once

#include "ctl/top/top_model.h"

#include <headroom/result.h>

#include <chrono>
#include <optional>
#include <vector>

namespace headroom::ctl {

class CursesTerminal {
 public:
  struct Options {
    bool colour = true;
    bool mouse = false;
  };
  // Fails if terminfo does not know $TERM, or if it cannot move the cursor.
  static Result<CursesTerminal> open(const Options& options);
  CursesTerminal(CursesTerminal&& other) noexcept;
  CursesTerminal& operator=(CursesTerminal&&) = delete;
  ~CursesTerminal();

  Screen screen() const;
  void show(const std::vector<TopLine>& lines) const;

  // Absent: the time passed, or the size changed.
  std::optional<TopInput> wait(std::chrono::milliseconds time);
  // The terminal was closed, or a signal asks to end.
  bool ended() const { return ended_; }

 private:
  explicit CursesTerminal(const Options& options);
  std::optional<TopInput> read_input();

  bool colour_ = false;
  bool open_ = true;
  bool ended_ = false;
};

}  // namespace headroom::ctl
