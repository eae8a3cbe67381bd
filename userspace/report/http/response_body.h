// SPDX-License-Identifier: Apache-2.0
// ResponseBody: an answer that is written as fast as its reader takes it, and never held as a
// whole.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace headroom::report {

class ResponseBody {
 public:
  virtual ~ResponseBody() = default;
  // Writes the next bytes; 0: the end. Called on one thread, not the loop's.
  virtual std::size_t read(std::span<char> room) = 0;
};

// A body that is made in chunks.
class ChunkedBody : public ResponseBody {
 public:
  std::size_t read(std::span<char> room) final;

 protected:
  // Appends the next chunk, of a few kilobytes; false: there is none.
  virtual bool append_chunk(std::string& out) = 0;

 private:
  std::string pending_;
  std::size_t taken_ = 0;
};

std::unique_ptr<ResponseBody> text_body(std::string text);

}  // namespace headroom::report
