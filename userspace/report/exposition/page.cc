// SPDX-License-Identifier: Apache-2.0
#include "report/exposition/page.h"

#include "report/exposition/cgroup_families.h"
#include "report/exposition/text.h"

#include <algorithm>
#include <utility>

namespace headroom::report {
namespace {

constexpr std::size_t kRecordsAPiece = 32;

void append_sample(std::string& out, const CgroupFamily& family, std::string_view labels,
                   double value) {
  out.append(family.name).append("{").append(labels);
  if (!family.more.empty()) out.append(",").append(family.more);
  out.append("} ");
  append_number(out, value);
  out.push_back('\n');
}

}  // namespace

Page::Page(PageSetup setup) : setup_(std::move(setup)) {
  if (setup_.cgroups) labels_.emplace(*setup_.cgroups);
}

bool Page::wanted(std::size_t family) const {
  return cgroup_families()[family].is_cadvisors() ? setup_.cadvisors : setup_.ours;
}

void Page::next_family() {
  ++family_;
  record_ = 0;
  headed_ = false;
}

void Page::append_records(std::string& out) {
  const CgroupTable& table = *setup_.cgroups;
  const CgroupFamily& family = cgroup_families()[family_];
  const std::size_t end = std::min(record_ + kRecordsAPiece, table.records.size());
  for (; record_ < end; ++record_) {
    const std::string_view labels = labels_->of(record_);
    if (labels.empty()) continue;
    const auto value = family.value({.record = table.records[record_],
                                     .started_ns = table.started_ns[record_],
                                     .read_at_ns = setup_.read_at_ns});
    if (!value) continue;
    if (!headed_) append_header(out, setup_.format, family.name, family.help, family.type);
    headed_ = true;
    append_sample(out, family, labels, *value);
  }
}

bool Page::append_piece(std::string& out) {
  if (own_ < setup_.own.size()) {
    append_family(out, setup_.format, setup_.own[own_++]);
    return true;
  }
  if (setup_.cgroups && family_ < cgroup_families().size()) {
    if (wanted(family_)) append_records(out);
    if (!wanted(family_) || record_ >= setup_.cgroups->records.size()) next_family();
    return true;
  }
  if (std::exchange(ended_, true)) return false;
  out.append(page_end(setup_.format));
  return true;
}

}  // namespace headroom::report
