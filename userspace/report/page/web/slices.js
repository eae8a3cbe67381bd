// SPDX-License-Identifier: Apache-2.0
// Slices: usage of the cgroups between the root and the pods against their shares, if headroomd
// reports it.

function sliceState(slice) {
  if (slice.error) return slice.error;
  if (slice.exists === false) return "absent";
  const wrong = list(slice.settings).filter((each) => each.differs);
  if (wrong.length) return `${wrong.map((each) => each.setting).join(", ")}: differs from the configuration`;
  if (isNumber(slice.over_limit)) return `${bytes(slice.over_limit)} above its configured limit`;
  return "as configured";
}

class Slices {
  constructor() {
    this.rows = new Keyed(byId("slices-rows"), () => {
      const row = rowOf(["slice", "bar", "memory", "cpu", "tasks", "state"], {memory: "num", cpu: "num", tasks: "num"});
      row.bar = barOf();
      row.cells.bar.append(row.bar.element);
      return row;
    }, (row, slice) => this.showSlice(row, slice));
  }

  show(slices) {
    const each = list(table(slices).slices);
    setHidden(byId("slices-section"), each.length === 0);
    if (!each.length) return;
    setText(byId("slices-note"), `Mode ${slices.mode}. Bars: usage of the reserved amount.${slices.error ? ` ${slices.error}` : ""}`);
    this.rows.show(each, (slice) => slice.slice);
  }

  showSlice({cells, bar}, slice) {
    const use = table(slice.usage), share = table(slice.share);
    const of = (used, meant, text) => `${text(used)} of ${isNumber(meant) ? text(meant) : "no share"}`;
    const cpus = (count) => isNumber(count) ? count.toFixed(2) : "–";
    const state = sliceState(slice);
    setText(cells.slice, slice.role ? `${slice.slice} (${slice.role})` : slice.slice);
    setText(cells.memory, of(use.memory, share.memory, bytes));
    setText(cells.cpu, of(use.cpu, share.cpu, cpus));
    setText(cells.tasks, of(use.tasks, share.tasks, number));
    setText(cells.state, state);
    setClass(cells.state, state === "as configured" ? "" : "bad");
    const full = isNumber(share.memory) && use.memory > share.memory;
    setClass(bar.above, full ? "too-much" : "above");
    setWidth(bar.within, 0);
    setWidth(bar.above, isNumber(share.memory) && share.memory > 0 ? (use.memory || 0) / share.memory : 0);
  }
}
