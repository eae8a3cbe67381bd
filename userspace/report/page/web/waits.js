// SPDX-License-Identifier: Apache-2.0
// Pressure: waits for memory and CPU, by cause.

const kCauses = [
  ["global", "global: the node is short of memory"],
  ["refault", "refault: reading back pages that were just reclaimed"],
  ["limit", "limit: a cgroup's own memory.max"],
  ["high", "high: a cgroup's own memory.high"],
  ["compaction", "compaction: no contiguous memory"],
  ["throttled", "throttled: a CPU quota"],
];

const waitsOf = (waits, cause) => cause === "throttled" ? waits.throttled : table(waits.stalls)[cause];

class CauseRow {
  constructor([cause, says]) {
    this.cause = cause;
    this.rate = new Rate();
    const row = rowOf(["cause", "now", "most", "spark", "all", "waits", "slow", "pod"],
      {now: "num", most: "num", all: "num", waits: "num", slow: "num"});
    Object.assign(this, row);
    setText(this.cells.cause, says);
    this.spark = new Spark(kPast, `Waits by the cause ${cause} over five minutes; the maximum is in the previous cell`);
    this.cells.spark.append(this.spark.element);
  }

  // Adds totals in nanoseconds at these times in seconds, oldest first.
  remember(times, totals) {
    times.forEach((at, i) => this.rate.add(at, isNumber(totals[i]) ? totals[i] / 1e6 : null));
  }

  show(status) {
    const waits = table(status.waits);
    const watched = this.cause === "throttled" ? waits.throttled != null : waits.stalls != null;
    const mine = waitsOf(waits, this.cause) || {ns: 0, count: 0, p99_ns: null};
    const at = secondsOf(status.at_ns);
    const now = this.rate.add(at, watched ? mine.ns / 1e6 : null);
    const past = this.rate.past, most = past.most();
    setText(this.cells.now, watched ? (now === null ? "–" : now.toFixed(now < 10 ? 1 : 0)) : "not watched");
    setText(this.cells.most, watched ? most.toFixed(most < 10 ? 1 : 0) : "–");
    setText(this.cells.all, watched ? nanoseconds(mine.ns) : "–");
    setText(this.cells.waits, watched ? number(mine.count) : "–");
    setText(this.cells.slow, nanoseconds(mine.p99_ns));
    this.spark.show(past, at);
    setText(this.cells.pod, this.mostOf(status));
  }

  // The pod that waited most since the last update.
  mostOf(status) {
    const most = table(status.top_waiters)[this.cause];
    if (!most) return "–";
    const rate = most.ns_per_s / 1e6;
    return `${podName(most)}, ${rate.toFixed(rate < 10 ? 1 : 0)} ms/s`;
  }
}

class Pressure {
  constructor() {
    this.rows = kCauses.map((cause) => new CauseRow(cause));
    byId("pressure-rows").append(...this.rows.map((row) => row.element));
  }

  // Takes /api/history. Called before the first show().
  remember(history) {
    const times = list(history.at_ns).map(secondsOf);
    for (const row of this.rows) row.remember(times, list(table(history.waited_ns)[row.cause]));
  }

  show(status) {
    for (const row of this.rows) row.show(status);
  }
}
