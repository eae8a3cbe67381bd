// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml.h"

#include "base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace headroom::config {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (!diagnostic.file.empty()) text += diagnostic.file + ":";
  if (diagnostic.line > 0) text += std::to_string(diagnostic.line) + ":";
  if (!text.empty()) text += " ";
  return text + diagnostic.what;
}

}  // namespace headroom::config

namespace headroom::config {
namespace {

tl::unexpected<Error> errno_error() {
  return failure(std::strerror(errno), errno);
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  // O_NONBLOCK: opening a FIFO would wait for its writer.
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return errno_error();
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error();
  if (!S_ISREG(status.st_mode)) return failure("not a regular file");

  std::string text;
  std::array<char, 1 << 14> buffer;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error();
    if (got == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    if (text.size() > max_bytes)
      return failure("larger than " + std::to_string(max_bytes >> 20) + " MiB");
  }
}

}  // namespace headroom::config

namespace headroom::config::yaml {
namespace {

// What a copy of a tree adds to a document.
struct Size {
  std::size_t nodes = 0;   // keys and values
  std::size_t text = 0;    // bytes
  std::size_t levels = 0;  // of collections

  void add(const Size& below) {
    nodes += below.nodes;
    text += below.text;
    levels = std::max(levels, below.levels);
  }
};

// Recursive: the limit on levels bounds the stack it takes.
Size size_of(const Node& node) {
  Size size{1, node.text.size(), 0};
  for (const Node& item : node.items)
    size.add(size_of(item));
  for (const Entry& entry : node.entries) {
    size.add({1, entry.key.size(), 0});
    size.add(size_of(entry.value));
  }
  if (node.is_map() || node.is_sequence()) ++size.levels;
  return size;
}

// The text is YAML, and needs more memory than the reader may take.
class LimitExceeded : public YAML::ParserException {
 public:
  using ParserException::ParserException;
};

// Builds Nodes from yaml-cpp's events. The stack holds the unfinished collections.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& file, Diagnostics& diagnostics, const ParseLimits& limits)
      : file_(file), complaints_(diagnostics), limits_(limits) {}

  std::vector<Node> take() { return std::move(documents_); }

  // Before a stray comma, as after the brace that ends a JSON file, yaml-cpp (0.7) sees one empty
  // document after the other and moves no further, without end.
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (mark.pos == last_start_) throw YAML::ParserException(mark, "nothing can begin here");
    last_start_ = mark.pos;
    anchors_.clear();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    finish(mark, leaf(Node::Kind::kNull, mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = leaf(Node::Kind::kScalar, mark);
    node.plain = tag == "?";  // yaml-cpp's word for "no quotes, no tag"
    node.text = value;
    finish(mark, std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    // An anchor inside its own value names a tree without end.
    if (found == anchors_.end()) throw YAML::ParserException(mark, "an alias to the node it is in");
    charge_copy(mark, found->second);
    finish(mark, found->second, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kSequence, mark, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMap, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::Mark mark;
    YAML::anchor_t anchor;
    Node key{};
    bool has_key = false;  // of a map: the next node is a value
    // Of a map: the line of each key so far. A search through the entries would take quadratic
    // time; a hash table would too, of keys that were chosen to collide.
    std::map<std::string, int> lines{};
  };

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    expect_depth(mark, open_.size() + 1);
    open_.push_back({.node = leaf(kind, mark), .mark = mark, .anchor = anchor});
  }

  void expect_depth(const YAML::Mark& mark, std::size_t levels) const {
    if (levels > limits_.levels)
      throw LimitExceeded(mark,
                          "nested more than " + std::to_string(limits_.levels) + " levels deep");
  }

  void charge(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > limits_.nodes)
      throw LimitExceeded(mark, "more than " + std::to_string(limits_.nodes) +
                                    " keys and values, aliases expanded");
  }

  // Checked before the copy is made.
  void charge_copy(const YAML::Mark& mark, const Node& node) {
    const Size size = size_of(node);
    expect_depth(mark, open_.size() + size.levels);
    charge(mark, size.nodes);
    copied_text_ += size.text;
    if (copied_text_ > limits_.copied_text)
      throw LimitExceeded(mark, "aliases expand to more than " +
                                    std::to_string(limits_.copied_text) + " bytes of text");
  }

  Node leaf(Node::Kind kind, const YAML::Mark& mark) {
    charge(mark, 1);
    Node node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.node.is_map()) merge(done.node);
    finish(done.mark, std::move(done.node), done.anchor);
  }

  // "<<: *defaults" brings in the entries of another map, or of several, that this one lacks; the
  // API server's reader knows it, so people write it.
  void merge(Node& map) {
    const auto sign = std::find_if(map.entries.begin(), map.entries.end(),
                                   [](const Entry& entry) { return entry.key == "<<"; });
    if (sign == map.entries.end()) return;
    Entry from = std::move(*sign);
    map.entries.erase(sign);
    std::set<std::string> keys;
    for (const Entry& entry : map.entries)
      keys.insert(entry.key);
    if (from.value.is_map()) return merge_key(map, keys, std::move(from.value));
    for (Node& item : from.value.items) {
      if (item.is_map())
        merge_key(map, keys, std::move(item));
      else
        complaints_.push_back({file_, item.line, "<<: expected a map, found " + describe(item)});
    }
    if (!from.value.is_sequence())
      complaints_.push_back(
          {file_, from.line, "<<: expected a map, found " + describe(from.value)});
  }

  static void merge_key(Node& map, std::set<std::string>& keys, Node from) {
    for (Entry& entry : from.entries)
      if (keys.insert(entry.key).second) map.entries.push_back(std::move(entry));
  }

  // An anchor keeps a copy, as each alias to it makes one: both count.
  void finish(const YAML::Mark& mark, Node node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      charge_copy(mark, node);
      anchors_[anchor] = node;
    }
    if (open_.empty())
      documents_.push_back(std::move(node));
    else
      add(open_.back(), std::move(node));
  }

  void add(Open& parent, Node node) {
    if (parent.node.is_sequence()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      parent.key = std::move(node);
      parent.has_key = true;
    } else {
      parent.has_key = false;
      add_entry(parent, std::move(node));
    }
  }

  void add_entry(Open& parent, Node value) {
    const Node& key = parent.key;
    if (!key.is_scalar()) {
      complaints_.push_back({file_, key.line, "expected a key, found " + describe(key)});
      return;
    }
    const auto [first, fresh] = parent.lines.emplace(key.text, key.line);
    if (fresh) {
      parent.node.entries.push_back({key.text, key.line, std::move(value)});
      return;
    }
    complaints_.push_back(
        {file_, key.line,
         "duplicate key " + key.text + ": it is already on line " + std::to_string(first->second)});
  }

  const std::string& file_;
  Diagnostics& complaints_;
  std::vector<Node> documents_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  const ParseLimits limits_;
  std::size_t nodes_ = 0;        // of all documents
  std::size_t copied_text_ = 0;  // bytes
  int last_start_ = -1;
};

}  // namespace

const Entry* find(const Node& map, std::string_view key) {
  for (const Entry& entry : map.entries)
    if (entry.key == key) return entry.value.is_null() ? nullptr : &entry;
  return nullptr;
}

std::vector<Node> parse(const std::string& text, const std::string& file, Diagnostics& diagnostics,
                        const ParseLimits& limits) {
  Builder builder(file, diagnostics, limits);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder))
      continue;
  } catch (const LimitExceeded& error) {
    diagnostics.push_back({file, error.mark.line + 1, error.msg});
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : error.mark.line + 1;
    diagnostics.push_back({file, line, "not YAML: " + error.msg});
  }
  return builder.take();
}

bool is_number(const Node& node) {
  if (!node.is_scalar() || !node.plain || node.text.empty()) return false;
  // strtod also knows words (inf, nan) that YAML spells .inf and .nan.
  if (node.text.find_first_not_of("+-.0123456789eExXabcdefABCDEF_") != std::string::npos)
    return false;
  char* end = nullptr;
  std::strtod(node.text.c_str(), &end);
  return end == node.text.c_str() + node.text.size();
}

// YAML 1.1 has y and n too, but its readers do not agree on them, and a pod may be named so.
bool is_boolean(const Node& node) {
  static constexpr auto kWords = std::to_array<std::string_view>(
      {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON",  //
       "false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"});
  return node.is_scalar() && node.plain &&
         std::find(kWords.begin(), kWords.end(), node.text) != kWords.end();
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
    case Node::Kind::kScalar:
      break;
  }
  if (is_number(node)) return "the number " + node.text;
  if (is_boolean(node)) return "the boolean " + node.text;
  return "the string \"" + node.text + "\"";
}

}  // namespace headroom::config::yaml
