// SPDX-License-Identifier: Apache-2.0
#include "config/yaml.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

namespace headroom::config::yaml {
namespace {

// An alias is a copy of what it names, so ten lines of aliases to aliases could ask for a billion
// nodes. No honest file comes near this; the rest is bounded by the file's size.
constexpr std::size_t kMostCopied = 100'000;

std::size_t count(const Node& node) {
  std::size_t total = 1;
  for (const Node& item : node.items)
    total += count(item);
  for (const Entry& entry : node.entries)
    total += count(entry.value);
  return total;
}

// Builds Nodes from yaml-cpp's events. The stack holds the unfinished collections.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& file, Complaints& complaints) : file_(file), complaints_(complaints) {}

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
    finish(leaf(Node::Kind::kNull, mark), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = leaf(Node::Kind::kScalar, mark);
    node.plain = tag == "?";  // yaml-cpp's word for "no quotes, no tag"
    node.text = value;
    finish(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    // An anchor inside its own value names a tree without end.
    if (found == anchors_.end()) throw YAML::ParserException(mark, "an alias to the node it is in");
    copied_ += count(found->second);
    if (copied_ > kMostCopied) throw YAML::ParserException(mark, "too many aliases");
    finish(found->second, YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open_.push_back({leaf(Node::Kind::kSequence, mark), anchor, {}, false});
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open_.push_back({leaf(Node::Kind::kMap, mark), anchor, {}, false});
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    Node key;
    bool has_key;  // of a map: the next node is a value
  };

  static Node leaf(Node::Kind kind, const YAML::Mark& mark) {
    Node node;
    node.kind = kind;
    node.line = mark.line + 1;
    return node;
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    if (done.node.is_map()) merge(done.node);
    finish(std::move(done.node), done.anchor);
  }

  // "<<: *defaults" brings in the entries of another map, or of several, that this one lacks; the
  // API server's reader knows it, so people write it.
  void merge(Node& map) {
    const auto sign = std::find_if(map.entries.begin(), map.entries.end(),
                                   [](const Entry& entry) { return entry.key == "<<"; });
    if (sign == map.entries.end()) return;
    Entry from = std::move(*sign);
    map.entries.erase(sign);
    if (from.value.is_map()) return bring_in(map, std::move(from.value));
    for (Node& item : from.value.items) {
      if (item.is_map())
        bring_in(map, std::move(item));
      else
        complaints_.push_back({file_, item.line, "<<: expected a map, found " + describe(item)});
    }
    if (!from.value.is_sequence())
      complaints_.push_back(
          {file_, from.line, "<<: expected a map, found " + describe(from.value)});
  }

  static void bring_in(Node& map, Node from) {
    for (Entry& entry : from.entries) {
      const auto same = [&](const Entry& own) { return own.key == entry.key; };
      if (std::none_of(map.entries.begin(), map.entries.end(), same))
        map.entries.push_back(std::move(entry));
    }
  }

  void finish(Node node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
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
      add_entry(parent.node, parent.key, std::move(node));
    }
  }

  void add_entry(Node& map, const Node& key, Node value) {
    if (!key.is_scalar()) {
      complaints_.push_back({file_, key.line, "expected a key, found " + describe(key)});
      return;
    }
    const auto same = [&](const Entry& entry) { return entry.key == key.text; };
    const auto first = std::find_if(map.entries.begin(), map.entries.end(), same);
    if (first == map.entries.end()) {
      map.entries.push_back({key.text, key.line, std::move(value)});
      return;
    }
    complaints_.push_back(
        {file_, key.line,
         "duplicate key " + key.text + ": it is already on line " + std::to_string(first->line)});
  }

  const std::string& file_;
  Complaints& complaints_;
  std::vector<Node> documents_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t copied_ = 0;
  int last_start_ = -1;
};

}  // namespace

const Entry* find(const Node& map, std::string_view key) {
  for (const Entry& entry : map.entries)
    if (entry.key == key) return entry.value.is_null() ? nullptr : &entry;
  return nullptr;
}

std::vector<Node> parse(const std::string& text, const std::string& file, Complaints& complaints) {
  Builder builder(file, complaints);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder))
      continue;
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 0 : error.mark.line + 1;
    complaints.push_back({file, line, "not YAML: " + error.msg});
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
