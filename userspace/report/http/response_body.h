// SPDX-License-Identifier: Apache-2.0
// ResponseBody: the body of a response, produced in pieces as fast as the client reads it, so that
// it is never in memory as a whole.
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
  // Writes the next bytes into `room` and returns their number; 0: the end. Called on one thread,
  // which is not the loop's.
  virtual std::size_t read(std::span<char> room) = 0;
};

// A body that is produced in chunks.
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

// HttpRequest and HttpResponse: a request, and the response to it.

struct HttpRequest {
  std::string_view path = {};
  std::string_view host = {};           // Host; "" if missing
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
