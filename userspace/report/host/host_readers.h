// SPDX-License-Identifier: Apache-2.0
// HostReaders: what is read of the host while a scrape is answered, on the scraper's thread. The
// loop does not read these.
#pragma once

#include "report/host/filesystem_space.h"
#include "report/host/network_counters.h"
#include "report/host/process_counts.h"

namespace headroom::report {

struct HostReaders {
  NetworkReader network;
  ProcessReader processes;
  FilesystemSpaces filesystems;
};

}  // namespace headroom::report
