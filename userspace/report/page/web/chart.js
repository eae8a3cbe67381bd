// SPDX-License-Identifier: Apache-2.0
// Chart: one quantity over the last minutes, its limits and the forecast, with a cursor that reads a value: by
// the pointer, or by the arrow keys. The browser scales a box of fixed units, so drawing never measures a size.

const kHigh = 100;  // in x, a unit is a second
// Seconds back and ahead: the values so far fill the chart, up to half an hour; and seconds between two ticks.
const kSpans = [[60, 30, "1 min ago", "+30 s", 15], [120, 40, "2 min ago", "+40 s", 30], [kPast, 60, "5 min ago", "+1 min", 60],
  [600, 120, "10 min ago", "+2 min", 120], [kLongPast, 300, "30 min ago", "+5 min", 300]];
const spanSince = (seconds) => kSpans.find(([back]) => seconds <= back) || kSpans[kSpans.length - 1];
const shortTime = (seconds) => seconds < 60 ? `${seconds}s` : `${seconds / 60}m`;

class Chart {
  // `text` writes a value.
  constructor(name, text) {
    this.text = text;
    this.svg = drawn("svg", {preserveAspectRatio: "none", "aria-hidden": "true"});
    this.grid = drawn("g");
    this.thresholds = drawn("g");
    this.marks = drawn("g");
    this.now = drawn("line", {class: "now", y1: 0, y2: kHigh});
    this.past = drawn("path", {class: "past"});
    this.forecast = drawn("path", {class: "forecast"});
    this.cursor = drawn("line", {class: "cursor", y1: 0, y2: kHigh, visibility: "hidden"});
    this.svg.append(this.grid, this.thresholds, this.now, this.marks, this.past, this.forecast, this.cursor);
    this.top = make("span", {class: "top"});
    this.zero = make("span", {class: "zero"}, "now");
    this.ago = make("span", {class: "ago"});
    this.ahead = make("span", {class: "ahead"});
    this.reading = make("span", {class: "reading"});
    this.element = make("div", {class: "plot", tabindex: "0", role: "slider", "aria-valuenow": "0", "aria-valuemin": "0", "aria-valuemax": "0",
      "aria-label": `Chart of ${name}: the arrow keys read its values; the list and the table below have the same data`},
    this.svg, this.top, this.ago, this.zero, this.ahead, this.reading);
    this.values = new TickLabels(this.element, "tick-y", "bottom");
    this.times = new TickLabels(this.element, "tick-x", "left");
    this.lines = [];
    this.listen();
  }

  show(past, thresholds, evictedAt, {now, span}, binary) {
    Object.assign(this, {shown: past, at: now});
    this.stretch(span);
    const limits = thresholds.filter((each) => isNumber(each.limit));
    const highest = Math.max(past.most(), ...limits.map((each) => each.limit * 1.5), 1) * 1.05;
    const x = (at) => span[0] + at - now;
    const y = (value) => kHigh * (1 - value / highest);
    setText(this.top, this.text(Math.round(highest)));
    setAttribute(this.past, "d", past.path(x, y));
    this.showTicks(highest, binary, y, span);
    this.showThresholds(limits, y, span[0] + span[1]);
    this.showForecast(limits, past, y, span);
    setLines(this.marks, evictedAt.map(x).filter((place) => place >= 0 && place <= span[0])
      .map((place) => ({x1: place.toFixed(1), x2: place.toFixed(1)})), {class: "mark", y1: 0, y2: kHigh});
    this.showCursor();
  }

  stretch(span) {
    if (this.span === span) return;
    this.span = span;
    const [back, ahead, backText, aheadText, step] = span;
    setAttribute(this.svg, "viewBox", `0 0 ${back + ahead} ${kHigh}`);
    setAttribute(this.now, "x1", String(back));
    setAttribute(this.now, "x2", String(back));
    setText(this.ago, backText);
    setText(this.ahead, aheadText);
    this.zero.style.right = `${ahead / (back + ahead) * 100}%`;
    const steps = Array.from({length: Math.ceil(back / step) - 1}, (_, i) => (i + 1) * step);
    // The first and the last would run into the texts at both ends.
    this.times.place(steps.slice(1, -1).map((ago) => ({text: shortTime(ago), at: 100 * (back - ago) / (back + ahead)})));
    this.columns = steps.map((ago) => ({x1: String(back - ago), x2: String(back - ago), y1: String(kHigh - 4), y2: String(kHigh)}));
    for (const [name, value] of [["aria-valuemin", String(-back)], ["aria-valuemax", "0"], ["aria-valuenow", "0"]]) setAttribute(this.element, name, value);
  }

  showTicks(highest, binary, y, [back, ahead]) {
    const ticks = ticksOf(highest, binary).filter((value) => value < highest * 0.92);
    this.values.place(ticks.map((value) => ({text: this.text(value), at: 100 * value / highest})));
    const rows = ticks.map((value) => ({x1: "0", x2: String(back + ahead), y1: y(value).toFixed(1), y2: y(value).toFixed(1)}));
    setLines(this.grid, [...rows, ...this.columns], {class: "grid"});
  }

  showThresholds(limits, y, wide) {
    while (this.lines.length < limits.length) {
      const pair = {ground: drawn("rect", {x: 0}), line: drawn("line", {x1: 0})};
      this.thresholds.append(pair.ground, pair.line);
      this.lines.push(pair);
    }
    while (this.lines.length > limits.length) {
      const pair = this.lines.pop();
      pair.ground.remove();
      pair.line.remove();
    }
    limits.forEach((each, i) => {
      const kind = kLimitKinds.has(each.kind) ? each.kind : "hard", at = y(each.limit).toFixed(1);
      const {ground, line} = this.lines[i];
      setAttribute(ground, "class", `${kind}-ground`);
      setAttribute(ground, "width", String(wide));
      setAttribute(line, "x2", String(wide));
      setAttribute(ground, "y", at);
      setAttribute(ground, "height", (kHigh - at).toFixed(1));
      setAttribute(line, "class", kind);
      setAttribute(line, "y1", at);
      setAttribute(line, "y2", at);
    });
  }

  // Draws the forecast up to the threshold that is reached last, clipped to the chart.
  showForecast(limits, past, y, [back, space]) {
    const from = past.values[past.values.length - 1];
    const ahead = limits.filter((each) => isNumber(each.forecast_seconds) && each.forecast_seconds > 0);
    if (!ahead.length || !isNumber(from)) return setAttribute(this.forecast, "d", "");
    const last = ahead.reduce((a, b) => a.forecast_seconds > b.forecast_seconds ? a : b);
    const share = Math.min(1, space / last.forecast_seconds);
    const to = from + (last.limit - from) * share;
    setAttribute(this.forecast, "d", `M${back} ${y(from).toFixed(1)}L${
      (back + last.forecast_seconds * share).toFixed(1)} ${y(to).toFixed(1)}`);
  }

  listen() {
    const move = (at) => {
      this.cursorAt = at;
      this.showCursor();
    };
    this.element.addEventListener("pointermove", (event) => {
      if (!this.span) return;
      const box = this.element.getBoundingClientRect();
      move(this.at - this.span[0] + (event.clientX - box.left) / box.width * (this.span[0] + this.span[1]));
    });
    this.element.addEventListener("pointerleave", () => move(undefined));
    this.element.addEventListener("blur", () => move(undefined));
    this.element.addEventListener("keydown", (event) => {
      if (!this.span || !this.shown.times.length) return;
      const step = this.span[0] / 60, from = this.cursorAt ?? this.at;
      const to = {ArrowLeft: from - step, ArrowDown: from - step, ArrowRight: from + step, ArrowUp: from + step, PageUp: from - 10 * step,
        PageDown: from + 10 * step, Home: this.at - this.span[0], End: this.at}[event.key];
      if (event.key === "Escape") return move(undefined);
      if (to === undefined) return;
      event.preventDefault();
      move(Math.min(this.at, Math.max(this.at - this.span[0], to)));
    });
  }

  showCursor() {
    const i = this.cursorAt === undefined ? -1 : this.shown.nearest(this.cursorAt);
    setAttribute(this.cursor, "visibility", i < 0 ? "hidden" : "visible");
    setHidden(this.reading, i < 0);
    if (i < 0) return;
    const ago = this.at - this.shown.times[i], x = (this.span[0] - ago).toFixed(1);
    setAttribute(this.cursor, "x1", x);
    setAttribute(this.cursor, "x2", x);
    const text = `${this.text(this.shown.values[i])}, ${ago < 1 ? "now" : `${duration(Math.round(ago))} ago`}`;
    setText(this.reading, text);
    setAttribute(this.element, "aria-valuenow", String(-Math.round(ago)));
    setAttribute(this.element, "aria-valuetext", text);
  }
}

const kLimitKinds = new Set(["hard", "soft", "request", "limit", "whatif"]);

// A small chart without axes: `past` over `length` seconds up to `now`.
class Spark {
  constructor(length, label) {
    this.length = length;
    this.path = drawn("path");
    this.element = drawn("svg", {class: "spark", viewBox: `0 0 ${length} 20`, preserveAspectRatio: "none",
      ...(label ? {role: "img", "aria-label": label} : {"aria-hidden": "true"})}, this.path);
  }

  show(past, now, length = this.length) {
    const most = past.most() || 1;
    setAttribute(this.element, "viewBox", `0 0 ${length} 20`);
    setAttribute(this.path, "d", past.path((then) => length + then - now, (value) => 19 - 18 * value / most));
  }
}
