// SPDX-License-Identifier: Apache-2.0
// What a scrape of N cgroups costs: streamed as headroomd does it, and built and written through
// prometheus-cpp as a program that uses nothing else would. And one of N pods, with the default
// headroom.metrics and with all cgroups and families.
#include "config/config.h"
#include "report/metrics/exposition/cgroup_families.h"
#include "report/metrics/exposition/scrape_body.h"
#include "report/metrics/metric_family.h"

#include <array>
#include <sstream>
#include <string>

#include <benchmark/benchmark.h>
#include <prometheus/text_serializer.h>

namespace {

using namespace headroom;
using namespace headroom::report;

class Names final : public CgroupNames {
 public:
  std::string_view path_of(CgroupId id) const override {
    path_ = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0d7c1f8e_2d5b_4a57_b1";
    path_ += std::to_string(id.value / 4) + ".slice/cri-containerd-" + std::string(58, 'a') +
             std::to_string(100'000 + id.value) + ".scope";
    return path_;
  }
  std::uint64_t started_ns(CgroupId) const override { return 1'767'225'600'000'000'000; }

 private:
  mutable std::string path_;
};

CgroupTable table_of(std::uint64_t cgroups) {
  std::vector<hr_record> records(cgroups);
  for (std::uint64_t id = 1; id <= cgroups; ++id) {
    hr_record& record = records[id - 1];
    auto* fields = reinterpret_cast<hr_u64*>(&record);
    for (std::size_t i = 3; i < sizeof(record) / sizeof(hr_u64); ++i)
      fields[i] = id * 1'234'567'891 * i;
    record.id = id;
    record.parent_id = id / 4;
    record.valid = (1 << HR_GROUPS) - 1;
  }
  Snapshot snapshot;
  snapshot.cgroups = records;
  CgroupTable table;
  const Names names;
  fill(table, nullptr, snapshot, &names);
  return table;
}

// As containerd makes them: each pod has a cgroup of its own, one container and a pause container.
CgroupTable table_of_pods(std::uint64_t pods) {
  class PodNames final : public CgroupNames {
   public:
    std::string_view path_of(CgroupId id) const override {
      constexpr std::array kTop{"/", "/kubepods.slice", "/kubepods.slice/kubepods-burstable.slice"};
      path_ = id.value <= 3 ? kTop[id.value - 1] : pod_path((id.value - 4) / 3);
      if (id.value > 3 && (id.value - 4) % 3 == 1) path_ += "/main";
      if (id.value > 3 && (id.value - 4) % 3 == 2)
        path_ += "/cri-containerd-" + std::string(58, 'a') + std::to_string(100'000 + id.value) +
                 ".scope/pause";
      return path_;
    }
    std::uint64_t started_ns(CgroupId) const override { return 1'767'225'600'000'000'000; }

   private:
    static std::string pod_path(std::uint64_t pod) {
      return "/kubepods.slice/kubepods-burstable.slice/"
             "kubepods-burstable-pod0d7c1f8e_2d5b_4a57_b1" +
             std::to_string(100'000'000 + pod) + ".slice";
    }
    mutable std::string path_;
  };
  std::vector<hr_record> records(3 + 3 * pods);
  for (std::uint64_t id = 1; id <= records.size(); ++id) {
    hr_record& record = records[id - 1];
    auto* fields = reinterpret_cast<hr_u64*>(&record);
    for (std::size_t i = 3; i < sizeof(record) / sizeof(hr_u64); ++i)
      fields[i] = id * 1'234'567'891 * i;
    record.id = id;
    record.parent_id = id <= 3 ? id - 1 : (id - 4) % 3 == 0 ? 3 : id - (id - 4) % 3;
    record.valid = (1 << HR_GROUPS) - 1;
  }
  std::vector<PodReading> readings;
  for (std::uint64_t pod = 0; pod < pods; ++pod) {
    auto described = std::make_shared<Pod>();
    described->name = "checkout-7c9d5b6f4d-" + std::to_string(10'000 + pod);
    described->pod_namespace = "shop";
    described->uid = "0d7c1f8e-2d5b-4a57-b1" + std::to_string(100'000'000 + pod);
    described->containers.emplace_back().name = "main";
    readings.push_back({.pod = described,
                        .cgroup = CgroupId{4 + 3 * pod},
                        .record = &records[3 + 3 * pod],
                        .memory_request = {}});
  }
  Snapshot snapshot;
  snapshot.cgroups = records;
  snapshot.pods = readings;
  CgroupTable table;
  const PodNames names;
  fill(table, nullptr, snapshot, &names);
  return table;
}

void of_pods(benchmark::State& state, CgroupScope scope, const std::vector<std::string>& exclude) {
  Published<CgroupTable> published;
  published.publish([&](CgroupTable& next, const CgroupTable*) {
    next = table_of_pods(static_cast<std::uint64_t>(state.range(0)));
  });
  double bytes = 0;
  for (auto _ : state) {
    ScrapeSetup setup;
    setup.cgroups = published.latest();
    setup.scope = scope;
    setup.exclude = exclude;
    ScrapeBody page(std::move(setup));
    std::array<char, 32 * 1024> room;
    bytes = 0;
    while (const std::size_t size = page.read(room))
      bytes += static_cast<double>(size);
  }
  state.counters["MiB"] = bytes / (1 << 20);
}
void pods_by_default(benchmark::State& state) {
  std::vector<std::string> exclude = config::MetricsConfig().exclude;
  exclude.emplace_back("container_*");
  of_pods(state, CgroupScope::kContainers, exclude);
}
// compatibilityMetrics: true.
void pods_with_container_names(benchmark::State& state) {
  of_pods(state, CgroupScope::kContainers, config::MetricsConfig().exclude);
}
void pods_all(benchmark::State& state) {
  of_pods(state, CgroupScope::kAll, {});
}

void streamed(benchmark::State& state) {
  Published<CgroupTable> published;
  published.publish([&](CgroupTable& next, const CgroupTable*) {
    next = table_of(static_cast<std::uint64_t>(state.range(0)));
  });
  std::int64_t bytes = 0;
  for (auto _ : state) {
    ScrapeSetup setup;
    setup.cgroups = published.latest();
    ScrapeBody page(std::move(setup));
    std::array<char, 32 * 1024> room;
    while (const std::size_t size = page.read(room))
      bytes += static_cast<std::int64_t>(size);
  }
  state.SetBytesProcessed(bytes);
}

void through_prometheus_cpp(benchmark::State& state) {
  const CgroupTable table = table_of(static_cast<std::uint64_t>(state.range(0)));
  std::int64_t bytes = 0;
  for (auto _ : state) {
    std::vector<prometheus::MetricFamily> families;
    for (const CgroupFamily& row : cgroup_families()) {
      auto family = MetricFamilyBuilder::gauge(row.name, row.help);
      for (std::size_t i = 0; i < table.records.size(); ++i)
        if (const auto value = row.value({.record = table.records[i]}))
          family.add(*value, labels({{"container", ""},
                                     {"id", table.path(i)},
                                     {"image", ""},
                                     {"name", ""},
                                     {"namespace", ""},
                                     {"pod", ""}}));
      family.append_to(families);
    }
    std::ostringstream out;
    prometheus::TextSerializer().Serialize(out, families);
    bytes += static_cast<std::int64_t>(out.str().size());
  }
  state.SetBytesProcessed(bytes);
}

BENCHMARK(streamed)->Arg(100)->Arg(1000)->Arg(3000)->Unit(benchmark::kMillisecond);
BENCHMARK(through_prometheus_cpp)->Arg(100)->Arg(1000)->Arg(3000)->Unit(benchmark::kMillisecond);

BENCHMARK(pods_by_default)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(pods_with_container_names)->Arg(1000)->Unit(benchmark::kMillisecond);
BENCHMARK(pods_all)->Arg(1000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
