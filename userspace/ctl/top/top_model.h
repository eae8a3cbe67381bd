// SPDX-License-Identifier: Apache-2.0
// TopModel: what the full-screen view of `headroomctl top` shows, and what a key does. Pure: the
// same statuses, keys and size give the same lines. The terminal is curses_terminal.h.
#pragma once

#include "ctl/common/status_document.h"
#include "ctl/common/text_table.h"
#include "ctl/top/top_text.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::ctl {

struct TopInput {
  enum class Kind : std::uint8_t {
    kText,  // a character, in `text`
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kClick,  // at `line` and `column`
    kWheelUp,
    kWheelDown,
  };
  Kind kind = Kind::kText;
  std::string text{};  // UTF-8
  std::size_t line = 0;
  std::size_t column = 0;
};

struct TopLine {
  Row pieces{};  // each of one colour
  bool selected = false;
};

class TopModel {
 public:
  TopModel(Status first, TopRequest request);

  // The earlier status is kept until the daemon has read the pods again, because rates need two.
  void update(Status status);
  // An error that does not end the view, shown in the last line; "" for none.
  void set_remark(std::string remark) { remark_ = std::move(remark); }
  // Opens the view of this pod: "namespace/name", name or uid. False: there is no such pod.
  bool open_pod(std::string_view name);

  // False: the view ends.
  bool handle(const TopInput& input);
  // Exactly `screen.rows` lines, none wider than `screen.columns`.
  std::vector<TopLine> render(const Screen& screen);

  const TopSettings& settings() const { return request_.settings; }

 private:
  enum class View : std::uint8_t { kPods, kFilter, kPod, kColumns, kHelp };

  bool handle_text(char key);
  bool handle_filter(const TopInput& input);
  void handle_list(const TopInput& input);
  void click(const TopInput& input);
  void move(std::ptrdiff_t lines);
  void leave();
  void choose_sort(std::ptrdiff_t step);
  void toggle_column();
  void show_selected();
  std::size_t line_count() const;
  void refresh();

  void add_summary(std::vector<TopLine>& lines, const Screen& screen) const;
  void add_pods(std::vector<TopLine>& lines, const Screen& screen);
  void add_rows(std::vector<TopLine>& lines, const std::vector<Row>& rows, const Screen& screen);
  void scroll_to_selected(std::size_t count);
  std::vector<Row> column_rows() const;
  std::string footer() const;

  std::optional<Status> before_;
  Status now_;
  TopRequest request_;
  std::vector<PodSample> pods_;  // of now_, filtered and sorted
  View view_ = View::kPods;
  std::string selected_uid_;               // "": the first line
  std::string open_uid_;                   // of the view kPod
  std::size_t selected_ = 0;               // a line of the list
  std::size_t first_ = 0;                  // the first line that is shown
  std::size_t hidden_columns_ = 0;         // at the left, after the pod
  std::size_t room_ = 1;                   // lines of the list that the last screen had
  std::size_t list_line_ = 0;              // where on the last screen the list began
  std::vector<std::size_t> title_ends_{};  // columns of the last screen
  std::string remark_;
};

}  // namespace headroom::ctl
