// SPDX-License-Identifier: Apache-2.0
// Http: the endpoint Prometheus scrapes, /metrics, on threads of its own.
#pragma once

#include <headroom/result.h>

#include <memory>
#include <string>

#include <prometheus/collectable.h>

namespace prometheus {
class Exposer;
}

namespace headroom::report {

class Http {
 public:
  // `address` as Config.listen: "127.0.0.1:9750", "[::1]:9750". Not called when it is "".
  static Result<std::unique_ptr<Http>> open(const std::string& address,
                                            std::shared_ptr<prometheus::Collectable> metrics);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;

  // The port bound, which the kernel chose when `address` said 0.
  int port() const;

 private:
  Http(std::unique_ptr<prometheus::Exposer> exposer,
       std::shared_ptr<prometheus::Collectable> metrics);

  std::shared_ptr<prometheus::Collectable> metrics_;  // the exposer only borrows it
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace headroom::report
