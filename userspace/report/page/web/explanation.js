// SPDX-License-Identifier: Apache-2.0
// Explanation of one audit record, as headroomctl why prints it.

const kOutcomeText = {
  evicted: "was evicted", timed_out: "was to be evicted and still has processes",
  already_gone: "was gone before it could be evicted", failed: "could not be evicted",
  would_evict: "would have been evicted (mode: observe)",
};

// Pairs of instants of the record; a pair is shown if both are known.
const kSteps = [
  ["last_clear", "first_crossed", "the threshold is crossed, somewhere in between"],
  ["first_crossed", "sampled", "it stays crossed until its grace is over"],
  ["sampled", "decided", "the reading is judged, the pods are ranked"],
  ["decided", "terminated", "SIGTERM is sent"],
  ["terminated", "killed", "grace, then SIGKILL"],
  ["decided", "killed", "SIGKILL is sent"],
  ["killed", "ended", "the kernel takes the processes down"],
  ["terminated", "ended", "the processes end"],
];

function whyText(record) {
  const {signal} = record, latency = table(record.latency);
  if (record.taint) return `The node is tainted ${record.taint} and the pod does not tolerate it, or no longer.`;
  if (record.kind === "limit")
    return `It used more of its local storage than its limit of ${bytes(record.threshold)} (${signal}).`;
  const crossed = isNumber(latency.crossing_to_decision_ms)
    ? `It was last seen above it ${milliseconds(latency.crossing_to_decision_ms)} before the decision and first seen below ${milliseconds(latency.first_seen_to_decision_ms)} before it.`
    : `It was first seen below ${milliseconds(latency.first_seen_to_decision_ms)} before the decision, and never above since headroomd started.`;
  return `${signal} was ${amount(signal, record.available)} of ${amount(signal, record.capacity)}, below its ${record.kind} threshold of ${amount(signal, record.threshold)}. ${crossed}`;
}

function freshText(record) {
  const sampled = table(record.latency).sample_to_decision_ms;
  if (!isNumber(sampled)) return "";
  const ages = list(record.ranking).map((each) => each.age_ms).filter(isNumber);
  const oldest = Math.max(0, ...ages);
  const usage = ages.length ? (oldest > 0 ? `, the pods' usage up to ${milliseconds(oldest)} before it` : ", the pods' usage on the pass that was judged") : "";
  return `${record.signal} was read ${milliseconds(sampled)} before the decision${usage}.`;
}

// The first key on which an outranked pod differs from the chosen one.
function difference(record, each, chosen) {
  const byRequest = record.signal !== "pid.available", known = isNumber(each.over_request) && isNumber(chosen.over_request);
  if (byRequest && known && each.over_request <= 0 && chosen.over_request > 0) return "within its request";
  if (each.priority !== chosen.priority) return `priority ${each.priority} is higher than ${chosen.priority}`;
  if (!known) return "its usage is not known";
  if (each.over_request === chosen.over_request) return "equal to the chosen one, known later";
  if (!byRequest) return "fewer tasks than the chosen one";
  return each.over_request > 0 ? "less over its request than the chosen one" : "further under its request than the chosen one";
}

function becauseText(record, each) {
  const chosen = list(record.ranking).find((one) => one.selection === "chosen");
  switch (each.selection) {
    case "chosen": return "first of the pods that may be evicted";
    case "outranked": return chosen ? difference(record, each, chosen) : "others suffice";
    case "critical": return "static, mirror or of critical priority: never evicted";
    case "terminating": return "already on its way out";
    case "empty": return "no process left in it";
    case "unknown": return "no reading: passed over while others have one";
  }
  return "";
}

function stepsOf(record) {
  const at = table(record.instants_ns);
  const steps = [];
  for (const [from, to, says] of kSteps) {
    if (!isNumber(at[from]) || !isNumber(at[to])) continue;
    if (from === "decided" && to === "killed" && isNumber(at.terminated)) continue;
    if (from === "terminated" && to === "ended" && isNumber(at.killed)) continue;
    if (from === "first_crossed" && at[from] >= at[to]) continue;  // found in the pass that read the sample
    steps.push(make("dt", {}, nanoseconds(at[to] - at[from])), make("dd", {}, says));
  }
  return steps;
}

function memoryText(record) {
  const predicted = table(record.predicted), took = table(record.latency).signal_to_exit_ms;
  if (!isNumber(predicted.memory)) return "";
  const within = isNumber(predicted.within_ms) ? `within ${milliseconds(predicted.within_ms)}` : `after a grace of at most ${milliseconds(predicted.grace_ms)}`;
  const came = isNumber(record.memory_returned) ? ` ${bytes(record.memory_returned)} came${isNumber(took) ? ` in ${milliseconds(took)}` : ""}.` : "";
  return `${bytes(predicted.memory)} of memory was expected ${within}.${came}`;
}

function rankingTable(record) {
  const body = make("tbody");
  list(record.ranking).forEach((each, i) => {
    const row = make("tr", each.selection === "chosen" ? {class: "chosen"} : {},
      make("td", {class: "num"}, String(i + 1)), make("th", {scope: "row"}, podName(each)),
      make("td", {}, String(each.selection)), make("td", {class: "because"}, becauseText(record, each)),
      make("td", {class: "num"}, used(record.signal, each.usage)), make("td", {class: "num"}, used(record.signal, each.request)),
      make("td", {class: "num"}, number(each.priority)), make("td", {class: "num"}, milliseconds(each.age_ms)));
    body.append(row);
  });
  const head = make("tr");
  for (const title of ["#", "Pod", "Result", "Reason", "Usage", "Request", "Priority", "Age of usage"])
    head.append(make("th", {scope: "col", ...(/#|Usage|Request|Priority|Age/.test(title) && {class: "num"})}, title));
  return make("div", {class: "scroll", role: "group", "aria-label": `Ranking for ${podName(record.pod)}`, tabindex: "0"},
    make("table", {}, make("thead", {}, head), body));
}

function proofOf(record) {
  const proof = make("div", {class: "proof"});
  const part = (title, ...content) => proof.append(make("h3", {}, title), ...content);
  part("Why", make("p", {}, whyText(record)));
  if (freshText(record)) part("Age of the readings", make("p", {}, freshText(record)));
  if (list(record.ranking).length) part("Ranking", rankingTable(record));
  const steps = stepsOf(record);
  if (steps.length) part("Steps", make("dl", {class: "steps"}, ...steps));
  if (memoryText(record)) part("Memory", make("p", {}, memoryText(record)));
  if (record.error) part("Error", make("p", {class: "bad"}, String(record.error)));
  if (record.message) part("Message on the pod", make("p", {}, String(record.message)));
  const raw = make("details", {}, make("summary", {}, "The record as it is"));
  raw.addEventListener("toggle", () => {
    if (raw.open && raw.childElementCount === 1)
      raw.append(make("pre", {tabindex: "0", role: "group", "aria-label": "The audit record as JSON"}, JSON.stringify(record, null, 1)));
  });
  proof.append(raw);
  return proof;
}
