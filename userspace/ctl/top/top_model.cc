// SPDX-License-Identifier: Apache-2.0
#include "ctl/top/top_model.h"

#include "ctl/common/commands.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <spdlog/fmt/fmt.h>

namespace headroom::ctl {
namespace {

using Kind = TopInput::Kind;

constexpr std::size_t kWheelLines = 3;
constexpr std::size_t kMaxFilter = 100;  // characters

const std::vector<Row>& help_rows() {
  static const std::vector<Row> rows{
      {{"Up, Down, j, k", Colour::kBold}, {"select a pod"}},
      {{"Page Up, Page Down, Home, End", Colour::kBold},
       {"move by a screen, to the first, to the last"}},
      {{"Left, Right", Colour::kBold}, {"show columns that do not fit"}},
      {{"/", Colour::kBold},
       {"filter: type words of namespace, name, QoS class or state; Enter keeps it, Escape clears "
        "it"}},
      {{"< and >", Colour::kBold}, {"sort by another column"}},
      {{"r", Colour::kBold}, {"reverse the order"}},
      {{"c", Colour::kBold}, {"choose columns; Space shows or hides one; the choice is kept"}},
      {{"Enter", Colour::kBold}, {"all that is known of the selected pod"}},
      {{"Escape", Colour::kBold}, {"back"}},
      {{"q", Colour::kBold}, {"quit"}},
      {{"with --mouse", Colour::kBold},
       {"a click selects a pod or sorts by a title, the wheel scrolls"}}};
  return rows;
}

// Without the first `hidden` columns after the pod's.
void hide_columns(std::vector<Row>& rows, std::size_t hidden) {
  for (Row& row : rows)
    row.erase(row.begin() + 1,
              row.begin() + 1 + static_cast<std::ptrdiff_t>(std::min(hidden, row.size() - 1)));
}

TopLine text_line(std::string_view text, Colour colour, std::size_t columns) {
  return {.pieces = {{std::string(fitting(text, columns)), colour}}};
}

}  // namespace

TopModel::TopModel(Status first, TopRequest request)
    : now_(std::move(first)), request_(std::move(request)) {
  refresh();
}

void TopModel::update(Status status) {
  if (now_.pods_at_ns != status.pods_at_ns) before_ = std::move(now_);
  now_ = std::move(status);
  refresh();
}

// After new pods, another filter or another order: the selected pod stays selected.
void TopModel::refresh() {
  pods_ = requested_pods(before_ ? &*before_ : nullptr, now_, request_);
  if (view_ != View::kPods && view_ != View::kFilter) return;
  const auto found = std::find_if(pods_.begin(), pods_.end(), [&](const PodSample& each) {
    return each.pod->uid == selected_uid_;
  });
  if (selected_uid_.empty()) selected_ = 0;
  if (found != pods_.end()) selected_ = static_cast<std::size_t>(found - pods_.begin());
  selected_ = std::min(selected_, pods_.empty() ? 0 : pods_.size() - 1);
}

bool TopModel::open_pod(std::string_view name) {
  const std::vector<PodSample> pods = pod_samples(nullptr, now_);
  const PodSample* const found = find_pod(pods, name);
  if (!found) return false;
  open_uid_ = selected_uid_ = found->pod->uid;
  view_ = View::kPod;
  selected_ = first_ = 0;
  return true;
}

bool TopModel::handle(const TopInput& input) {
  if (view_ == View::kFilter) return handle_filter(input);
  if (input.kind == Kind::kText) return input.text.size() != 1 || handle_text(input.text[0]);
  handle_list(input);
  return true;
}

bool TopModel::handle_text(char key) {
  switch (key) {
    case 'q':
    case 'Q':
      return false;
    case 'j':
      move(1);
      return true;
    case 'k':
      move(-1);
      return true;
    case ' ':
      if (view_ == View::kColumns) toggle_column();
      return true;
    case 'h':
    case '?':
      leave();
      view_ = View::kHelp;
      selected_ = first_ = 0;
      return true;
  }
  if (view_ != View::kPods) return true;
  switch (key) {
    case '/':
      view_ = View::kFilter;
      break;
    case '<':
      choose_sort(-1);
      break;
    case '>':
      choose_sort(1);
      break;
    case 'r':
      request_.settings.reversed = !request_.settings.reversed;
      refresh();
      break;
    case 'c':
      view_ = View::kColumns;
      selected_ = first_ = 0;
      break;
  }
  return true;
}

bool TopModel::handle_filter(const TopInput& input) {
  std::string& filter = request_.filter;
  switch (input.kind) {
    case Kind::kText:
      if (filter.size() < kMaxFilter) filter += printable(input.text);
      break;
    case Kind::kBackspace:
      // A character of UTF-8: its last byte, and those of the form 10xxxxxx before.
      while (!filter.empty() && (static_cast<unsigned char>(filter.back()) & 0xc0) == 0x80)
        filter.pop_back();
      if (!filter.empty()) filter.pop_back();
      break;
    case Kind::kEscape:
      filter.clear();
      view_ = View::kPods;
      break;
    case Kind::kEnter:
      view_ = View::kPods;
      break;
    default:
      handle_list(input);
      return true;
  }
  refresh();
  return true;
}

void TopModel::handle_list(const TopInput& input) {
  const auto page = static_cast<std::ptrdiff_t>(room_);
  const auto all = static_cast<std::ptrdiff_t>(line_count());
  switch (input.kind) {
    case Kind::kUp:
      return move(-1);
    case Kind::kDown:
      return move(1);
    case Kind::kPageUp:
      return move(-page);
    case Kind::kPageDown:
      return move(page);
    case Kind::kHome:
      return move(-all);
    case Kind::kEnd:
      return move(all);
    case Kind::kWheelUp:
      return move(-static_cast<std::ptrdiff_t>(kWheelLines));
    case Kind::kWheelDown:
      return move(kWheelLines);
    case Kind::kLeft:
      if (hidden_columns_ > 0) --hidden_columns_;
      return;
    case Kind::kRight:
      if (hidden_columns_ + 2 < request_.settings.columns.size()) ++hidden_columns_;
      return;
    case Kind::kEnter:
      return show_selected();
    case Kind::kEscape:
      return leave();
    case Kind::kClick:
      return click(input);
    case Kind::kText:
    case Kind::kBackspace:
      return;
  }
}

void TopModel::click(const TopInput& input) {
  if (view_ == View::kPods && input.line + 1 == list_line_) {
    for (std::size_t i = 0; i < title_ends_.size(); ++i)
      if (input.column < title_ends_[i]) {
        // The pod's column is never hidden.
        request_.settings.sort = request_.settings.columns[i == 0 ? 0 : i + hidden_columns_];
        return refresh();
      }
    return;
  }
  if (input.line < list_line_ || input.line >= list_line_ + room_) return;
  const std::size_t line = first_ + input.line - list_line_;
  if (line < line_count())
    move(static_cast<std::ptrdiff_t>(line) - static_cast<std::ptrdiff_t>(selected_));
}

std::size_t TopModel::line_count() const {
  switch (view_) {
    case View::kPods:
    case View::kFilter:
      return pods_.size();
    case View::kColumns:
      return pod_columns().size();
    case View::kHelp:
      return help_rows().size();
    case View::kPod:
      break;
  }
  for (const PodStatus& pod : now_.pods)
    if (pod.uid == open_uid_) return pod_detail({.pod = &pod}, now_).size();
  return 1;
}

void TopModel::move(std::ptrdiff_t lines) {
  const auto last = static_cast<std::ptrdiff_t>(std::max<std::size_t>(line_count(), 1)) - 1;
  selected_ = static_cast<std::size_t>(
      std::clamp(static_cast<std::ptrdiff_t>(selected_) + lines, std::ptrdiff_t{0}, last));
  if ((view_ == View::kPods || view_ == View::kFilter) && selected_ < pods_.size())
    selected_uid_ = pods_[selected_].pod->uid;
}

void TopModel::leave() {
  view_ = View::kPods;
  first_ = 0;
  refresh();
}

void TopModel::show_selected() {
  if (view_ == View::kColumns) return leave();
  if (view_ != View::kPods || selected_ >= pods_.size()) return;
  open_pod(pods_[selected_].pod->uid);
}

void TopModel::choose_sort(std::ptrdiff_t step) {
  const std::vector<std::string>& names = request_.settings.columns;
  const auto found = std::find(names.begin(), names.end(), request_.settings.sort);
  const auto at = found == names.end() ? 0 : found - names.begin();
  const auto count = static_cast<std::ptrdiff_t>(names.size());
  request_.settings.sort = names[static_cast<std::size_t>((at + step + count) % count)];
  refresh();
}

// The columns stay in the order of the table of columns.
void TopModel::toggle_column() {
  if (selected_ == 0) return;  // the pod is always shown
  std::vector<std::string> names;
  for (std::size_t i = 0; i < pod_columns().size(); ++i) {
    const std::string name(pod_columns()[i].name);
    const auto& shown = request_.settings.columns;
    const bool was = std::find(shown.begin(), shown.end(), name) != shown.end();
    if (was != (i == selected_)) names.push_back(name);
  }
  request_.settings.columns = std::move(names);
  hidden_columns_ = 0;
}

std::vector<Row> TopModel::column_rows() const {
  const auto& shown = request_.settings.columns;
  std::vector<Row> rows;
  for (const PodColumn& column : pod_columns()) {
    const bool is_shown = std::find(shown.begin(), shown.end(), column.name) != shown.end();
    rows.push_back({{is_shown ? "[x]" : "[ ]"},
                    {std::string(column.name), Colour::kBold},
                    {std::string(column.description)}});
  }
  return rows;
}

std::vector<TopLine> TopModel::render(const Screen& screen) {
  std::vector<TopLine> lines;
  list_line_ = 0;
  title_ends_.clear();
  Screen body = screen;
  body.rows = std::max<std::size_t>(screen.rows, 1) - 1;  // the last line is the footer
  switch (view_) {
    case View::kPods:
    case View::kFilter:
      add_summary(lines, body);
      add_pods(lines, body);
      break;
    case View::kColumns:
      add_rows(lines, aligned(column_rows(), 3, body.columns), body);
      break;
    case View::kHelp:
      add_rows(lines, aligned(help_rows(), 2, body.columns), body);
      break;
    case View::kPod: {
      const auto samples = pod_samples(before_ ? &*before_ : nullptr, now_);
      const PodSample* const found = find_pod(samples, open_uid_);
      const std::vector<Row> rows = found ? pod_detail(*found, now_)
                                          : std::vector<Row>{{{"This pod is gone.", Colour::kRed}}};
      add_rows(lines, aligned(rows, 2, body.columns), body);
    }
  }
  lines.resize(body.rows);
  if (screen.rows > 0)
    lines.push_back(remark_.empty() ? text_line(footer(), Colour::kDim, screen.columns)
                                    : text_line(printable(remark_), Colour::kRed, screen.columns));
  return lines;
}

// The node above the pods; on a low screen only as many lines as leave room for some pods.
void TopModel::add_summary(std::vector<TopLine>& lines, const Screen& screen) const {
  constexpr std::size_t kPodLines = 8;  // a title and some pods
  const std::size_t room = screen.rows > kPodLines ? screen.rows - kPodLines : 1;
  std::istringstream text(heading(now_, {}) + '\n' + threshold_table(now_, {}) + '\n' +
                          memory_location_line(now_) + condition_line(now_, {}));
  for (std::string line; std::getline(text, line) && lines.size() + 1 < room;)
    lines.push_back(text_line(line, lines.empty() ? Colour::kBold : Colour::kNone, screen.columns));
  if (lines.size() > 1) lines.emplace_back();
}

void TopModel::add_pods(std::vector<TopLine>& lines, const Screen& screen) {
  if (lines.size() >= screen.rows) return;
  std::vector<Row> rows = pod_rows(pods_, request_.settings);
  hide_columns(rows, hidden_columns_);
  for (Cell& title : rows.front())
    if (const PodColumn* sorted = pod_column(request_.settings.sort);
        sorted && title.text == sorted->title)
      title.text += request_.settings.reversed ? " ^" : " v";
  const std::size_t left = left_columns(request_.settings);
  std::size_t end = 0;
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    std::size_t width = 0;
    for (const Row& row : rows)
      width = std::max(width, display_width(row[i].text));
    title_ends_.push_back(end += width + 2);
  }
  std::vector<Row> table =
      aligned(rows, left > hidden_columns_ ? left - hidden_columns_ : 1, screen.columns);
  lines.push_back({.pieces = std::move(table.front())});
  table.erase(table.begin());
  add_rows(lines, table, screen);
}

// As many rows as there is room for, with the selected one among them.
void TopModel::add_rows(std::vector<TopLine>& lines, const std::vector<Row>& rows,
                        const Screen& screen) {
  list_line_ = lines.size();
  room_ = std::max<std::size_t>(screen.rows > lines.size() ? screen.rows - lines.size() : 0, 1);
  scroll_to_selected(rows.size());
  for (std::size_t i = first_; i < rows.size() && i < first_ + room_; ++i)
    lines.push_back({.pieces = rows[i], .selected = i == selected_});
}

void TopModel::scroll_to_selected(std::size_t count) {
  if (selected_ < first_) first_ = selected_;
  if (selected_ >= first_ + room_) first_ = selected_ + 1 - room_;
  first_ = std::min(first_, count > room_ ? count - room_ : 0);
}

std::string TopModel::footer() const {
  const std::string filter = printable(request_.filter);
  switch (view_) {
    case View::kFilter:
      return fmt::format("filter: {}_  {} of {} pods; Enter keeps it, Escape clears it", filter,
                         pods_.size(), now_.pods.size());
    case View::kPods:
      break;
    case View::kColumns:
      return "Space shows or hides a column, Escape goes back";
    case View::kHelp:
    case View::kPod:
      return "Escape goes back, q quits";
  }
  const std::size_t last = std::min(pods_.size(), first_ + room_);
  return fmt::format(
      "pods {}-{} of {}{}  sorted by {}{}  Enter: details  /: filter  <>: sort  c: columns  h: "
      "help  q: quit",
      pods_.empty() ? 0 : first_ + 1, last, pods_.size(),
      filter.empty() ? "" : fmt::format(" with \"{}\"", filter), request_.settings.sort,
      request_.settings.reversed ? " reversed" : "");
}

}  // namespace headroom::ctl
