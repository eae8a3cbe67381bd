// SPDX-License-Identifier: Apache-2.0
// Poster: turns the audit log into requests to the API server, one after the other, on a thread of
// headroom-kube's own. What is not told yet stands in a file.
#pragma once

#include "config/config.h"
#include "kube/http.h"
#include "kube/post/node_teller.h"
#include "kube/post/queue.h"
#include "kube/post/tally.h"
#include "kube/status_board.h"

#include <headroom/units.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace headroom::kube {

// Clocks and chance, for tests to stand in.
struct PosterWorld {
  std::function<Instant()> now;             // CLOCK_BOOTTIME
  std::function<std::int64_t()> unix_time;  // microseconds
  std::function<double()> chance;           // from [0, 1)
  Exchange exchange;                        // with the API server
  std::function<bool()> headroomd_lives;    // as far as can be told
  std::function<bool()> stopping;
};

struct PosterTerms {
  PostingTerms posting;
  NodeTeller::Terms node;
  std::filesystem::path audit_log;
  std::filesystem::path node_status;
  std::filesystem::path state_file;
};

class Poster {
 public:
  Poster(PosterTerms terms, PosterWorld world);

  // Reads what is new and tells what is due. How long nothing is due if nothing happens.
  Duration turn();

  nlohmann::ordered_json state() const;
  const Tally& tally() const { return tally_; }
  const PostQueue& queue() const { return queue_; }

 private:
  void load();
  void save();
  void read_log();
  bool read_more();
  void read_node();
  void tell_all();
  bool tell(Posting& posting, Step step);
  void tell_node();
  void note(const Posting& posting, Step step, const Answer& answer);
  void finish(const Posting& posting);
  void server_said(Heard heard, std::optional<Duration> retry_after, const std::string& why);
  Duration idle() const;

  const PosterTerms terms_;
  const PosterWorld world_;
  PostQueue queue_;
  std::string saved_;
  Tally tally_;
  NodeTeller node_;
  std::string node_text_;    // of the node's status file, as last read
  unsigned deaf_ = 0;        // looks in a row at which headroomd did not seem alive
  Instant next_look_{};      // whether it lives
  unsigned troubles_ = 0;    // with the server as a whole, in a row
  Instant held_until_{};     // it is left alone
  std::string trouble_;      // what it was; "" when the last answer was one
  std::string log_trouble_;  // with the audit log
};

}  // namespace headroom::kube
