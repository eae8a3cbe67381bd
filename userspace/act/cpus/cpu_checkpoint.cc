// SPDX-License-Identifier: Apache-2.0
// The file is read in two steps: into strings exactly as written, since the checksum is computed
// from those; then into CPU sets. Go renders a missing map as <nil> and an empty one as map[], and
// the file does not say which it was: both are tried.
#include "act/cpus/cpu_checkpoint.h"

#include "base/json_text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>

#include <nlohmann/json.hpp>

namespace headroom::act {
namespace {

using Json = nlohmann::ordered_json;
using Strings = std::map<std::string, std::string>;
using Kind = CheckpointError::Kind;

// The strings of one checkpoint.
struct CheckpointFields {
  std::string policy;
  std::string default_set;
  Strings by_container_id;
  std::map<std::string, Strings> entries;
  Strings pod_entries;
  PodCpuCounts admitted;  // of V4 alone, and headroom's own: a kubelet skips it
};

// --- the checksum ----------------------------------------------------------------------------

std::string rendered(const Strings& strings) {
  return rendered_map(strings, [](const std::string& text) { return text; });
}

// A cpuset.CPUSet: {elems:(map[int]struct {})map[0:{} 1:{}]}. A list that does not parse gives no
// elements.
std::string rendered_pod_entry(const std::string& list) {
  std::string text = "{CPUSet:(cpuset.CPUSet){elems:(map[int]struct {})map[";
  if (const auto cpus = CpuSet::parse(list))
    for (const Cpu cpu : *cpus) {
      if (text.back() != '[') text += ' ';
      text += std::to_string(cpu) + ":{}";
    }
  return text + "]}}";
}

struct Rendering {
  CheckpointVersion version = CheckpointVersion::kV2;
  bool nil_maps = false;           // a map without entries is nil
  std::string_view type_suffix{};  // "V2": some releases hashed the Go type's name with it
};

std::string rendered(const CheckpointFields& fields, const Rendering& as) {
  const auto map = [&](bool empty, std::string text) {
    return empty && as.nil_maps ? std::string("<nil>") : std::move(text);
  };
  std::string text = "(*state.CPUManagerCheckpoint";
  text += as.type_suffix;
  text += "){PolicyName:(string)" + fields.policy;
  text += " DefaultCPUSet:(string)" + fields.default_set;
  if (as.version == CheckpointVersion::kV1)
    text += " Entries:(map[string]string)" +
            map(fields.by_container_id.empty(), rendered(fields.by_container_id));
  else
    text += " Entries:(map[string]map[string]string)" +
            map(fields.entries.empty(),
                rendered_map(fields.entries, [](const Strings& of) { return rendered(of); }));
  if (as.version == CheckpointVersion::kV3 || as.version == CheckpointVersion::kV4)
    text += " PodEntries:(state.PodCPUAssignments)" +
            map(fields.pod_entries.empty(), rendered_map(fields.pod_entries, rendered_pod_entry));
  return text + " Checksum:(checksum.Checksum)0}";
}

constexpr std::array<std::pair<CheckpointVersion, std::string_view>, 6> kHashedAs{{
    {CheckpointVersion::kV2, ""},
    {CheckpointVersion::kV3, ""},
    {CheckpointVersion::kV1, ""},
    {CheckpointVersion::kV1, "V1"},
    {CheckpointVersion::kV2, "V2"},
    {CheckpointVersion::kV3, "V3"},
}};

// Whether a checkpoint with these fields filled can be of that version.
bool can_be(const CheckpointFields& fields, CheckpointVersion version) {
  if (!fields.by_container_id.empty()) return version == CheckpointVersion::kV1;
  if (!fields.pod_entries.empty()) return version == CheckpointVersion::kV3;
  return fields.entries.empty() || version != CheckpointVersion::kV1;
}

std::optional<CheckpointVersion> version_of(const CheckpointFields& fields) {
  for (const auto& [version, suffix] : kHashedAs)
    if (can_be(fields, version)) return version;
  return std::nullopt;
}

// The version whose checksum matches.
std::optional<CheckpointVersion> version_of(const CheckpointFields& fields,
                                            std::uint64_t checksum) {
  for (const auto& [version, suffix] : kHashedAs)
    for (const bool nil_maps : {false, true})
      if (can_be(fields, version) &&
          fnv1a_32(rendered(fields, {version, nil_maps, suffix})) == checksum)
        return version;
  return std::nullopt;
}

// The checksum of V4 is that of a Go string.
std::uint32_t data_checksum(const std::string& data) {
  return fnv1a_32("(string)" + data);
}

// --- reading ---------------------------------------------------------------------------------

tl::unexpected<CheckpointError> not_a_checkpoint(const std::string& what) {
  return tl::make_unexpected(CheckpointError{Kind::kNotACheckpoint, what});
}
tl::unexpected<CheckpointError> corrupt() {
  return tl::make_unexpected(CheckpointError{Kind::kCorrupt, "checkpoint is corrupted"});
}

// Reads a string; an absent field gives Go's zero value. False: the field is not a string.
bool read(const Json& object, const char* key, std::string& into) {
  const auto field = object.find(key);
  if (field == object.end() || field->is_null()) return true;
  if (field->is_string()) into = field->get<std::string>();
  return field->is_string();
}

bool read(const Json& object, Strings& into) {
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string()) return false;
    into[key] = value.get<std::string>();
  }
  return true;
}

// Reads the entries: by container id (V1), or by pod.
bool read_entries(const Json& object, CheckpointFields& into) {
  const auto entries = object.find("entries");
  if (entries == object.end() || entries->is_null()) return true;
  if (!entries->is_object()) return false;
  if (!entries->empty() && entries->front().is_string())
    return read(*entries, into.by_container_id);
  for (const auto& [pod, containers] : entries->items())
    if (!containers.is_object() || !read(containers, into.entries[pod])) return false;
  return true;
}

bool read_pod_entries(const Json& object, CheckpointFields& into) {
  const auto entries = object.find("podEntries");
  if (entries == object.end() || entries->is_null()) return true;
  if (!entries->is_object()) return false;
  for (const auto& [pod, entry] : entries->items())
    if (!entry.is_object() || !read(entry, "cpuSet", into.pod_entries[pod])) return false;
  return true;
}

bool read_admitted(const Json& object, CheckpointFields& into) {
  const auto admitted = object.find("admittedCpus");
  if (admitted == object.end()) return true;
  if (!admitted->is_object()) return false;
  for (const auto& [pod, containers] : admitted->items()) {
    if (!containers.is_object()) return false;
    for (const auto& [container, count] : containers.items()) {
      constexpr auto kMax = static_cast<std::uint64_t>(CpuSet::kMax);
      if (!count.is_number_unsigned() || count.get<std::uint64_t>() > kMax) return false;
      into.admitted[pod][container] = count.get<int>();
    }
  }
  return true;
}

tl::expected<CheckpointFields, CheckpointError> read(const Json& object) {
  CheckpointFields fields;
  if (!object.is_object()) return not_a_checkpoint("not a JSON object");
  if (!read(object, "policyName", fields.policy)) return not_a_checkpoint("policyName: no string");
  if (!read(object, "defaultCpuSet", fields.default_set))
    return not_a_checkpoint("defaultCpuSet: no string");
  if (!read_entries(object, fields)) return not_a_checkpoint("entries: of no known shape");
  if (!read_pod_entries(object, fields)) return not_a_checkpoint("podEntries: of no known shape");
  return fields;
}

tl::expected<std::uint64_t, CheckpointError> read_checksum(const Json& object, const char* key) {
  const auto field = object.find(key);
  if (field == object.end()) return 0;
  if (!field->is_number_unsigned()) return not_a_checkpoint(std::string(key) + ": no checksum");
  return field->get<std::uint64_t>();
}

Json parsed(std::string_view text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// --- strings to sets and back ----------------------------------------------------------------

// Parses lists into sets, and keeps the first error.
class Sets {
 public:
  CpuSet parse(const std::string& where, const std::string& list) {
    const auto cpus = CpuSet::parse(list);
    if (cpus) return *cpus;
    if (!error_) error_ = CheckpointError{Kind::kBadCpuSet, where + ": " + cpus.error().what};
    return {};
  }
  const std::optional<CheckpointError>& error() const { return error_; }

 private:
  std::optional<CheckpointError> error_;
};

std::string entry_of(const std::string& pod, const std::string& container) {
  return "entries of pod " + pod + ", container " + container;
}

tl::expected<CpuCheckpoint, CheckpointError> checkpoint_of(const CheckpointFields& fields,
                                                           CheckpointVersion version) {
  CpuCheckpoint checkpoint{.policy = fields.policy, .version = version};
  Sets sets;
  checkpoint.state.default_set = sets.parse("defaultCpuSet", fields.default_set);
  for (const auto& [pod, containers] : fields.entries)
    for (const auto& [container, list] : containers)
      checkpoint.state.entries[pod][container] = sets.parse(entry_of(pod, container), list);
  for (const auto& [pod, list] : fields.pod_entries)
    checkpoint.state.pod_entries[pod] = sets.parse("podEntries of pod " + pod, list);
  for (const auto& [id, list] : fields.by_container_id)
    checkpoint.by_container_id[id] = sets.parse("entries of container id " + id, list);
  checkpoint.state.admitted = fields.admitted;
  if (sets.error()) return tl::make_unexpected(*sets.error());
  return checkpoint;
}

CheckpointFields written_of(const CpuCheckpoint& checkpoint) {
  CheckpointFields fields{.policy = checkpoint.policy,
                          .default_set = checkpoint.state.default_set.format(),
                          .by_container_id = {},
                          .entries = {},
                          .pod_entries = {},
                          .admitted = {}};
  for (const auto& [pod, containers] : checkpoint.state.entries)
    for (const auto& [container, cpus] : containers)
      fields.entries[pod][container] = cpus.format();
  for (const auto& [pod, cpus] : checkpoint.state.pod_entries)
    fields.pod_entries[pod] = cpus.format();
  for (const auto& [id, cpus] : checkpoint.by_container_id)
    fields.by_container_id[id] = cpus.format();
  return fields;
}

// The fields in Go's order; maps that are empty are omitted.
Json fields_of(const CheckpointFields& fields, CheckpointVersion version) {
  Json json{{"policyName", fields.policy}, {"defaultCpuSet", fields.default_set}};
  if (version == CheckpointVersion::kV1) {
    if (!fields.by_container_id.empty()) json["entries"] = fields.by_container_id;
    return json;
  }
  for (const auto& [pod, containers] : fields.entries)
    json["entries"][pod] = containers;
  if (version == CheckpointVersion::kV2) return json;
  for (const auto& [pod, list] : fields.pod_entries)
    json["podEntries"][pod] = {{"cpuSet", list}};
  return json;
}

tl::expected<CpuCheckpoint, CheckpointError> decode_v4(const Json& object) {
  if (!object.at("data").is_string()) return not_a_checkpoint("data: no string");
  const auto data = object.at("data").get<std::string>();
  const auto checksum = read_checksum(object, "dataChecksum");
  if (!checksum) return tl::make_unexpected(checksum.error());
  if (*checksum != data_checksum(data)) return corrupt();
  const Json json = parsed(data);
  auto fields = read(json);
  if (!fields) return tl::make_unexpected(fields.error());
  if (!read_admitted(json, *fields)) return not_a_checkpoint("admittedCpus: of no known shape");
  return checkpoint_of(*fields, CheckpointVersion::kV4);
}

}  // namespace

std::uint32_t fnv1a_32(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

std::string checkpoint_hash_input(const CpuCheckpoint& checkpoint, CheckpointVersion version) {
  return rendered(written_of(checkpoint), Rendering{.version = version});
}

tl::expected<CpuCheckpoint, CheckpointError> decode_checkpoint(std::string_view text) {
  const Json object = parsed(text);
  if (object.is_discarded()) return not_a_checkpoint("not JSON");
  const auto fields = read(object);
  if (!fields) return tl::make_unexpected(fields.error());
  if (object.contains("data")) return decode_v4(object);
  const auto checksum = read_checksum(object, "checksum");
  if (!checksum) return tl::make_unexpected(checksum.error());
  const auto version = *checksum == 0 ? version_of(*fields) : version_of(*fields, *checksum);
  if (!version) return corrupt();
  return checkpoint_of(*fields, *version);
}

std::string encode_checkpoint(const CpuCheckpoint& checkpoint, CheckpointVersion version) {
  const CheckpointFields fields = written_of(checkpoint);
  Json json = fields_of(fields, version);
  if (version != CheckpointVersion::kV4) {
    json["checksum"] = fnv1a_32(rendered(fields, Rendering{.version = version}));
    return to_json_text(json);
  }
  Json all = json;
  for (const auto& [pod, containers] : checkpoint.state.admitted)
    all["admittedCpus"][pod] = containers;
  const std::string data = to_json_text(all);
  json["checksum"] = 0;
  json["data"] = data;
  json["dataChecksum"] = data_checksum(data);
  return to_json_text(json);
}

MigratedCheckpoint migrate_checkpoint(CpuCheckpoint checkpoint, const ContainerRefs& containers) {
  std::vector<std::string> unknown;
  for (const auto& [id, cpus] : checkpoint.by_container_id) {
    const auto ref = containers.find(id);
    if (ref == containers.end())
      unknown.push_back(id);
    else
      checkpoint.state.entries[ref->second.first][ref->second.second] = cpus;
  }
  checkpoint.by_container_id.clear();
  return {std::move(checkpoint), std::move(unknown)};
}

Result<std::optional<std::string>> CheckpointFile::read() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return errno_failure("open " + path_.string(), errno);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return errno_failure("read " + path_.string(), errno);
  return text;
}

Result<> CheckpointFile::move_damaged_file() const {
  const std::string damaged_path = path_.string() + ".damaged";
  if (std::rename(path_.c_str(), damaged_path.c_str()) == 0) return {};
  return errno_failure("rename " + path_.string() + " to " + damaged_path, errno);
}

Result<> CheckpointFile::write(std::string text) {
  if (text == written_) return {};
  constexpr mode_t kOwner = 0600;
  if (auto saved = write_atomically(
          path_, text, {.mode = kOwner, .durable = true, .make_directory = true, .at = at_});
      !saved)
    return saved;
  written_ = std::move(text);
  return {};
}

Result<std::optional<CpuCheckpoint>> CpuStateFile::load() const {
  const auto text = read();
  if (!text) return tl::make_unexpected(text.error());
  if (!*text) return std::nullopt;
  auto checkpoint = decode_checkpoint(**text);
  if (!checkpoint) return failure("read " + path().string() + ": " + checkpoint.error().what);
  return std::move(*checkpoint);
}

Result<> CpuStateFile::save(const std::string& policy, const CpuState& state) {
  // V2 can hold neither CPUs that are assigned to a pod as a whole nor numbers of CPUs.
  const bool fits_v2 = state.pod_entries.empty() && state.admitted.empty();
  const auto version = fits_v2 ? CheckpointVersion::kV2 : CheckpointVersion::kV4;
  return write(encode_checkpoint({.policy = policy, .state = state}, version));
}

}  // namespace headroom::act
