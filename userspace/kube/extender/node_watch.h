// SPDX-License-Identifier: Apache-2.0
// NodeWatch: keeps a NodeTable equal to the API server's nodes, by lists and watches of their
// metadata alone (PartialObjectMetadata).
#pragma once

#include "kube/extender/node_table.h"
#include "kube/http_client.h"

#include <headroom/result.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace headroom::kube {

// Events of a watch: one JSON document in each line, in pieces of any size.
class EventLines {
 public:
  static constexpr std::size_t kMaxLine = std::size_t{2} << 20;  // bytes

  // Calls `take` with each line that is complete. False: a line is too long.
  bool add(std::string_view piece, const std::function<void(const std::string&)>& take);

 private:
  std::string part_;
};

class NodeWatch {
 public:
  // A watch ends by itself after this time; then another one goes on where it ended.
  static constexpr std::chrono::seconds kWatchTime{50};
  static constexpr int kPageSize = 500;  // nodes of one answer to a list

  // Sends a request and returns its response. If on_data of the request is set, it takes the body.
  using Exchange = std::function<Result<HttpResponse>(const HttpRequest&)>;
  NodeWatch(NodeTable& table, Exchange exchange) : table_(table), exchange_(std::move(exchange)) {}

  // A list if there is no version to go on from, else a watch. An error says what failed; after one
  // of a watch that is too old, the next step is a list.
  Result<> step();

  bool has_listed() const { return has_listed_; }

 private:
  Result<> list();
  Result<> watch();
  void take_event(const std::string& line);

  NodeTable& table_;
  const Exchange exchange_;
  std::string version_;  // where to go on; "": list
  std::string error_;    // an ERROR event of the watch
  bool has_listed_ = false;
};

}  // namespace headroom::kube
