// SPDX-License-Identifier: Apache-2.0
#include "act/memory/memory_checkpoint.h"

#include "act/cpus/cpu_checkpoint.h"
#include "base/json_text.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace headroom::act {
namespace {

using Json = nlohmann::ordered_json;
using Kind = CheckpointError::Kind;
using Version = MemoryCheckpointVersion;

// A field of MemoryTable: its key in the file, its name in Go.
struct TableField {
  const char* key;
  const char* go_name;
  Bytes MemoryTable::*value;
};
constexpr std::array<TableField, 5> kTableFields{{
    {"total", "TotalMemSize", &MemoryTable::total},
    {"systemReserved", "SystemReserved", &MemoryTable::system_reserved},
    {"allocatable", "Allocatable", &MemoryTable::allocatable},
    {"reserved", "Reserved", &MemoryTable::reserved},
    {"free", "Free", &MemoryTable::free},
}};

// --- the checksum ----------------------------------------------------------------------------

std::string rendered(NodeSet nodes) {
  std::string text = "([]int)[";
  for (const int id : nodes.ids()) {
    if (text.back() != '[') text += ' ';
    text += std::to_string(id);
  }
  return text + ']';
}

std::string rendered(const MemoryTable& table) {
  std::string text = "<*>{";
  for (const TableField& field : kTableFields) {
    if (text.back() != '{') text += ' ';
    text += std::string(field.go_name) + ":(uint64)" + std::to_string((table.*field.value).count);
  }
  return text + '}';
}

std::string rendered(const NumaNodeMemory& node) {
  return "<*>{NumberOfAssignments:(int)" + std::to_string(node.assignments) +
         " MemoryMap:(map[v1.ResourceName]*state.MemoryTable)" +
         rendered_map(node.tables, [](const MemoryTable& table) { return rendered(table); }) +
         " Cells:" + rendered(node.group) + "}";
}

std::string rendered(const MemoryBlocks& blocks) {
  std::string text = "[";
  for (const MemoryBlock& block : blocks) {
    if (text.back() != '[') text += ' ';
    text += "{NUMAAffinity:" + rendered(block.nodes) + " Type:(v1.ResourceName)" + block.type +
            " Size:(uint64)" + std::to_string(block.size.count) + "}";
  }
  return text + ']';
}

// --- reading ---------------------------------------------------------------------------------

// Reads fields, and keeps the first error of their types. A missing field is Go's zero value.
class Reader {
 public:
  std::string string(const Json& object, const char* key) {
    const Json* const field = find(object, key);
    if (!field) return "";
    if (field->is_string()) return field->get<std::string>();
    complain(key);
    return "";
  }

  std::int64_t number(const Json& object, const char* key) {
    const Json* const field = find(object, key);
    if (!field) return 0;
    // Numbers beyond int64 are differences that wrapped around.
    if (field->is_number_unsigned() && field->get<std::uint64_t>() <= kMaxNumber)
      return field->get<std::int64_t>();
    complain(key);
    return 0;
  }

  NodeSet nodes(const Json& object, const char* key) {
    NodeSet nodes;
    for (const Json& id : list(object, key)) {
      const bool valid = id.is_number_unsigned() &&
                         id.get<std::uint64_t>() < static_cast<std::uint64_t>(NodeSet::kMax);
      if (valid)
        nodes = nodes | NodeSet::of(id.get<std::int64_t>());
      else
        complain(key);
    }
    return nodes;
  }

  const Json& list(const Json& object, const char* key) {
    static const Json kNone = Json::array();
    const Json* const field = find(object, key);
    if (!field) return kNone;
    if (field->is_array()) return *field;
    complain(key);
    return kNone;
  }

  const Json& map(const Json& object, const char* key) {
    static const Json kNone = Json::object();
    const Json* const field = find(object, key);
    if (!field) return kNone;
    if (field->is_object()) return *field;
    complain(key);
    return kNone;
  }

  MemoryBlocks blocks(const Json& of, const char* key) {
    MemoryBlocks blocks;
    for (const Json& each : list(of, key))
      blocks.push_back(
          {nodes(each, "numaAffinity"), string(each, "type"), Bytes{number(each, "size")}});
    return blocks;
  }

  MachineMemory machine(const Json& object) {
    MachineMemory machine;
    for (const auto& [key, each] : map(object, "machineState").items()) {
      int id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc{} || end != key.data() + key.size() || id < 0 || id >= NodeSet::kMax) {
        complain("machineState");
        continue;
      }
      NumaNodeMemory& node = machine[id];
      node.assignments = static_cast<int>(number(each, "numberOfAssignments"));
      node.group = nodes(each, "cells");
      for (const auto& [resource, table] : map(each, "memoryMap").items())
        for (const TableField& field : kTableFields)
          node.tables[resource].*field.value = Bytes{number(table, field.key)};
    }
    return machine;
  }

  const std::optional<CheckpointError>& error() const { return error_; }

 private:
  static constexpr std::uint64_t kMaxNumber = std::uint64_t{1} << 62;

  const Json* find(const Json& object, const char* key) {
    if (!object.is_object()) {
      complain(key);
      return nullptr;
    }
    const auto field = object.find(key);
    return field == object.end() || field->is_null() ? nullptr : &*field;
  }

  void complain(const std::string& key) {
    if (!error_) error_ = CheckpointError{Kind::kNotACheckpoint, key + ": of no known shape"};
  }

  std::optional<CheckpointError> error_;
};

// --- writing ---------------------------------------------------------------------------------

Json json_of(const MemoryBlocks& blocks) {
  Json list = Json::array();
  for (const MemoryBlock& block : blocks)
    list.push_back(
        {{"numaAffinity", block.nodes.ids()}, {"type", block.type}, {"size", block.size.count}});
  return list;
}

Json json_of(const NumaNodeMemory& node) {
  Json tables = Json::object();
  for (const auto& [resource, table] : node.tables)
    for (const TableField& field : kTableFields)
      tables[resource][field.key] = (table.*field.value).count;
  return {{"numberOfAssignments", node.assignments},
          {"memoryMap", std::move(tables)},
          {"cells", node.group.ids()}};
}

// The fields in Go's order; maps that are empty are omitted, and node ids are sorted as text.
Json fields_of(const MemoryCheckpoint& checkpoint, Version version) {
  Json json{{"policyName", checkpoint.policy}, {"machineState", Json::object()}};
  std::map<std::string, const NumaNodeMemory*> by_text;
  for (const auto& [id, node] : checkpoint.state.machine)
    by_text.emplace(std::to_string(id), &node);
  for (const auto& [id, node] : by_text)
    json["machineState"][id] = json_of(*node);
  for (const auto& [pod, containers] : checkpoint.state.entries)
    for (const auto& [container, blocks] : containers)
      json["entries"][pod][container] = json_of(blocks);
  if (version == Version::kV2)
    for (const auto& [pod, blocks] : checkpoint.state.pod_entries)
      json["podEntries"][pod] = {{"memoryBlocks", json_of(blocks)}};
  return json;
}

}  // namespace

std::string memory_hash_input(const MemoryCheckpoint& checkpoint, Version version) {
  const auto of = [](const auto& value) { return rendered(value); };
  std::string text =
      "(*state.MemoryManagerCheckpoint){PolicyName:(string)" + checkpoint.policy +
      " MachineState:(state.NUMANodeMap)" + rendered_map(checkpoint.state.machine, of) +
      " Entries:(state.ContainerMemoryAssignments)" +
      rendered_map(checkpoint.state.entries,
                   [&](const ContainerMemory& containers) { return rendered_map(containers, of); });
  if (version == Version::kV2)
    text += " PodEntries:(state.PodMemoryAssignments)" +
            rendered_map(checkpoint.state.pod_entries, [](const MemoryBlocks& blocks) {
              return "{MemoryBlocks:([]state.Block)" + rendered(blocks) + "}";
            });
  return text + " Checksum:(checksum.Checksum)0}";
}

tl::expected<MemoryCheckpoint, CheckpointError> decode_memory_checkpoint(std::string_view text) {
  const Json object = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_discarded())
    return tl::make_unexpected(CheckpointError{Kind::kNotACheckpoint, "not JSON"});
  Reader reader;
  MemoryCheckpoint checkpoint{.policy = reader.string(object, "policyName")};
  checkpoint.state.machine = reader.machine(object);
  const Json& entries = reader.map(object, "entries");
  for (const auto& [pod, containers] : entries.items()) {
    const Json& of_pod = reader.map(entries, pod.c_str());
    for (const auto& [container, blocks] : of_pod.items())
      checkpoint.state.entries[pod][container] = reader.blocks(of_pod, container.c_str());
  }
  for (const auto& [pod, entry] : reader.map(object, "podEntries").items())
    checkpoint.state.pod_entries[pod] = reader.blocks(entry, "memoryBlocks");
  const std::int64_t checksum = reader.number(object, "checksum");
  if (reader.error()) return tl::make_unexpected(*reader.error());

  for (const Version version : {Version::kV1, Version::kV2}) {
    if (version == Version::kV1 && !checkpoint.state.pod_entries.empty()) continue;
    checkpoint.version = version;
    if (checksum == 0 || checksum == fnv1a_32(memory_hash_input(checkpoint, version)))
      return checkpoint;
  }
  return tl::make_unexpected(CheckpointError{Kind::kCorrupt, "checkpoint is corrupted"});
}

std::string encode_memory_checkpoint(const MemoryCheckpoint& checkpoint, Version version) {
  Json json = fields_of(checkpoint, version);
  json["checksum"] = fnv1a_32(memory_hash_input(checkpoint, version));
  return to_json_text(json);
}

}  // namespace headroom::act
