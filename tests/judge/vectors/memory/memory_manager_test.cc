// SPDX-License-Identifier: Apache-2.0
// Pods that come and go under the memory manager's policy Static: what each gets, and what every
// node has left; with and without the kubelet's alpha gate PodLevelResourceManagers.
#include "act/memory/memory_checkpoint.h"
#include "judge/cpuset/hints/hint_merge.h"
#include "judge/cpuset/policy/static_policy.h"
#include "judge/memory/memory_policy.h"
#include "judge/resources/pod_resources.h"
#include "judge/vectors/hint_json.h"
#include "judge/vectors/lines.h"
#include "judge/vectors/pod_json.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace headroom::vectors {
namespace {

using nlohmann::json;

ResourceList amounts_in(const json& object) {
  ResourceList list;
  for (const auto& [resource, text] : object.items())
    list[resource] = *Quantity::parse(text.get<std::string>());
  return list;
}

ReservedMemory reserved_in(const json& object) {
  ReservedMemory reserved;
  if (object.at("reserved_memory").is_array())
    for (const json& each : object.at("reserved_memory"))
      reserved[each.at("numa").get<int>()] = amounts_in(each.at("limits"));
  return reserved;
}

MemorySizes sizes_in(const json& nodes) {
  MemorySizes sizes;
  for (const json& node : nodes) {
    NumaMemorySize& size = sizes[node.at("id").get<int>()];
    size.memory = Bytes{node.at("memory").get<std::int64_t>()};
    if (node.contains("hugepages"))
      for (const json& pool : node.at("hugepages")) {
        const Bytes page{pool.at("page_kib").get<std::int64_t>() * 1024};
        const auto name = Quantity::of(page.count, Quantity::Format::kBinarySI).canonical();
        size.huge_pages["hugepages-" + name] =
            Bytes{page.count * pool.at("pages").get<std::int64_t>()};
      }
  }
  return sizes;
}

json json_of(NodeSet nodes) {
  return nodes.ids();
}

json json_of(const MemoryTable& table) {
  return {{"total", table.total.count},
          {"systemReserved", table.system_reserved.count},
          {"allocatable", table.allocatable.count},
          {"reserved", table.reserved.count},
          {"free", table.free.count}};
}

// As state_changes has it: {node: {assignments, cells, free per resource}}.
json summary_of(const MachineMemory& machine) {
  json summary = json::object();
  for (const auto& [id, node] : machine) {
    json free = json::object();
    for (const auto& [resource, table] : node.tables) {
      free[resource] = table.free.count;
      EXPECT_EQ(table.allocatable, table.reserved + table.free);
    }
    summary[std::to_string(id)] = {
        {"assignments", node.assignments}, {"cells", json_of(node.group)}, {"free", free}};
  }
  return summary;
}

json json_of(const MemoryBlocks& blocks) {
  json all = json::array();
  for (const MemoryBlock& block : blocks)
    all.push_back(
        {{"numa", json_of(block.nodes)}, {"type", block.type}, {"size", block.size.count}});
  return all;
}

json blocks_of(const MemoryState& state, const std::string& pod) {
  json all = json::object();
  const auto containers = state.entries.find(pod);
  if (containers == state.entries.end()) return all;
  for (const auto& [container, blocks] : containers->second)
    all[container] = json_of(blocks);
  return all;
}

// The kubelet's order of blocks in a file is that of a Go map.
json with_sorted_blocks(json file) {
  const auto sort = [](json& blocks) {
    std::sort(blocks.begin(), blocks.end(),
              [](const json& a, const json& b) { return a.at("type") < b.at("type"); });
  };
  for (json& pod : file["entries"])
    for (json& blocks : pod)
      sort(blocks);
  for (json& pod : file["podEntries"])
    sort(pod.at("memoryBlocks"));
  file.erase("checksum");  // of the text with the other order
  return file;
}

class MemoryManagerVectors : public VectorTest {
 protected:
  void SetUp() override {
    VectorTest::SetUp();
    sizes_ = sizes_in(line().at("numa_nodes"));
    if (line().contains("pods"))
      for (const json& each : line().at("pods"))
        pods_.emplace(each.at("name").get<std::string>(), pod_of(each, /*pod_level_enabled=*/true));
    for (const json& node : line().at("numa_nodes")) {
      const auto id = node.at("id").get<std::size_t>();
      numa_.nodes = numa_.nodes | NodeSet::of(static_cast<int>(id));
      numa_.distances.resize(std::max(numa_.distances.size(), id + 1));
      numa_.distances[id] = node.at("distances").get<std::vector<int>>();
    }
    if (line().at("mode") != "topology") return;
    rules_ = {
        .policy = *topology_policy_named(text("topology_policy")),
        .scope = text("topology_scope") == "pod" ? TopologyScope::kPod : TopologyScope::kContainer,
        .prefer_closest_numa = line().at("prefer_closest").get<bool>(),
        .pod_level_managers = has_gate()};
  }

  bool has_gate() const { return line().at("gates").at("PodLevelResourceManagers").get<bool>(); }

  void run(const MemoryPolicy& policy, const json& step) {
    const auto op = step.at("op").get<std::string>();
    if (op == "restart") return restart(step);
    const Pod& pod = pods_.at(step.at("pod").get<std::string>());
    const auto container = step.value("container", "");
    if (op == "allocate") allocate(policy, step, pod, container);
    if (op == "admit") admit(policy, step, pod);
    if (op == "start") state_ = release_finished_init_memory(state_, pod, container);
    if (op == "remove_container") state_ = release_memory(state_, pod.uid, container);
    if (op == "remove_pod") remove(pod);
  }

  void remove(const Pod& pod) {
    std::vector<const Pod*> others;
    for (const auto& [name, each] : pods_)
      if (each.uid != pod.uid) others.push_back(&each);
    state_ = remove_stale(state_, others);
  }

  static const Container& container_named(const Pod& pod, const std::string& name) {
    const auto init = std::ranges::find(pod.init_containers, name, &Container::name);
    if (init != pod.init_containers.end()) return *init;
    return *std::ranges::find(pod.containers, name, &Container::name);
  }

  // The hints of the container, or of the whole pod (null), against the next of hints_returned.
  ProviderHints hints(const MemoryPolicy& policy, const json& step, const Pod& pod,
                      const Container* container) {
    ProviderHints hints =
        container ? policy.hints(state_, pod, *container) : policy.hints(state_, pod);
    // Where the kubelet ended, it said nothing.
    if (step.contains("upstream_panics") && !step.contains("hints_returned")) return hints;
    const json& all = step.at("hints_returned");
    EXPECT_LT(hints_asked_, all.size());
    if (hints_asked_ >= all.size()) return hints;
    const json& expected = all[hints_asked_++];
    EXPECT_EQ(expected.value("container", ""), container ? container->name : "");
    std::vector<std::string> resources;
    for (const auto& [resource, list] : hints) {
      resources.push_back(resource);
      EXPECT_TRUE(list);
      if (expected.contains("hint_count"))
        EXPECT_EQ(list->size(), expected.at("hint_count"));
      else
        EXPECT_EQ(written(*list), written(hints_of(expected.at("hints"))));
    }
    // Null: the pod has no preference. Empty: no set of nodes fits. The topology manager takes both
    // alike.
    if (expected.at("resources").is_null())
      EXPECT_TRUE(resources.empty());
    else
      EXPECT_EQ(json(resources), expected.at("resources"));
    return hints;
  }

  void allocate(const MemoryPolicy& policy, const json& step, const Pod& pod,
                const std::string& name) {
    const Container& container = container_named(pod, name);
    hints(policy, step, pod, &container);
    auto next = policy.allocate(state_, pod, container, hint_of(step.at("affinity")));
    ASSERT_EQ(next.has_value(), !step.contains("error"));
    if (next)
      state_ = *std::move(next);
    else
      EXPECT_EQ(message(next.error()), step.at("error"));
  }

  // What the topology manager does with one provider. Containers that were allocated before the one
  // that is refused keep their memory until the pod is removed, as in the kubelet.
  std::string refusal(const MemoryPolicy& policy, const json& step, const Pod& pod) {
    const auto affinity = [&](const Container* container) {
      if (rules_.policy == TopologyPolicy::kNone)
        return MergedHint{{.nodes = std::nullopt, .preferred = false}};
      const ProviderHints own = hints(policy, step, pod, container);
      return merge_hints(rules_, numa_, {&own, 1});
    };
    const auto expect_chosen = [&](const Container& container, const NumaHint& hint) {
      if (!step.contains("affinity_chosen")) return;
      const json& chosen = step.at("affinity_chosen");
      if (chosen.contains(container.name))
        EXPECT_EQ(written(hint), written(hint_of(chosen.at(container.name))));
    };
    const auto topology_refusal = [&] {
      const PodLevelMode mode =
          has_pod_level_resources(pod) ? rules_.pod_level_mode() : PodLevelMode::kOff;
      return message(CpuRefusal{TopologyAffinityError{mode}});
    };
    MergedHint merged;
    if (rules_.scope == TopologyScope::kPod) merged = affinity(nullptr);
    if (has_pod_pool(pod, rules_.pod_level_mode())) {
      if (!merged.admit) return topology_refusal();
      for (const auto* const list : {&pod.init_containers, &pod.containers})
        for (const Container& container : *list)
          expect_chosen(container, merged.best);
      return allocate_pool(policy, pod, merged.best);
    }
    for (const auto* const list : {&pod.init_containers, &pod.containers})
      for (const Container& container : *list) {
        if (rules_.scope == TopologyScope::kContainer) merged = affinity(&container);
        if (!merged.admit) return topology_refusal();
        expect_chosen(container, merged.best);
        auto next = policy.allocate(state_, pod, container, merged.best);
        if (!next) return unexpected(next.error());
        state_ = *std::move(next);
      }
    return "";
  }

  static std::string unexpected(MemoryRefusal refusal) {
    return "Allocate failed due to " + std::string(message(refusal)) + ", which is unexpected";
  }

  std::string allocate_pool(const MemoryPolicy& policy, const Pod& pod, const NumaHint& affinity) {
    auto next = policy.allocate_pod(state_, pod, affinity);
    if (next) {
      state_ = *std::move(next);
      const auto again = policy.allocate_pod(state_, pod, affinity);
      EXPECT_TRUE(again && *again == state_) << "a repeated admission keeps what the pod has";
      return "";
    }
    if (const auto* const empty = std::get_if<EmptyPodPool>(&next.error())) return empty->what;
    return unexpected(std::get<MemoryRefusal>(next.error()));
  }

  void admit(const MemoryPolicy& policy, const json& step, const Pod& pod) {
    const std::string refused = refusal(policy, step, pod);
    // The kubelet ends here where a page size is unknown to the machine; a refusal is right.
    if (step.contains("upstream_panics")) {
      EXPECT_NE(refused, "");
      return remove(pod);
    }
    EXPECT_EQ(refused.empty(), step.at("admit").get<bool>()) << refused;
    EXPECT_EQ(refused, step.value("message", ""));
    if (!refused.empty()) remove(pod);
  }

  void restart(const json& step) {
    const auto reserved = reserved_in(step);
    auto faults = find_reservation_faults(sizes_, reserved,
                                          amounts_in(step.at("node_allocatable_reservation")));
    MemoryPolicy policy(sizes_, reserved, rules_.pod_level_mode());
    if (auto fault = policy.find_fault(state_)) faults.push_back(*fault);
    if (step.contains("error")) {
      EXPECT_EQ(faults, std::vector{step.at("error").get<std::string>()});
      return;
    }
    EXPECT_EQ(faults, std::vector<std::string>{});
    policy_ = std::move(policy);
    state_.reusable = {};
  }

  MemorySizes sizes_;
  std::map<std::string, Pod> pods_;
  NumaMap numa_;
  TopologyRules rules_;
  std::optional<MemoryPolicy> policy_;
  MemoryState state_;
  std::size_t hints_asked_ = 0;
};

TEST_P(MemoryManagerVectors, Agree) {
  const auto reserved = reserved_in(line());
  const auto faults = find_reservation_faults(
      sizes_, reserved, amounts_in(line().at("node_allocatable_reservation")));
  if (line().contains("start_error")) {
    // Upstream stops at the first thing that is wrong; ours names all of them.
    EXPECT_EQ(std::ranges::count(faults, text("start_error")), 1);
    return;
  }
  ASSERT_EQ(faults, std::vector<std::string>{});
  policy_.emplace(sizes_, reserved, rules_.pod_level_mode());
  state_ = policy_->initial();
  json tables = json::object();
  for (const auto& [id, node] : state_.machine)
    for (const auto& [resource, table] : node.tables)
      tables[std::to_string(id)][resource] = json_of(table);
  ASSERT_EQ(tables, line().at("initial_tables"));

  json expected = summary_of(state_.machine);
  for (std::size_t i = 0; i < line().at("steps").size(); ++i) {
    const json& step = line().at("steps")[i];
    SCOPED_TRACE("step " + std::to_string(i) + ": " + step.dump());
    hints_asked_ = 0;
    run(*policy_, step);
    EXPECT_EQ(hints_asked_, step.contains("hints_returned") ? step.at("hints_returned").size() : 0);
    if (step.contains("upstream_panics")) return;
    if (step.contains("blocks"))
      EXPECT_EQ(blocks_of(state_, pods_.at(step.at("pod").get<std::string>()).uid),
                step.at("blocks"));
    if (step.contains("pod_blocks"))
      EXPECT_EQ(json_of(state_.pod_entries.at(pods_.at(step.at("pod").get<std::string>()).uid)),
                step.at("pod_blocks"));
    if (step.contains("state_changes"))
      for (const auto& [node, change] : step.at("state_changes").items())
        expected[node] = change;
    EXPECT_EQ(summary_of(state_.machine), expected);
    if (HasFailure()) return;
  }
  if (!line().contains("checkpoint")) return;
  const auto version =
      has_gate() ? act::MemoryCheckpointVersion::kV2 : act::MemoryCheckpointVersion::kV1;
  const auto file = act::encode_memory_checkpoint({.policy = "Static", .state = state_}, version);
  EXPECT_EQ(with_sorted_blocks(json::parse(file)),
            with_sorted_blocks(json::parse(text("checkpoint"))));
  EXPECT_TRUE(act::decode_memory_checkpoint(text("checkpoint")));
}

INSTANTIATE_TEST_SUITE_P(Lines, MemoryManagerVectors,
                         testing::ValuesIn(lines_of("memory_manager_static.jsonl")), case_name);

}  // namespace
}  // namespace headroom::vectors
