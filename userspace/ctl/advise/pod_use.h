// SPDX-License-Identifier: Apache-2.0
// The use of each pod in a recording, for judge/advice, and the advice as text. What a recording
// has of a pod is the record of its own cgroup: a quota of one container is not seen.
#pragma once

#include "ctl/common/text_table.h"
#include "judge/advice/pod_advice.h"
#include "recording/tape.h"

#include <headroom/pod.h>
#include <headroom/result.h>

#include <memory>
#include <string>
#include <vector>

namespace headroom::ctl {

struct RecordedPod {
  std::shared_ptr<const Pod> pod;  // never null
  PodUse use;
};

// By namespace and name. Errors: the recording is damaged.
Result<std::vector<RecordedPod>> read_pod_use(recording::TapeReader& tape);

// The present and the advised values as a table, then the evidence.
std::string render_advice(const std::vector<RecordedPod>& pods, const Screen& screen);
std::string advice_json(const std::vector<RecordedPod>& pods);

}  // namespace headroom::ctl
