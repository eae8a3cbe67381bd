// SPDX-License-Identifier: Apache-2.0
// Chart: one signal over the last minutes, its thresholds and the forecast. The browser scales a box
// of fixed units, so the code never measures a size.

const kHigh = 100;  // in x, a unit is a second
// Seconds back and ahead: the values so far fill the chart, up to half an hour.
const kSpans = [[60, 30, "1 min ago", "+30 s"], [120, 40, "2 min ago", "+40 s"], [kPast, 60, "5 min ago", "+1 min"],
  [600, 120, "10 min ago", "+2 min"], [kLongPast, 300, "30 min ago", "+5 min"]];
const spanSince = (seconds) => kSpans.find(([back]) => seconds <= back) || kSpans[kSpans.length - 1];

class Chart {
  constructor(name) {
    this.svg = drawn("svg", {preserveAspectRatio: "none", role: "img",
      "aria-label": `${name} over the last minutes against its thresholds, with the forecast; the list and the table below have the same data`});
    this.thresholds = drawn("g");
    this.marks = drawn("g");
    this.now = drawn("line", {class: "now", y1: 0, y2: kHigh});
    this.past = drawn("path", {class: "past"});
    this.forecast = drawn("path", {class: "forecast"});
    this.svg.append(this.thresholds, this.now, this.marks, this.past, this.forecast);
    this.top = make("span", {class: "top"});
    this.zero = make("span", {class: "zero"}, "now");
    this.ago = make("span", {class: "ago"});
    this.ahead = make("span", {class: "ahead"});
    this.element = make("div", {class: "plot"}, this.svg, this.top, this.ago, this.zero, this.ahead);
    this.lines = [];
  }

  show(signal, past, thresholds, evictedAt, {now, span}) {
    this.stretch(span);
    const limits = thresholds.filter((each) => isNumber(each.limit));
    const highest = Math.max(past.most(), ...limits.map((each) => each.limit * 1.5), 1) * 1.05;
    const x = (at) => span[0] + at - now;
    const y = (value) => kHigh * (1 - value / highest);
    setText(this.top, amount(signal, Math.round(highest)));
    setAttribute(this.past, "d", past.path(x, y));
    this.showThresholds(limits, y, span[0] + span[1]);
    this.showForecast(limits, past, y, span);
    this.showMarks(evictedAt.map(x).filter((place) => place >= 0 && place <= span[0]));
  }

  stretch(span) {
    if (this.span === span) return;
    this.span = span;
    const [back, ahead, backText, aheadText] = span;
    setAttribute(this.svg, "viewBox", `0 0 ${back + ahead} ${kHigh}`);
    setAttribute(this.now, "x1", String(back));
    setAttribute(this.now, "x2", String(back));
    setText(this.ago, backText);
    setText(this.ahead, aheadText);
    this.zero.style.right = `${ahead / (back + ahead) * 100}%`;
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
      const kind = each.kind === "soft" ? "soft" : "hard", at = y(each.limit).toFixed(1);
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

  showMarks(places) {
    while (this.marks.childElementCount < places.length)
      this.marks.append(drawn("line", {class: "mark", y1: 0, y2: kHigh}));
    while (this.marks.childElementCount > places.length) this.marks.lastElementChild.remove();
    places.forEach((place, i) => {
      setAttribute(this.marks.children[i], "x1", place.toFixed(1));
      setAttribute(this.marks.children[i], "x2", place.toFixed(1));
    });
  }
}
