// SPDX-License-Identifier: Apache-2.0
// ResponseBody: an answer that is written as fast as its reader takes it, and never held as a
// whole.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Request and Answer: what a client requests, and what it gets.

struct HttpRequest {
  std::string_view path = {};
  std::string_view host = {};           // the header; "" if missing
  std::string_view accept = {};         // Accept; "" if missing
  std::string_view if_none_match = {};  // If-None-Match; "" if missing
  // The value of ?name=value; "" if missing.
  std::function<std::string_view(const char* name)> argument = [](const char*) {
    return std::string_view();
  };
};

struct HttpHeader {
  const char* name;
  std::string value;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type;
  std::unique_ptr<ResponseBody> body;
  std::vector<HttpHeader> headers = {};  // in addition to Content-Type
};

}  // namespace headroom::report
