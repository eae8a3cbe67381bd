// SPDX-License-Identifier: Apache-2.0
// headroomctl advise reserves: kubeReserved and systemReserved that recorded use asks for, as text,
// JSON and keys of a KubeletConfiguration.
#pragma once

#include "ctl/advise/reserve_use.h"
#include "ctl/common/commands.h"
#include "ctl/common/text_table.h"
#include "judge/advice/reserve_advice.h"
#include "judge/forecast/peak_predictor.h"

#include <headroom/result.h>

#include <optional>
#include <string>

namespace headroom::ctl {

struct AdvisedReserves {
  RecordedReserves recorded;
  NamedPredictor predictor;
  // Absent: not advised, since a reading is missing, or no cgroup of the reserve was found.
  OfReserves<OfResources<std::optional<ReserveAdvice>>> advice;
};

// Errors: too little is recorded.
Result<AdvisedReserves> advise_reserves(RecordedReserves recorded, NamedPredictor predictor);

std::string render_reserves(const AdvisedReserves& advised, const Screen& screen);
std::string reserves_json(const AdvisedReserves& advised);
// kubeReserved and systemReserved. What is not advised keeps its present value. A reserve of which
// no cgroup was found is left out, because what it is for is counted in the other one.
std::string reserves_yaml(const AdvisedReserves& advised);

void add_advise_reserves(ArgumentParser& advise, CliCommand& chosen);

}  // namespace headroom::ctl
