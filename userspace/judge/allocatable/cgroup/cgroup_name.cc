// SPDX-License-Identifier: Apache-2.0
#include "judge/allocatable/cgroup/cgroup_name.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace headroom {
namespace {

using Fault = CgroupNameError::Reason;

constexpr std::string_view kSuffix = ".slice";
constexpr std::string_view kRootSlice = "-.slice";
constexpr std::size_t kMaxLength = 255;  // NAME_MAX; systemd's UNIT_NAME_MAX is the same

tl::unexpected<CgroupNameError> make_error(Fault reason, std::string_view name) {
  return tl::make_unexpected(CgroupNameError{reason, std::string(name)});
}

// systemd's own set for slices, slice_name_is_valid(): letters, digits and these.
bool is_slice_char(char c) {
  constexpr std::string_view kOthers = ":-_.\\";
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') || kOthers.find(c) != kOthers.npos;
}

std::optional<Fault> component_error(std::string_view component) {
  if (component.empty()) return Fault::kEmptyComponent;
  if (component == "." || component == "..") return Fault::kDots;
  if (component.find('/') != component.npos) return Fault::kSlash;
  if (component.find('_') != component.npos) return Fault::kUnderscore;
  if (!std::all_of(component.begin(), component.end(), is_slice_char)) return Fault::kCharacter;
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
std::string_view strip_slashes(std::string_view path) {
  if (path.starts_with('/')) path.remove_prefix(1);
  if (path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// "/kubepods.slice/kubepods-burstable.slice" says where it is and, by its last part, what it is:
// both must agree.
CgroupName::Parsed parse_slices(std::string_view path) {
  const std::string_view inner = strip_slashes(path);
  if (inner.empty()) return CgroupName();
  for (const std::string& part : split(inner, '/')) {
    if (part.empty()) return make_error(Fault::kEmptyComponent, path);
    if (!part.ends_with(kSuffix)) return make_error(Fault::kNotASlice, path);
  }
  auto name = CgroupName::parse_unit(inner.substr(inner.rfind('/') + 1));
  if (name && strip_slashes(name->path(CgroupDriver::kSystemd)) != inner)
    return make_error(Fault::kMisplaced, path);
  return name;
}

tl::expected<std::string, CgroupNameError> literal_path(std::string_view configured) {
  const std::string_view inner = strip_slashes(configured);
  if (inner.empty()) return make_error(Fault::kRoot, configured);
  for (const std::string& part : split(inner, '/')) {
    const auto reason = component_error(part);
    if (reason == Fault::kEmptyComponent || reason == Fault::kDots)
      return make_error(*reason, configured);
    if (part.size() > kMaxLength) return make_error(Fault::kTooLong, configured);
  }
  return "/" + std::string(inner);
}

}  // namespace

std::string CgroupNameError::what() const {
  const std::string quoted = "\"" + name + "\"";
  switch (reason) {
    case Fault::kEmptyComponent:
      return "cgroup name " + quoted + " has an empty component";
    case Fault::kSlash:
    case Fault::kUnderscore:  // in the kubelet's words
      return "invalid character in component [" + quoted + "] of CgroupName";
    case Fault::kDots:
      return "cgroup name " + quoted + " points elsewhere; write the path without . and ..";
    case Fault::kCharacter:
      return "cgroup name " + quoted +
             " holds a character that no systemd unit may; use letters, "
             "digits, - and .";
    case Fault::kTooLong:
      return "cgroup name " + quoted + " is longer than 255 bytes";
    case Fault::kNotASlice:
      return "cgroup " + quoted +
             " is not a slice, and the systemd driver sizes slices only; "
             "name the slice it runs in, such as /system.slice";
    case Fault::kMisplaced:
      return "slice " + quoted + " is not where systemd puts it; write the unit's name alone";
    case Fault::kRoot:
      return "cgroup " + quoted + " is the root, which takes no limits; name one below it";
  }
  return "";
}

CgroupName::Parsed CgroupName::of(std::vector<std::string> components) {
  CgroupName name;
  if (components.size() == 1 && components.front().empty()) return name;
  for (const std::string& component : components)
    if (const auto reason = component_error(component)) return make_error(*reason, component);
  name.components_ = std::move(components);
  if (name.unit().size() > kMaxLength) return make_error(Fault::kTooLong, name.unit());
  return name;
}

CgroupName::Parsed CgroupName::parse(CgroupDriver driver, std::string_view path) {
  switch (driver) {
    case CgroupDriver::kSystemd:
      return parse_slices(path);
    case CgroupDriver::kCgroupfs:
      return of(split(strip_slashes(path), '/'));
  }
  return CgroupName();
}

CgroupName::Parsed CgroupName::parse_unit(std::string_view unit) {
  if (unit == kRootSlice) return CgroupName();
  if (!unit.ends_with(kSuffix)) return make_error(Fault::kNotASlice, unit);
  std::vector<std::string> components = split(unit.substr(0, unit.size() - kSuffix.size()), '-');
  for (std::string& component : components) {
    if (component.empty()) return make_error(Fault::kEmptyComponent, unit);
    component = replaced(std::move(component), '_', '-');
  }
  return of(std::move(components));
}

CgroupName::Parsed CgroupName::child(std::string component) const {
  if (component.empty()) return make_error(Fault::kEmptyComponent, component);
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

CgroupName::Parsed qos_tier_name(const CgroupName& kubepods, QosClass qos) {
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
  if (uid.empty()) return make_error(Fault::kEmptyComponent, "pod");
  const auto tier = qos_tier_name(kubepods, qos);
  return tier ? tier->child("pod" + std::string(uid)) : tier;
}

CgroupName::Parsed kubepods_name(std::string_view cgroup_root) {
  auto root = CgroupName::parse(CgroupDriver::kCgroupfs, cgroup_root);
  return root ? root->child("kubepods") : root;
}

tl::expected<std::string, CgroupNameError> reserved_path(CgroupDriver driver,
                                                         std::string_view configured) {
  if (driver == CgroupDriver::kCgroupfs) return literal_path(configured);
  const std::string_view inner = strip_slashes(configured);
  // A lone slice is its unit's name, however it was written: "/kube-reserved.slice" cannot be a
  // path, for systemd puts that slice below kube.slice.
  const bool lone = inner.find('/') == inner.npos;
  const auto name = lone && !inner.empty() ? CgroupName::parse_unit(inner)
                                           : CgroupName::parse(driver, configured);
  if (!name) return make_error(name.error().reason, configured);
  if (name->is_root()) return make_error(Fault::kRoot, configured);
  return name->path(driver);
}

}  // namespace headroom
