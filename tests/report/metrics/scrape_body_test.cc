// SPDX-License-Identifier: Apache-2.0
// The pages as a scraper sees them, against prometheus-cpp's serializer and against golden text.
#include "report/metrics/exposition/scrape_body.h"

#include "report/golden.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/metric_family.h"
#include "report/sample.h"
#include "report/view/pod_waits.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

namespace headroom::report {
namespace {

using namespace headroom::test;

constexpr std::uint64_t kReadAt = 1'767'225'700'000'000'000;

std::string all_of(ResponseBody& body, std::size_t room_size) {
  std::string text, room(room_size, '\0');
  while (const std::size_t size = body.read(room))
    text.append(room, 0, size);
  return text;
}

std::string page_of(const CgroupTable& table, ScrapeSetup setup = {}, std::size_t room = 4096) {
  Published<CgroupTable> published;
  published.publish([&](CgroupTable& next, const CgroupTable*) { next = table; });
  setup.cgroups = published.latest();
  setup.read_at_ns = kReadAt;
  ScrapeBody page(std::move(setup));
  return all_of(page, room);
}

// container="a",id="b" → labels, unescaped.
Labels parsed(std::string_view text) {
  Labels result;
  while (!text.empty()) {
    const std::size_t equals = text.find('=');
    auto& label = result.emplace_back();
    label.name = text.substr(0, equals);
    std::size_t at = equals + 2;
    for (; text[at] != '"'; ++at) {
      if (text[at] != '\\')
        label.value += text[at];
      else
        label.value += text[++at] == 'n' ? '\n' : text[at];
    }
    text.remove_prefix(std::min(text.size(), at + 2));
  }
  return result;
}

// Rows of one name are one family.
void append_rows(MetricFamilyBuilder& rows, std::vector<prometheus::MetricFamily>& families) {
  std::vector<prometheus::MetricFamily> one;
  rows.append_to(one);
  if (!one.empty() && !families.empty() && families.back().name == one.front().name) {
    auto& metrics = families.back().metric;
    metrics.insert(metrics.end(), one.front().metric.begin(), one.front().metric.end());
    return;
  }
  std::move(one.begin(), one.end(), std::back_inserter(families));
}

Labels labels_of_pod(const Pod& pod) {
  return report::labels({{"namespace", pod.pod_namespace}, {"pod", pod.name}, {"uid", pod.uid}});
}

// Of one record in a family; empty: it has no series there.
Labels labels_in(const CgroupFamily& row, const CgroupTable& table, const CgroupLabels& labels,
                 std::size_t i) {
  if (labels.of(i).empty()) return {};
  switch (row.of) {
    case FamilyOf::kCgroups:
      return (row.groups & HR_PSI) && labels.is_pod_internal(i) ? Labels() : parsed(labels.of(i));
    case FamilyOf::kPods:
      for (const PodRow& pod : table.pods)
        if (pod.cgroup.value == table.records[i].id) return labels_of_pod(*pod.pod);
      return {};
    case FamilyOf::kNode:
      return labels.of_node(i).empty() ? Labels()
                                       : report::labels({{"id", std::string(table.path(i))}});
  }
  return {};
}

// The same families as a naive program would build them, written by prometheus-cpp.
std::string serialized(const CgroupTable& table) {
  const CgroupLabels labels(table, PodIndex(table));
  std::vector<prometheus::MetricFamily> families;
  const CgroupWaits waits(table);
  for (const CgroupFamily& row : cgroup_families()) {
    MetricFamilyBuilder family = row.type == prometheus::MetricType::Gauge
                                     ? MetricFamilyBuilder::gauge(row.name, row.help)
                                     : MetricFamilyBuilder::counter(row.name, row.help);
    for (std::size_t i = 0; i < table.records.size(); ++i) {
      const auto value = row.value(
          {table.records[i], table.started_ns(i), kReadAt, waits.stalls(i), waits.throttles(i)});
      Labels all = labels_in(row, table, labels, i);
      if (all.empty() || !value) continue;
      for (auto& extra_labels : parsed(row.extra_labels))
        all.push_back(std::move(extra_labels));
      family.add(*value, std::move(all));
    }
    append_rows(family, families);
  }
  const PodIndex index(table);
  const auto cpu_waits = cpu_waits_by_pod(table);
  for (const PodFamily& row : pod_families()) {
    MetricFamilyBuilder family = row.type == prometheus::MetricType::Gauge
                                     ? MetricFamilyBuilder::gauge(row.name, row.help)
                                     : MetricFamilyBuilder::counter(row.name, row.help);
    for (const PodRow& pod : table.pods) {
      const auto waited = cpu_waits.find(pod.cgroup.value);
      const PodMetricInput view{.row = pod,
                                .record = index.record_of(pod.cgroup),
                                .cpu_waits = waited == cpu_waits.end() ? nullptr : waited->second};
      const auto value = row.read(view);
      if (!value) continue;
      Labels all = labels_of_pod(*pod.pod);
      if (row.extra_labels)
        for (auto& extra_labels : parsed(row.extra_labels(view)))
          all.push_back(std::move(extra_labels));
      family.add(*value, std::move(all));
    }
    append_rows(family, families);
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

CgroupTable random_table(unsigned seed) {
  std::mt19937_64 random(seed);
  static constexpr std::array<const char*, 5> kNames{"/web.service", "/a\\x2db.slice", "/\"q\"",
                                                     "/new\nline", "/dev-\xc3\xa4.mount"};
  SampleNames names;
  std::vector<hr_record> records;
  for (std::uint64_t id = 1; id < 1 + random() % 90; ++id) {
    hr_record record = full_record(id, id / 3);
    auto* fields = reinterpret_cast<hr_u64*>(&record);
    for (std::size_t i = 3; i < sizeof(record) / sizeof(hr_u64); ++i) {
      fields[i] = random() >> (random() % 64);
      if (random() % 8 == 0) fields[i] = HR_UNKNOWN;
      if (random() % 8 == 0) fields[i] = HR_NO_LIMIT;
    }
    record.valid = static_cast<hr_u32>(random());
    records.push_back(record);
    if (random() % 9) names.paths[id] = kNames[random() % 5] + std::to_string(id);
  }
  Snapshot snapshot;
  snapshot.cgroups = records;
  CgroupTable table;
  fill(table, nullptr, snapshot, &names);
  return table;
}

TEST(ScrapeBody, IsWhatPrometheusCppWrites) {
  EXPECT_EQ(page_of(sample_cgroups()), serialized(sample_cgroups()));
  for (unsigned seed = 0; seed < 60; ++seed) {
    const CgroupTable table = random_table(seed);
    ASSERT_EQ(page_of(table), serialized(table)) << "seed " << seed;
  }
}

TEST(ScrapeBody, IsTheSameHoweverSlowlyItIsRead) {
  const CgroupTable table = random_table(7);
  const std::string whole = page_of(table, {}, 1 << 20);
  for (const std::size_t room : {1u, 7u, 1000u, 65536u})
    EXPECT_EQ(page_of(table, {}, room), whole) << room;
}

TEST(ScrapeBody, ReadsAsTheGoldenText) {
  expect_golden("metrics/containers.prom", page_of(sample_cgroups()));
  ScrapeSetup open;
  open.format = Format::kOpenMetrics;
  expect_golden("metrics/containers.openmetrics", page_of(sample_cgroups(), std::move(open)));
}

TEST(ScrapeBody, OpenMetricsEndsWithEofEvenWhenEmpty) {
  ScrapeSetup setup;
  setup.format = Format::kOpenMetrics;
  ScrapeBody page(std::move(setup));
  EXPECT_EQ(all_of(page, 100), "# EOF\n");
  ScrapeBody text{ScrapeSetup{}};
  EXPECT_EQ(all_of(text, 100), "");
}

TEST(ScrapeBody, AnUnknownGroupHasNoSample) {
  const std::string text = page_of(sample_cgroups());
  EXPECT_EQ(text.find("18446744073709"), std::string::npos) << "an unknown was printed";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("poduid_quiet") == line.npos || line.starts_with("headroom_pod_")) continue;
    EXPECT_TRUE(line.starts_with("container_last_seen") ||
                line.starts_with("container_start_time_seconds"))
        << line;
  }
}

TEST(ScrapeBody, AKnownGroupWithAnUnknownFieldLeavesOutThatField) {
  CgroupTable table = sample_cgroups();
  for (hr_record& record : table.records)
    record.swap_usage = HR_UNKNOWN;  // no swap in the kernel
  const std::string text = page_of(table);
  EXPECT_EQ(text.find("container_memory_swap{"), std::string::npos);
  EXPECT_NE(text.find("container_memory_usage_bytes{"), std::string::npos);
}

TEST(ScrapeBody, NoLimitIsZeroToCadvisorAndInfiniteToUs) {
  CgroupTable table = sample_cgroups();
  for (hr_record& record : table.records)
    record.memory_max = record.memory_high = HR_NO_LIMIT;
  const std::string text = page_of(table);
  const auto value = [&](const std::string& name) {
    const std::size_t at = text.find("\n" + name + "{");
    const std::size_t end = text.find('\n', at + 1);
    return text.substr(text.rfind(' ', end) + 1, end - text.rfind(' ', end) - 1);
  };
  EXPECT_EQ(value("container_spec_memory_limit_bytes"), "0");
  EXPECT_EQ(value("headroom_cgroup_memory_high_bytes"), "+Inf");
}

// The root has no memory.current: the kubelet adds its anonymous memory and its page cache.
TEST(ScrapeBody, TheRootsMemoryIsThatOfItsStatistics) {
  CgroupTable table = sample_cgroups();
  hr_record& root = *std::find_if(table.records.begin(), table.records.end(),
                                  [](const hr_record& each) { return each.parent_id == 0; });
  const std::string labels =
      "{container=\"\",id=\"/\",image=\"\",name=\"\",namespace=\"\",pod=\"\"}";
  EXPECT_EQ(page_of(table).find("container_memory_usage_bytes" + labels), std::string::npos);
  root.valid |= HR_MEMORY_STAT;
  root.anon = 100;
  root.file = 30;
  root.inactive_file = 20;
  const std::string text = page_of(table);
  EXPECT_NE(text.find("\ncontainer_memory_usage_bytes" + labels + " 130\n"), std::string::npos);
  EXPECT_NE(text.find("\ncontainer_memory_working_set_bytes" + labels + " 110\n"),
            std::string::npos);
}

TEST(ScrapeBody, PeriodsOfAQuotaAreThoseOfCgroupsThatHaveOne) {
  for (const bool limited : {true, false}) {
    CgroupTable table = sample_cgroups();
    for (hr_record& record : table.records)
      record.cpu_quota_us = limited ? 20'000 : HR_NO_LIMIT;
    const std::string text = page_of(table);
    for (const std::string name : {"cfs_periods", "cfs_throttled_periods", "cfs_throttled_seconds",
                                   "cfs_burst_periods", "cfs_burst_seconds"})
      EXPECT_EQ(text.find("\ncontainer_cpu_" + name + "_total{") != text.npos, limited) << name;
  }
  CgroupTable table = sample_cgroups();
  for (hr_record& record : table.records)
    if (record.parent_id == 0) record = full_record(record.id, 0);
  EXPECT_EQ(page_of(table).find("container_cpu_cfs_periods_total{container=\"\",id=\"/\""),
            std::string::npos)
      << "the root has statistics and no quota";
}

// As cAdvisor converts them, which is the reverse of what the kubelet writes.
TEST(ScrapeBody, SharesAreThoseOfTheWeight) {
  const auto shares_of = [](hr_u64 weight) -> std::string {
    CgroupTable table = sample_cgroups();
    for (hr_record& record : table.records)
      record.cpu_weight = weight;
    const std::string text = page_of(table);
    const std::size_t at = text.find("\ncontainer_spec_cpu_shares{");
    if (at == text.npos) return "none";
    const std::size_t end = text.find('\n', at + 1), blank = text.rfind(' ', end);
    return text.substr(blank + 1, end - blank - 1);
  };
  EXPECT_EQ(shares_of(1), "2");
  EXPECT_EQ(shares_of(39), "998");
  EXPECT_EQ(shares_of(10'000), "262144");
  EXPECT_EQ(shares_of(0), "none") << "cpu.idle";
}

// A new field of hr_record without a family fails here.
TEST(ScrapeBody, EveryFieldOfTheRecordIsShown) {
  constexpr std::size_t kHeader = 3;  // id, parent_id; valid and populated
  for (std::size_t i = kHeader; i < sizeof(hr_record) / sizeof(hr_u64); ++i) {
    const auto shown_with = [&](hr_u64 value) {
      CgroupTable table = sample_cgroups();
      table.records[0].memory_usage = hr_u64{1} << 50;
      table.records[0].inactive_file = 1;
      reinterpret_cast<hr_u64*>(&table.records[0])[i] = value;
      return page_of(table);
    };
    EXPECT_NE(shown_with(123'456'789), shown_with(987'654'321))
        << "word " << i << " of hr_record (offset " << i * 8
        << ") has no family: add a row to report/exposition/cgroup_families.cc";
  }
}

TEST(ScrapeBody, NoTwoSamplesHaveTheSameNameAndLabels) {
  std::istringstream text(page_of(random_table(3)) + page_of(sample_cgroups()));
  std::set<std::string> seen;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
  EXPECT_GT(seen.size(), 100u);
}

}  // namespace
}  // namespace headroom::report
