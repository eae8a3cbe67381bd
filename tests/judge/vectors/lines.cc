// SPDX-License-Identifier: Apache-2.0
#include "judge/vectors/lines.h"

#include <cstdlib>
#include <fstream>

namespace headroom::vectors {
namespace {

std::string folder() {
  const char* const directory = std::getenv("HEADROOM_VECTORS");
  return directory && *directory ? directory : "tests/fixtures/vectors";
}

std::set<std::string>& asked_for() {
  static std::set<std::string> names;
  return names;
}

Line parsed(const std::string& file, int number, const std::string& text) {
  Line line{file, number, text, nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false),
            ""};
  if (line.json.is_discarded()) line.diagnostic = "not JSON";
  return line;
}

}  // namespace

void PrintTo(const Line& line, std::ostream* out) {
  *out << line.file << ":" << line.number << ": " << line.text;
}

const std::set<std::string>& files_asked_for() {
  return asked_for();
}

std::vector<Line> lines_of(const std::string& name) {
  asked_for().insert(name);
  const std::string file = folder() + "/" + name;
  std::ifstream stream(file);
  if (!stream) return {Line{file, 0, "", {}, "cannot be opened (run at the repository's root?)"}};
  std::vector<Line> lines;
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    if (!text.empty()) lines.push_back(parsed(file, number, text));
  }
  if (lines.empty()) return {Line{file, 0, "", {}, "holds no case"}};
  return lines;
}

std::string case_name(const testing::TestParamInfo<Line>& info) {
  return "line_" + std::to_string(info.param.number);
}

}  // namespace headroom::vectors
