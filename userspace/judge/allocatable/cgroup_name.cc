// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup_name.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace headroom {
namespace {

using Why = NameRefusal::Why;

constexpr std::string_view kSuffix = ".slice";
constexpr std::string_view kRootSlice = "-.slice";
constexpr std::size_t kLongest = 255;  // NAME_MAX; systemd's UNIT_NAME_MAX is the same

tl::unexpected<NameRefusal> refuse(Why why, std::string_view name) {
  return tl::make_unexpected(NameRefusal{why, std::string(name)});
}

// systemd's own set for slices, slice_name_is_valid(): letters, digits and these.
bool fits_slice(char c) {
  constexpr std::string_view kOthers = ":-_.\\";
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || kOthers.find(c) != kOthers.npos;
}

std::optional<Why> objection(std::string_view component) {
  if (component.empty()) return Why::kEmptyComponent;
  if (component == "." || component == "..") return Why::kDots;
  if (component.find('/') != component.npos) return Why::kSlash;
  if (component.find('_') != component.npos) return Why::kUnderscore;
  if (!std::all_of(component.begin(), component.end(), fits_slice)) return Why::kCharacter;
  return std::nullopt;
}

std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(by, from), text.size());
    parts.emplace_back(text.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

std::string replaced(std::string text, char from, char to) {
  std::replace(text.begin(), text.end(), from, to);
  return text;
}

// "/a/b/" is "a/b".
std::string_view bare(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// "/kubepods.slice/kubepods-burstable.slice" says where it is and, by its last part, what it is:
// both must agree.
CgroupName::Parsed parse_slices(std::string_view path) {
  const std::string_view inner = bare(path);
  if (inner.empty()) return CgroupName();
  for (const std::string& part : split(inner, '/')) {
    if (part.empty()) return refuse(Why::kEmptyComponent, path);
    if (!part.ends_with(kSuffix)) return refuse(Why::kNotASlice, path);
  }
  auto name = CgroupName::parse_unit(inner.substr(inner.rfind('/') + 1));
  if (name && bare(name->path(CgroupDriver::kSystemd)) != inner)
    return refuse(Why::kMisplaced, path);
  return name;
}

tl::expected<std::string, NameRefusal> literal_path(std::string_view told) {
  const std::string_view inner = bare(told);
  if (inner.empty()) return refuse(Why::kRoot, told);
  for (const std::string& part : split(inner, '/')) {
    const auto why = objection(part);
    if (why == Why::kEmptyComponent || why == Why::kDots) return refuse(*why, told);
    if (part.size() > kLongest) return refuse(Why::kTooLong, told);
  }
  return "/" + std::string(inner);
}

}  // namespace

std::string NameRefusal::what() const {
  const std::string quoted = "\"" + name + "\"";
  switch (why) {
    case Why::kEmptyComponent:
      return "cgroup name " + quoted + " has an empty component";
    case Why::kSlash:
    case Why::kUnderscore:  // the kubelet's words, and reason enough for both
      return "invalid character in component [" + quoted + "] of CgroupName";
    case Why::kDots:
      return "cgroup name " + quoted + " points elsewhere; write the path without . and ..";
    case Why::kCharacter:
      return "cgroup name " + quoted +
             " holds a character that no systemd unit may; use letters, "
             "digits, - and .";
    case Why::kTooLong:
      return "cgroup name " + quoted + " is longer than 255 bytes";
    case Why::kNotASlice:
      return "cgroup " + quoted +
             " is not a slice, and the systemd driver sizes slices only; "
             "name the slice it runs in, such as /system.slice";
    case Why::kMisplaced:
      return "slice " + quoted + " is not where systemd puts it; write the unit's name alone";
    case Why::kRoot:
      return "cgroup " + quoted + " is the root, which takes no limits; name one below it";
  }
  return "";
}

CgroupName::Parsed CgroupName::of(std::vector<std::string> components) {
  CgroupName name;
  if (components.size() == 1 && components.front().empty()) return name;
  for (const std::string& component : components)
    if (const auto why = objection(component)) return refuse(*why, component);
  name.components_ = std::move(components);
  if (name.unit().size() > kLongest) return refuse(Why::kTooLong, name.unit());
  return name;
}

CgroupName::Parsed CgroupName::parse(CgroupDriver driver, std::string_view path) {
  switch (driver) {
    case CgroupDriver::kSystemd:
      return parse_slices(path);
    case CgroupDriver::kCgroupfs:
      return of(split(bare(path), '/'));
  }
  return CgroupName();
}

CgroupName::Parsed CgroupName::parse_unit(std::string_view unit) {
  if (unit == kRootSlice) return CgroupName();
  if (!unit.ends_with(kSuffix)) return refuse(Why::kNotASlice, unit);
  std::vector<std::string> components = split(unit.substr(0, unit.size() - kSuffix.size()), '-');
  for (std::string& component : components) {
    if (component.empty()) return refuse(Why::kEmptyComponent, unit);
    component = replaced(std::move(component), '_', '-');
  }
  return of(std::move(components));
}

CgroupName::Parsed CgroupName::child(std::string component) const {
  if (component.empty()) return refuse(Why::kEmptyComponent, component);
  std::vector<std::string> components = components_;
  components.push_back(std::move(component));
  return of(std::move(components));
}

std::string CgroupName::unit() const {
  if (is_root()) return std::string(kRootSlice);
  std::string stem;
  for (const std::string& component : components_)
    stem += (stem.empty() ? "" : "-") + replaced(component, '-', '_');
  return stem.append(kSuffix);
}

std::string CgroupName::path(CgroupDriver driver) const {
  if (is_root()) return "/";
  std::string path;
  std::string stem;
  for (const std::string& component : components_) {
    stem += (stem.empty() ? "" : "-") + replaced(component, '-', '_');
    path.append("/");
    if (driver == CgroupDriver::kSystemd)
      path.append(stem).append(kSuffix);
    else
      path.append(component);
  }
  return path;
}

CgroupName::Parsed tier_name(const CgroupName& kubepods, QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return kubepods;
    case QosClass::kBurstable:
      return kubepods.child("burstable");
    case QosClass::kBestEffort:
      return kubepods.child("besteffort");
  }
  return kubepods;
}

CgroupName::Parsed pod_name(const CgroupName& kubepods, QosClass qos, std::string_view uid) {
  if (uid.empty()) return refuse(Why::kEmptyComponent, "pod");
  const auto tier = tier_name(kubepods, qos);
  return tier ? tier->child("pod" + std::string(uid)) : tier;
}

CgroupName::Parsed kubepods_name(std::string_view cgroup_root) {
  auto root = CgroupName::parse(CgroupDriver::kCgroupfs, cgroup_root);
  return root ? root->child("kubepods") : root;
}

tl::expected<std::string, NameRefusal> reserved_path(CgroupDriver driver, std::string_view told) {
  if (driver == CgroupDriver::kCgroupfs) return literal_path(told);
  const std::string_view inner = bare(told);
  // A lone slice is its unit's name, however it was written: "/kube-reserved.slice" cannot be a
  // path, for systemd puts that slice below kube.slice.
  const bool lone = inner.find('/') == inner.npos;
  const auto name =
      lone && !inner.empty() ? CgroupName::parse_unit(inner) : CgroupName::parse(driver, told);
  if (!name) return refuse(name.error().why, told);
  if (name->is_root()) return refuse(Why::kRoot, told);
  return name->path(driver);
}

}  // namespace headroom
