// SPDX-License-Identifier: Apache-2.0
// What-if: a threshold that is dragged over the readings of the last half hour: how often, when and how long the
// signal was below it. The same rule as headroomd's for a hard threshold: available less than the threshold. What an
// eviction would have changed afterwards is not known here; headroomctl replay judges a recording again.

// [{from, to}] in seconds since boot: when the readings were below the limit. A gap ends an interval.
function intervalsBelow(past, limit) {
  const found = [];
  let open = null;
  past.times.forEach((at, i) => {
    if (open && at - open.to > kGap) open = null;
    if (past.values[i] >= limit) open = null;
    else if (open) open.to = at;
    else found.push(open = {from: at, to: at});
  });
  return found;
}

function whatIfText(signal, past, limit) {
  const below = intervalsBelow(past, limit), now = past.times[past.times.length - 1];
  const span = duration(Math.round(now - past.times[0]));
  if (!below.length) return `With a hard threshold of ${amount(signal, limit)}, none of the readings of the last ${span} is below it.`;
  const all = below.reduce((sum, each) => sum + each.to - each.from, 0);
  const first = duration(Math.round(now - below[0].from)), last = below[below.length - 1];
  return `With a hard threshold of ${amount(signal, limit)}, evictions would have begun ${first} ago. In the last ${span} it was crossed ${
    many(below.length, "time")}, for ${duration(Math.round(all))} in all${last.to === now ? ", and it is crossed now" : ""}.`;
}

class WhatIf {
  constructor(signal, changed) {
    Object.assign(this, {signal, past: new Past()});
    this.range = make("input", {type: "range", min: "0", max: "1000", value: "0", "aria-label": `Another hard threshold of ${signal}`});
    this.text = make("p", {class: "note"});
    this.details = make("details", {class: "whatif"}, make("summary", {}, "What if the threshold were another one?"), this.range, this.text);
    this.element = this.details;
    this.range.addEventListener("input", () => {
      this.moved = true;
      this.write();
      changed();
    });
    this.details.addEventListener("toggle", () => {
      this.write();
      changed();
    });
  }

  limit() { return Math.round(Number(this.range.value) / 1000 * this.most); }
  limits() { return this.details.open && this.most > 0 ? [{kind: "whatif", limit: this.limit()}] : []; }

  show(past, thresholds, seen) {
    this.past = past;
    // The scale stays while it is open: a threshold must not move under the pointer.
    if (!this.details.open || !this.most)
      this.most = Math.max(past.most(), ...thresholds.map((each) => isNumber(each.limit) ? 2 * each.limit : 0), 0);
    setHidden(this.details, !(this.most > 0) || !seen);
    const configured = thresholds.find((each) => each.kind === "hard" && isNumber(each.limit));
    if (!this.moved && configured && this.most > 0) {
      const value = String(Math.round(1000 * configured.limit / this.most));
      if (this.range.value !== value) this.range.value = value;
    }
    this.write();
  }

  write() {
    if (!this.details.open || !this.past.times.length) return;
    const text = whatIfText(this.signal, this.past, this.limit());
    setText(this.text, text);
    setAttribute(this.range, "aria-valuetext", amount(this.signal, this.limit()));
  }
}
