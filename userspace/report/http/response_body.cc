// SPDX-License-Identifier: Apache-2.0
#include "report/http/response_body.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headroom::report {
namespace {

class TextBody final : public ChunkedBody {
 public:
  explicit TextBody(std::string text) : text_(std::move(text)) {}

 private:
  bool append_chunk(std::string& out) override {
    if (text_.empty()) return false;
    out.swap(text_);
    text_.clear();
    return true;
  }

  std::string text_;
};

}  // namespace

std::size_t ChunkedBody::read(std::span<char> room) {
  while (pending_.size() - taken_ < room.size()) {
    if (taken_ > 0) {
      pending_.erase(0, taken_);
      taken_ = 0;
    }
    if (!append_chunk(pending_)) break;
  }
  const std::size_t size = std::min(room.size(), pending_.size() - taken_);
  std::memcpy(room.data(), pending_.data() + taken_, size);
  taken_ += size;
  return size;
}

std::unique_ptr<ResponseBody> text_body(std::string text) {
  return std::make_unique<TextBody>(std::move(text));
}

}  // namespace headroom::report
