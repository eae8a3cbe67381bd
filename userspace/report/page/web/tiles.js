// SPDX-License-Identifier: Apache-2.0
// Tiles: the node in six numbers, each with the last half hour. A new tile is a row of kTiles.

const readingOf = (status, signal) => list(status.signals).find((each) => each.signal === signal);
const hardLimit = (status, signal) => list(status.thresholds).find((each) => each.signal === signal && each.kind === "hard" && isNumber(each.limit));

function signalTile(signal) {
  return {
    sample: (status) => (readingOf(status, signal) || {}).available,
    value: (status) => amount(signal, (readingOf(status, signal) || {}).available),
    note: (status) => {
      const seen = readingOf(status, signal), limit = hardLimit(status, signal);
      return seen ? `of ${amount(signal, seen.capacity)} available${limit ? `, threshold ${amount(signal, limit.limit)}` : ""}` : "not known";
    },
    state: (status) => list(status.thresholds).some((each) => each.signal === signal && each.met) ? "now" : "",
    past: (history) => list(table(history.signals)[signal]),
  };
}

// The filesystem with the smallest share left.
function fullestDisk(status) {
  const disks = list(status.signals).filter((each) => /fs\.available$/.test(each.signal) && isNumber(each.available) && each.capacity > 0);
  return disks.sort((a, b) => a.available / a.capacity - b.available / b.capacity)[0];
}

const perSecond = (rate) => rate === null ? "–" : `${rate.toFixed(rate < 10 ? 1 : 0)} ms/s`;

const kTiles = [
  {name: "Memory", ...signalTile("memory.available")},
  {name: "CPU quota waits", counter: true, sample: (status) => table(table(status.waits).throttled).ns / 1e6,
    value: (status, rate) => table(status.waits).throttled ? perSecond(rate) : "not watched",
    note: (status) => {
      const most = table(status.top_waiters).throttled;
      return most ? `most: ${podName(most)}` : "no pod waits for its quota";
    },
    past: (history) => list(table(history.waited_ns).throttled).map((ns) => isNumber(ns) ? ns / 1e6 : null)},
  {name: "Disk", sample: (status) => (fullestDisk(status) || {}).available,
    value: (status) => bytes((fullestDisk(status) || {}).available),
    note: (status) => {
      const disk = fullestDisk(status);
      return disk ? `${disk.signal}, ${(100 * disk.available / disk.capacity).toFixed(0)} % left` : "not known";
    },
    past: (history, status) => list(table(history.signals)[(fullestDisk(status) || {}).signal])},
  {name: "Tasks", ...signalTile("pid.available")},
  {name: "Evictions", sample: (status) => table(status.counters).evicted,
    value: (status) => number(table(status.counters).evicted),
    note: (status, rate, last) => [status.counters && status.counters.would_evict ? `${status.counters.would_evict} would have been` : "",
      last ? `last: ${last}` : "none recorded"].filter(Boolean).join("; "),
    state: (status) => table(status.counters).failed ? "near" : ""},
  {name: "headroomd", counter: true, sample: (status) => table(status.process).cpu_seconds * 1e3,
    value: (status, rate) => rate === null ? "–" : `${(rate / 10).toFixed(1)} % CPU`,
    note: (status) => {
      const lost = unloadedPrograms(status);
      return lost.length ? `BPF not loaded: ${lost.join(", ")}` : `${bytes(table(status.process).resident_bytes)} resident, mode ${status.mode}`;
    },
    state: (status) => unloadedPrograms(status).length ? "near" : ""},
];

class Tile {
  constructor(row) {
    this.row = row;
    this.rate = row.counter ? new Rate(kLongPast) : null;
    this.past = this.rate ? this.rate.past : new Past(kLongPast);
    this.value = make("dd", {class: "big"});
    this.note = make("dd", {class: "note"});
    this.spark = new Spark(kLongPast);
    this.element = make("div", {class: "tile"}, make("dt", {}, row.name), this.value, make("dd", {class: "spark-of"}, this.spark.element), this.note);
  }

  add(at, value) {
    if (this.rate) this.rate.add(at, value);
    else this.past.add(at, value);
  }

  show(status, last) {
    const {row} = this;
    this.add(secondsOf(status.at_ns), row.sample(status));
    setClass(this.element, `tile ${row.state ? row.state(status) : ""}`.trim());
    setText(this.value, row.value(status, this.rate && this.rate.now));
    setText(this.note, row.note(status, this.rate && this.rate.now, last));
    const now = secondsOf(status.at_ns), began = this.past.times.length ? this.past.times[0] : now;
    this.spark.show(this.past, now, spanSince(now - began)[0]);
  }
}

class Tiles {
  constructor() {
    this.tiles = kTiles.map((row) => new Tile(row));
    byId("tiles").append(...this.tiles.map((tile) => tile.element));
  }

  // Takes /api/history. Shown with the first status.
  remember(history) { this.history = history; }

  show(status, last) {
    if (this.history) {
      const times = list(this.history.at_ns).map(secondsOf);
      for (const tile of this.tiles)
        if (tile.row.past) tile.row.past(this.history, status).forEach((value, i) => tile.add(times[i], value));
      this.history = null;
    }
    for (const tile of this.tiles) tile.show(status, last);
  }
}
