// SPDX-License-Identifier: Apache-2.0
// Signals: a card for each that has a threshold; the others in a table.

const kLongestForecast = 600;  // seconds: a later forecast is not shown

function thresholdText(signal, each) {
  const grace = each.kind === "soft" ? ` for ${duration(each.grace_seconds)}` : "";
  const parts = [`${each.kind} ${amount(signal, each.limit)}${grace}:`];
  if (!isNumber(each.available) || !isNumber(each.limit)) return parts.concat("not known").join(" ");
  const margin = each.available - each.limit;
  parts.push(`${amount(signal, Math.abs(margin))} ${margin < 0 ? "below" : "above"}`);
  if (each.met) parts.push("– met");
  else if (isNumber(each.below_for_seconds)) parts.push(`– for ${duration(each.below_for_seconds)} now`);
  else if (isNumber(each.forecast_seconds) && each.forecast_seconds < kLongestForecast) parts.push(`– reached in ${duration(each.forecast_seconds)}`);
  return parts.join(" ");
}

class SignalCard {
  constructor(signal) {
    this.signal = signal;
    this.past = new Past(kLongPast);
    this.chart = new Chart(signal, (value) => amount(signal, value));
    this.whatIf = new WhatIf(signal, () => this.draw());
    this.value = make("span", {class: "big"});
    this.rows = make("tbody");
    this.readings = make("details", {}, make("summary", {}, "Readings as a table", make("span", {class: "unseen"}, ` of ${signal}`)),
      make("table", {}, make("thead", {}, make("tr", {}, make("th", {scope: "col"}, "Ago"),
        make("th", {scope: "col", class: "num"}, "Available"))), this.rows));
    this.readings.addEventListener("toggle", () => this.showReadings());
    const list = make("ul", {class: "thresholds"});
    this.thresholds = new Keyed(list, () => ({element: make("li")}), (row, each) => {
      setClass(row.element, `${each.kind === "soft" ? "soft" : "hard"}${each.met ? " met" : ""}`);
      setText(row.element, thresholdText(this.signal, each));
    });
    this.element = make("figure", {class: "card"},
      make("figcaption", {}, make("h3", {}, signal), this.value), this.chart.element, list, this.whatIf.element, this.readings);
  }

  // Adds the signal's history. Called before the first show().
  remember(times, values) {
    times.forEach((at, i) => this.past.add(at, values[i]));
  }

  show(seen, thresholds, evictedAt, time) {
    if (seen) this.past.add(secondsOf(seen.at_ns), seen.available);
    setText(this.value, seen ? `${amount(this.signal, seen.available)} of ${amount(this.signal, seen.capacity)}` : "not known");
    this.drawn = {thresholds, evictedAt, time};
    this.whatIf.show(this.past, thresholds, seen);
    this.draw();
    this.thresholds.show(thresholds, (each) => `${each.kind} ${each.grace_seconds}`);
    this.showReadings();
  }

  draw() {
    const {thresholds, evictedAt, time} = this.drawn;
    this.chart.show(this.past, [...thresholds, ...this.whatIf.limits()], evictedAt, time, isBinary(this.signal));
  }

  showReadings() {
    if (!this.readings.open) return;
    const readings = this.past.every(15);
    while (this.rows.childElementCount < readings.length)
      this.rows.append(make("tr", {}, make("th", {scope: "row"}), make("td", {class: "num"})));
    while (this.rows.childElementCount > readings.length) this.rows.lastElementChild.remove();
    readings.forEach(([ago, value], i) => {
      setText(this.rows.children[i].firstElementChild, i === 0 ? "now" : duration(Math.round(ago)));
      setText(this.rows.children[i].lastElementChild, amount(this.signal, value));
    });
  }
}

class Signals {
  constructor() {
    this.history = {times: [], signals: {}};
    this.cards = new Keyed(byId("signals"), ({signal}) => this.newCard(signal),
      (card, {seen, thresholds}) => card.show(seen, thresholds, this.evictedAt, this.time));
    this.others = new Keyed(byId("others-rows"), () => rowOf(["signal", "available", "capacity"], {available: "num", capacity: "num"}),
      ({cells}, each) => {
        setText(cells.signal, each.signal);
        setText(cells.available, amount(each.signal, each.available));
        setText(cells.capacity, amount(each.signal, each.capacity));
      });
  }

  newCard(signal) {
    const card = new SignalCard(signal);
    card.remember(this.history.times, list(this.history.signals[signal]));
    return card;
  }

  // Takes /api/history. Called before the first show().
  remember(history) {
    this.history = {times: list(history.at_ns).map(secondsOf), signals: table(history.signals)};
    if (this.history.times.length) this.began = this.history.times[0];
  }

  show(status, evictedAt) {
    const now = secondsOf(status.at_ns);
    if (!(this.began <= now)) this.began = now;  // the first update, or the node was rebooted
    this.time = {now, span: spanSince(now - this.began)};
    this.evictedAt = evictedAt;
    const seen = new Map(list(status.signals).map((each) => [each.signal, each]));
    const watched = new Map();
    for (const each of list(status.thresholds)) {
      if (!watched.has(each.signal)) watched.set(each.signal, []);
      watched.get(each.signal).push(each);
    }
    this.cards.show([...watched].map(([signal, thresholds]) => ({signal, thresholds, seen: seen.get(signal)})), (each) => each.signal);
    const others = [...seen.values()].filter((each) => !watched.has(each.signal));
    this.others.show(others, (each) => each.signal);
    setHidden(byId("others"), others.length === 0);
  }
}
