// SPDX-License-Identifier: Apache-2.0
// The head of the page: the state of the node in one sentence, and a few facts.

const kNear = 120;  // seconds; a forecast farther ahead is only a trend

// Adds what the worst state does not say: other conditions that are held, programs that are not loaded, the mode,
// the last eviction.
function sentenceOf(status, sentence, lastEviction) {
  const held = heldConditions(status).filter((each) => !sentence.includes(each));
  const missing = unloadedPrograms(status).filter((each) => !sentence.includes(each));
  return [sentence, held.length ? `${held.join(", ")} ${held.length > 1 ? "are" : "is"} reported.` : "",
    missing.length ? `${many(missing.length, "BPF program")} could not be loaded: ${missing.join(", ")}.` : "",
    status.mode === "observe" ? "headroomd only observes: it evicts nothing." : `Mode ${status.mode}.`,
    lastEviction ? `Last eviction: ${lastEviction}.` : ""].filter(Boolean).join(" ");
}

const heldConditions = (status) => Object.entries(table(status.conditions)).filter(([, value]) => value).map(([each]) => each);
const unloadedPrograms = (status) => Object.entries(table(status.programs)).filter(([, each]) => table(each).loaded === false).map(([each]) => each);

// The worst current state, otherwise the nearest forecast: [class, sentence].
function verdictOf(status) {
  const leaving = list(status.pods).filter((pod) => /terminating|killed|timed_out|pre_stop|removing/.test(pod.state));
  if (leaving.length) return ["now", `Evicting ${leaving.map(podName).slice(0, 3).join(", ")}${leaving.length > 3 ? " and more" : ""}.`];
  const thresholds = list(status.thresholds);
  const name = (each) => `${each.signal} ${each.kind}`;
  const met = thresholds.find((each) => each.met);
  if (met) return ["now", `${name(met)} threshold is met: ${amount(met.signal, met.available)} left, threshold ${amount(met.signal, met.limit)}.`];
  const below = thresholds.find((each) => isNumber(each.below_for_seconds));
  if (below) return ["near", `${name(below)} threshold has been crossed for ${duration(below.below_for_seconds)}, grace period ${duration(below.grace_seconds)}.`];
  const ahead = thresholds.filter((each) => isNumber(each.forecast_seconds) && each.forecast_seconds <= kNear).sort((a, b) => a.forecast_seconds - b.forecast_seconds)[0];
  if (ahead) return ["near", `${name(ahead)} threshold will be reached in ${duration(ahead.forecast_seconds)} if the trend continues.`];
  const held = heldConditions(status);
  if (held.length) return ["near", `No threshold is crossed now, but ${held.join(", ")} ${held.length > 1 ? "are" : "is"} still reported.`];
  const unloaded = unloadedPrograms(status);
  if (unloaded.length) return ["near", `No threshold is crossed, but ${many(unloaded.length, "BPF program")} could not be loaded: ${unloaded.join(", ")}.`];
  const known = thresholds.filter((each) => isNumber(each.available) && isNumber(each.limit));
  if (!known.length) return ["", "No signal with a threshold is known."];
  const near = known.reduce((a, b) => (a.available - a.limit) / (a.limit || 1) < (b.available - b.limit) / (b.limit || 1) ? a : b);
  return ["calm", `No threshold is crossed. The nearest threshold is ${name(near)}: ${amount(near.signal, near.available - near.limit)} above it.`];
}

// Anonymous and shared memory, by where it is; "" on a node without swap.
function locationOf(swap) {
  if (!isNumber(table(swap).resident)) return "";
  return `${bytes(swap.resident)} resident (${bytes(swap.cold)} cold), ${bytes(swap.compressed)} compressed in ${bytes(swap.compressed_size)}, ${bytes(swap.on_disk)} on disk`;
}

function factsOf(status, lastEviction) {
  const counters = table(status.counters), kills = table(counters.kernel_oom_kills), on = heldConditions(status);
  return [
    ["mode", status.mode],
    ["conditions", on.join(", ") || "none"],
    ["taints", list(status.taints).map((each) => each.taint).join(", ")],
    ["evicted by a taint", list(status.taint_evictions).map((each) => `${podName(each)} in ${duration(Math.max(0, each.seconds))}`).join(", ")],
    ["pods", number(podCount(status))],
    ["cgroups", number(status.cgroups)],
    ["evicted", number(counters.evicted)],
    ["last eviction", lastEviction],
    ["would evict", counters.would_evict ? number(counters.would_evict) : ""],
    ["failed", counters.failed ? number(counters.failed) : ""],
    ["memory returned", bytes(counters.memory_returned)],
    ["memory of processes", locationOf(status.swap)],
    ["kernel OOM kills", number((kills.limit || 0) + (kills.pods || 0) + (kills.node || 0))],
  ].filter(([, value]) => value !== "" && value !== undefined);
}

class Head {
  constructor() {
    this.facts = new Keyed(byId("facts"), ([name]) => {
      const value = make("dd");
      return {element: make("div", {}, make("dt", {}, name), value), value};
    }, (row, [, value]) => setText(row.value, value));
  }

  show(status, lastEviction) {
    const node = table(status.node).name || "";
    setText(byId("node"), node);
    setText(document.querySelector("title"), node ? `${node} – headroom` : "headroom");
    const [kind, sentence] = verdictOf(status);
    setClass(byId("verdict"), `verdict ${kind}`);
    setText(byId("verdict"), sentenceOf(status, sentence, lastEviction));
    this.facts.show(factsOf(status, lastEviction), ([name]) => name);
    const self = table(status.process);
    setText(byId("cost"), `headroomd ${status.version}: ${duration(Math.round(self.cpu_seconds * 10) / 10)} of CPU since its start, ${bytes(self.resident_bytes)} resident.`);
  }
}
