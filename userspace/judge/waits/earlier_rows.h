// SPDX-License-Identifier: Apache-2.0
// EarlierRows: where the ids of a list were in an earlier list. Most windows have the cgroups of
// the one before, in the same order: then no table is made.
#pragma once

#include <headroom/id_table.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace headroom {

inline IdTable rows_of(std::span<const std::uint64_t> ids) {
  IdTable rows(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    rows.put(ids[i], i);
  return rows;
}

class EarlierRows {
 public:
  // `ids` must outlive it.
  explicit EarlierRows(std::span<const std::uint64_t> ids) : ids_(ids) {}

  // `row`: of the id in the present list. Absent: it was not in the earlier one.
  std::optional<std::size_t> find(std::uint64_t id, std::size_t row) {
    if (row < ids_.size() && ids_[row] == id) return row;
    if (!table_) table_ = rows_of(ids_);
    return table_->find(id);
  }

 private:
  std::span<const std::uint64_t> ids_;
  std::optional<IdTable> table_;
};

}  // namespace headroom
