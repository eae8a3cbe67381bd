// SPDX-License-Identifier: Apache-2.0
#include "ctl/common/manifest_input.h"

#include "config/yaml/yaml.h"
#include "manifest/manifest_reader.h"

#include <iostream>
#include <iterator>
#include <utility>

namespace headroom::ctl {
namespace {

Result<std::string> text_of(const std::string& file) {
  if (file != "-") return config::read_file(file);
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

}  // namespace

tl::expected<ManifestInput, config::Diagnostics> read_manifest(const std::string& file) {
  const std::string name = file == "-" ? "standard input" : file;
  auto text = text_of(file);
  if (!text) return tl::make_unexpected(config::Diagnostics{{name, 0, text.error().what}});
  observe::Manifests manifests = observe::parse_manifests(*text, name);
  if (manifests.diagnostics.empty() && manifests.pods.empty())
    manifests.diagnostics.push_back({name, 0, "there is no Pod in it"});
  if (!manifests.diagnostics.empty()) return tl::make_unexpected(std::move(manifests.diagnostics));
  return ManifestInput{std::move(*text), std::move(manifests.pods)};
}

}  // namespace headroom::ctl
