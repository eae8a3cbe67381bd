// SPDX-License-Identifier: Apache-2.0
// Eviction records of older versions, read with the names of this one.
#include "report/eviction/audit_line.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::json;

constexpr const char* kOld =
    R"({"act":"kill","part":null,"minute":"a.json","outcome":"outlasting",)"
    R"("latency":{"signal_to_gone_ms":3.0,"kill_to_gone_ms":2.0,"decision_ms":1.0},)"
    R"("kubelet":{"lead_ms":4.0,"same":true},)"
    R"("ranking":[{"over":5,"fate":"chosen"},{"over":1,"fate":"dying"},{"fate":"futile"}]})";
constexpr const char* kNew =
    R"({"action":"kill","target":null,"flight_recording":"a.json","outcome":"timed_out",)"
    R"("latency":{"signal_to_exit_ms":3.0,"kill_to_exit_ms":2.0,"decision_ms":1.0},)"
    R"("kubelet":{"later_by_ms":4.0,"same_choice":true},)"
    R"("ranking":[{"over_request":5,"selection":"chosen"},)"
    R"({"over_request":1,"selection":"already_terminating"},{"selection":"nothing_to_free"}]})";

TEST(OldRecord, HasTheNewFields) {
  Json record = Json::parse(kOld);
  rename_old_fields(record);
  EXPECT_EQ(record, Json::parse(kNew));
  EXPECT_EQ(Json::parse(with_new_fields(kOld)), Json::parse(kNew));
}

TEST(OldRecord, ANewRecordStaysAsItIs) {
  Json record = Json::parse(kNew);
  rename_old_fields(record);
  EXPECT_EQ(record, Json::parse(kNew));
  EXPECT_EQ(with_new_fields(kNew), kNew);
}

TEST(OldRecord, OtherTextStaysAsItIs) {
  for (const char* text : {"", "[]", "{\"act\":", "null", R"({"ranking":[1,null],"latency":3})"})
    EXPECT_EQ(with_new_fields(text), text);
  for (const char* text : {"[]", "null", R"({"ranking":[1,null],"latency":3,"kubelet":null})"}) {
    Json record = Json::parse(text);
    rename_old_fields(record);
    EXPECT_EQ(record, Json::parse(text));
  }
}

}  // namespace
}  // namespace headroom::report
