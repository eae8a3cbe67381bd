// SPDX-License-Identifier: Apache-2.0
// Past: the values of a quantity over the last minutes, by the node's clock: all readings of the last
// two minutes, and one per ten seconds before that.

const kPast = 300, kLongPast = 1800;  // seconds
const kFine = 120, kCoarse = 10;      // seconds: readings older than kFine are kept kCoarse apart
const kReboot = 60;  // seconds: a clock that goes back further is that of another boot
const kGap = 15;    // a longer time between two readings is a gap in the line

class Past {
  constructor(length = kPast) {
    this.length = length;
    this.times = [];  // seconds since boot
    this.values = [];
  }

  add(at, value) {
    const last = this.times.length - 1;
    if (!isNumber(at) || !isNumber(value) || at === this.times[last]) return;
    if (at < this.times[last] - kReboot) this.clear();
    else if (at < this.times[last]) return;  // older than the latest value
    this.times.push(at);
    this.values.push(value);
    this.thin(at - kFine);
    let old = 0;
    while (this.times[old] < at - this.length - kGap) ++old;
    if (old > 0) {
      this.times.splice(0, old);
      this.values.splice(0, old);
      this.thinned = Math.max(1, this.thinned - old);
    }
  }

  // Drops old readings that are less than kCoarse after the one before.
  thin(until) {
    let i = this.thinned || 1;
    for (; i < this.times.length - 1 && this.times[i] < until; ++i)
      if (this.times[i] - this.times[i - 1] < kCoarse) {
        this.times.splice(i, 1);
        this.values.splice(i--, 1);
      }
    this.thinned = Math.max(1, i);
  }

  // The index of the reading nearest to this time; -1: there is none.
  nearest(at) {
    if (!this.times.length) return -1;
    let low = 0, high = this.times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low > 0 && at - this.times[low - 1] < this.times[low] - at ? low - 1 : low;
  }

  clear() {
    this.thinned = 1;
    this.times.length = this.values.length = 0;
  }

  most() {
    return this.values.reduce((most, value) => Math.max(most, value), 0);
  }

  // The values as an SVG path: x() maps seconds since boot, y() maps a value.
  path(x, y) {
    let path = "", before = -Infinity;
    this.times.forEach((at, i) => {
      path += `${at - before > kGap ? "M" : "L"}${x(at).toFixed(1)} ${y(this.values[i]).toFixed(1)}`;
      before = at;
    });
    return path;
  }

  // [seconds ago, value] about every `step` seconds, the latest first.
  every(step) {
    const picked = [];
    const now = this.times[this.times.length - 1];
    for (let i = this.times.length - 1, due = 0; i >= 0; --i)
      if (now - this.times[i] >= due) {
        picked.push([now - this.times[i], this.values[i]]);
        due += step;
      }
    return picked;
  }
}

// The growth of a counter per second.
class Rate {
  constructor(length = kPast) {
    this.past = new Past(length);
    this.now = null;
  }

  add(at, total) {
    if (isNumber(at) && isNumber(total)) {
      if (isNumber(this.total) && at > this.at) {
        const grown = total - this.total;  // negative: the counter was restarted
        this.now = grown < 0 ? null : grown / (at - this.at);
        if (this.now !== null) this.past.add(at, this.now);
      }
      if (at !== this.at) Object.assign(this, {at, total});
    } else {
      this.now = null;
    }
    return this.now;
  }
}
