// SPDX-License-Identifier: Apache-2.0
#define NCURSES_NOMACROS 1  // functions instead of macros named clear, move, timeout …
#define NCURSES_WIDECHAR 1
#include "ctl/top/curses_terminal.h"

#include <curses.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <clocale>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <string>
#include <string_view>
#include <utility>

namespace headroom::ctl {
namespace {

// ncurses has handlers of its own for SIGWINCH. These end the view, so that the terminal is
// restored.
volatile std::sig_atomic_t end_requested = 0;
void request_end(int) {
  end_requested = 1;
}

constexpr short kGreenPair = 1, kYellowPair = 2, kRedPair = 3;

void define_colours() {
  ::use_default_colors();
  // Of 256 colours those that can be read on a dark and on a light background.
  const bool many = ::COLORS >= 256;
  ::init_pair(kGreenPair, many ? 71 : COLOR_GREEN, -1);
  ::init_pair(kYellowPair, many ? 172 : COLOR_YELLOW, -1);
  ::init_pair(kRedPair, many ? 167 : COLOR_RED, -1);
}

attr_t attribute_of(Colour colour, bool colours) {
  const auto pair = [&](short number, attr_t otherwise) {
    return colours ? static_cast<attr_t>(COLOR_PAIR(number)) : otherwise;
  };
  switch (colour) {
    case Colour::kNone:
      return A_NORMAL;
    case Colour::kBold:
      return A_BOLD;
    case Colour::kDim:
      return A_DIM;
    case Colour::kGreen:
      return pair(kGreenPair, A_NORMAL);
    case Colour::kYellow:
      return pair(kYellowPair, A_UNDERLINE);
    case Colour::kRed:
      return pair(kRedPair, A_BOLD);
  }
  return A_NORMAL;
}

bool is_utf8() {
  return std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0;
}

// In a locale without UTF-8 each byte of another character is a question mark.
std::string shown(std::string_view text) {
  std::string shown_text(text);
  if (!is_utf8())
    for (char& c : shown_text)
      if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  return shown_text;
}

std::string utf8_of(wchar_t character) {
  std::array<char, MB_LEN_MAX> bytes{};
  std::mbstate_t state{};
  const std::size_t length = std::wcrtomb(bytes.data(), character, &state);
  return length == static_cast<std::size_t>(-1) ? "" : std::string(bytes.data(), length);
}

std::optional<TopInput> mouse_input() {
  MEVENT event{};
  if (::getmouse(&event) != OK) return std::nullopt;
  TopInput input{.kind = TopInput::Kind::kClick};
  if (event.bstate & BUTTON4_PRESSED) input.kind = TopInput::Kind::kWheelUp;
  if (event.bstate & BUTTON5_PRESSED) input.kind = TopInput::Kind::kWheelDown;
  input.line = static_cast<std::size_t>(event.y);
  input.column = static_cast<std::size_t>(event.x);
  return input;
}

std::optional<TopInput> key_input(wint_t key) {
  using Kind = TopInput::Kind;
  switch (key) {
    case KEY_UP:
      return TopInput{.kind = Kind::kUp};
    case KEY_DOWN:
      return TopInput{.kind = Kind::kDown};
    case KEY_LEFT:
      return TopInput{.kind = Kind::kLeft};
    case KEY_RIGHT:
      return TopInput{.kind = Kind::kRight};
    case KEY_PPAGE:
      return TopInput{.kind = Kind::kPageUp};
    case KEY_NPAGE:
      return TopInput{.kind = Kind::kPageDown};
    case KEY_HOME:
      return TopInput{.kind = Kind::kHome};
    case KEY_END:
      return TopInput{.kind = Kind::kEnd};
    case KEY_ENTER:
      return TopInput{.kind = Kind::kEnter};
    case KEY_BACKSPACE:
    case KEY_DC:
      return TopInput{.kind = Kind::kBackspace};
    case KEY_MOUSE:
      return mouse_input();
  }
  return std::nullopt;  // KEY_RESIZE among them
}

std::optional<TopInput> character_input(wint_t character) {
  using Kind = TopInput::Kind;
  switch (character) {
    case L'\n':
    case L'\r':
      return TopInput{.kind = Kind::kEnter};
    case 0x1b:
      return TopInput{.kind = Kind::kEscape};
    case 0x7f:
    case 0x08:
      return TopInput{.kind = Kind::kBackspace};
  }
  std::string text = utf8_of(static_cast<wchar_t>(character));
  if (text.empty()) return std::nullopt;
  return TopInput{.kind = Kind::kText, .text = std::move(text)};
}

}  // namespace

Result<CursesTerminal> CursesTerminal::open(const Options& options) {
  std::setlocale(LC_CTYPE, "");
  // initscr() would end the program if it failed.
  if (!::newterm(nullptr, stdout, stdin)) {
    const char* const term = std::getenv("TERM");
    return failure(std::string("use the terminal: terminfo does not know TERM=") +
                   (term ? term : ""));
  }
  return CursesTerminal(options);
}

CursesTerminal::CursesTerminal(const Options& options) {
  constexpr int kEscapeMilliseconds = 50;  // after Escape, until it is a key of its own
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(::stdscr, true);
  ::set_escdelay(kEscapeMilliseconds);
  ::curs_set(0);
  colour_ = options.colour && ::has_colors() && ::start_color() == OK;
  if (colour_) define_colours();
  if (options.mouse)
    ::mousemask(BUTTON1_CLICKED | BUTTON1_PRESSED | BUTTON4_PRESSED | BUTTON5_PRESSED, nullptr);
  ::mouseinterval(0);
  struct sigaction action {};
  action.sa_handler = request_end;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    ::sigaction(signal, &action, nullptr);
}

CursesTerminal::CursesTerminal(CursesTerminal&& other) noexcept
    : colour_(other.colour_), open_(std::exchange(other.open_, false)), ended_(other.ended_) {}

CursesTerminal::~CursesTerminal() {
  if (open_) ::endwin();
}

Screen CursesTerminal::screen() const {
  return {.columns = static_cast<std::size_t>(::getmaxx(::stdscr)),
          .rows = static_cast<std::size_t>(::getmaxy(::stdscr)),
          .colour = colour_};
}

void CursesTerminal::show(const std::vector<TopLine>& lines) const {
  ::werase(::stdscr);
  int row = 0;
  for (const TopLine& line : lines) {
    ::wmove(::stdscr, row++, 0);
    for (const Cell& piece : line.pieces) {
      const attr_t selected = line.selected ? A_REVERSE : A_NORMAL;
      ::wattrset(::stdscr, static_cast<int>(attribute_of(piece.colour, colour_) | selected));
      ::waddstr(::stdscr, shown(piece.text).c_str());
    }
    ::wattrset(::stdscr, A_NORMAL);
    if (line.selected) ::wchgat(::stdscr, -1, A_REVERSE, 0, nullptr);  // the rest of the line
  }
  ::wrefresh(::stdscr);
}

std::optional<TopInput> CursesTerminal::wait(std::chrono::milliseconds time) {
  // ncurses may have read more keys than it returned.
  ::wtimeout(::stdscr, 0);
  if (auto input = read_input()) return input;
  pollfd terminal{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const int ready = ::poll(&terminal, 1, static_cast<int>(time.count()));
  ended_ = ended_ || end_requested != 0 || (terminal.revents & (POLLHUP | POLLERR)) != 0;
  if (ready < 0 && errno == EINTR) return read_input();  // the size has changed
  return ready > 0 && !ended_ ? read_input() : std::nullopt;
}

std::optional<TopInput> CursesTerminal::read_input() {
  wint_t read = 0;
  const int kind = ::wget_wch(::stdscr, &read);
  if (kind == KEY_CODE_YES) return key_input(read);
  return kind == OK ? character_input(read) : std::nullopt;
}

}  // namespace headroom::ctl
