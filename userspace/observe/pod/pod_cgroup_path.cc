// SPDX-License-Identifier: Apache-2.0
#include "observe/pod/pod_cgroup_path.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::observe {
namespace {

constexpr std::string_view kSlice = ".slice";
constexpr std::string_view kScope = ".scope";

// Takes the first component off the path.
std::string_view pop(std::string_view& path) {
  const std::string_view component = path.substr(0, path.find('/'));
  path.remove_prefix(std::min(path.size(), component.size() + 1));
  return component;
}

bool strip_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool strip_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What stands for the tier in names, and which class it holds.
struct QosTier {
  std::string_view name;
  QosClass qos;
};
constexpr std::array<QosTier, 2> kTiers{
    {{"burstable", QosClass::kBurstable}, {"besteffort", QosClass::kBestEffort}}};

// "kubepods-burstable.slice" → its Tier.
const QosTier* tier_named(std::string_view component, std::string_view stem, bool systemd) {
  if (systemd) {
    const bool ours = strip_suffix(component, kSlice) && strip_prefix(component, stem) &&
                      strip_prefix(component, "-");
    if (!ours) return nullptr;
  }
  for (const QosTier& tier : kTiers)
    if (tier.name == component) return &tier;
  return nullptr;
}

// "kubepods-burstable-pod<uid>.slice" → "<uid>", as spelled there. `tier` may be null.
std::optional<std::string_view> encoded_uid(std::string_view component, std::string_view stem,
                                            bool systemd, const QosTier* tier) {
  if (systemd) {
    const bool ours =
        strip_suffix(component, kSlice) && strip_prefix(component, stem) &&
        strip_prefix(component, "-") &&
        (!tier || (strip_prefix(component, tier->name) && strip_prefix(component, "-")));
    if (!ours) return std::nullopt;
  }
  if (!strip_prefix(component, "pod") || component.empty()) return std::nullopt;
  return component;
}

// Any word will do for a uid, as it does for the kubelet (it looks for "pod" and takes the rest);
// but what cannot be spelled back is none.
std::optional<std::string> decode_uid(std::string_view spelled, bool systemd) {
  std::string uid(spelled);
  const char dash = systemd ? '_' : '-';
  for (char& c : uid) {
    if (c == dash)
      c = '-';
    else if (!is_letter_or_digit(c))
      return std::nullopt;
  }
  return uid;
}

constexpr auto kRuntimes =
    std::to_array<std::string_view>({"cri-containerd", "crio", "docker", "libpod"});

constexpr std::size_t kIdLength = 64;

// "crio-conmon-<id>.scope" is the container's monitor and not the container: it keeps its name. So
// does a plain directory that only looks like "crio-<id>": under cgroupfs ids are whole.
void parse_container(std::string_view component, PodCgroupPath& place) {
  place.container = component;
  std::string_view stem = component;
  const bool scope = strip_suffix(stem, kScope);
  for (const std::string_view runtime : kRuntimes) {
    std::string_view id = stem;
    if (!strip_prefix(id, runtime) || !strip_prefix(id, "-")) continue;
    if (id.empty() || !std::all_of(id.begin(), id.end(), is_hex)) continue;
    if (!scope && id.size() != kIdLength) continue;
    place.runtime = component.substr(0, runtime.size());  // a view into the path
    place.container = id;
  }
}

}  // namespace

PodCgroupParser::PodCgroupParser(std::string_view pods_root) {
  while (pods_root.starts_with("/"))
    pods_root.remove_prefix(1);
  while (pods_root.ends_with("/"))
    pods_root.remove_suffix(1);
  add_root(pods_root);
  if (pods_root == "kubepods.slice") add_root("kubepods");
  if (pods_root == "kubepods") add_root("kubepods.slice");
}

void PodCgroupParser::add_root(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  std::string_view stem = slash == std::string_view::npos ? path : path.substr(slash + 1);
  const bool systemd = strip_suffix(stem, kSlice);
  roots_.push_back({std::string(path) + "/", std::string(stem), systemd});
}

std::optional<PodCgroupPath> PodCgroupParser::place(std::string_view path) const {
  while (path.starts_with("/"))
    path.remove_prefix(1);
  for (const Root& root : roots_) {
    std::string_view rest = path;
    if (!strip_prefix(rest, root.path)) continue;

    std::string_view component = pop(rest);
    const QosTier* tier = tier_named(component, root.stem, root.systemd);
    if (tier) component = pop(rest);
    const auto spelled = encoded_uid(component, root.stem, root.systemd, tier);
    if (!spelled) return std::nullopt;
    auto uid = decode_uid(*spelled, root.systemd);
    if (!uid) return std::nullopt;

    PodCgroupPath place;
    place.uid = std::move(*uid);
    if (tier) place.qos = tier->qos;
    if (rest.empty()) return place;
    parse_container(pop(rest), place);
    place.level =
        rest.empty() ? PodCgroupPath::Level::kContainer : PodCgroupPath::Level::kBelowContainer;
    return place;
  }
  return std::nullopt;
}

bool is_conmon(std::string_view name) {
  return name.starts_with("crio-conmon-") || name.starts_with("libpod-conmon-");
}

bool is_uuid(std::string_view uid) {
  if (uid.size() != 36) return false;
  for (std::size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !is_hex(uid[i])) return false;
  }
  return true;
}

bool is_static_uid(std::string_view uid) {
  return uid.size() == 32 && std::all_of(uid.begin(), uid.end(), is_hex);
}

}  // namespace headroom::observe
