// SPDX-License-Identifier: Apache-2.0
// One pod: its last minutes, its waits by cause, its place in the ranking, its records.

function ordinal(n) {
  const teen = n % 100 >= 11 && n % 100 <= 13;
  return `${n}${teen ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th"}`;
}

function placeText(pod, count) {
  if (isNumber(pod.eviction_order)) return `It would be evicted ${ordinal(pod.eviction_order)} of ${many(count, "pod")} if memory.available fell below its threshold now.`;
  if (pod.state === "critical") return "It is never evicted: static, mirror or of critical priority.";
  if (/running|empty|unknown/.test(pod.state)) return "It is not in the ranking: it has no process, or no reading.";
  return `It is being evicted: ${state(pod)}.`;
}

class PodDetail {
  constructor() {
    this.dialog = byId("pod");
    this.memory = new Chart("memory of the pod", (value) => bytes(value));
    this.cpu = new Chart("CPUs of the pod", (value) => value.toFixed(2));
    byId("pod-memory").append(this.memory.element);
    byId("pod-cpu").append(this.cpu.element);
    this.facts = new Keyed(byId("pod-facts"), ([name]) => {
      const value = make("dd");
      return {element: make("div", {}, make("dt", {}, name), value), value};
    }, (row, [, value]) => setText(row.value, value));
    this.waits = new Keyed(byId("pod-waits"), () => rowOf(["cause", "all", "waits", "slow"], {all: "num", waits: "num", slow: "num"}), ({cells}, [cause, waits]) => {
      setText(cells.cause, cause);
      setText(cells.all, nanoseconds(waits.ns));
      setText(cells.waits, number(waits.count));
      setText(cells.slow, nanoseconds(waits.p99_ns));
    });
    this.records = new Keyed(byId("pod-records"), (record) => evictionItem(record), () => {});
    byId("pod-close").addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => { this.key = null; });
  }

  open(pod, status, history) {
    this.key = podKey(pod);
    this.pod = pod;
    this.show(status, history);
    this.dialog.showModal();
  }

  setRecords(records) { this.all = records; }

  show(status, history) {
    if (!this.key) return;
    const now = list(status.pods).find((pod) => podKey(pod) === this.key);
    if (now) this.pod = now;
    const {pod} = this, rates = history.rates(pod);
    setText(byId("pod-name"), podName(pod));
    setText(byId("pod-place"), now ? placeText(pod, podCount(status)) : "It is not among the pods that headroomd lists now.");
    this.facts.show([["uid", String(pod.uid)], ["QoS class", pod.qos || "unknown"], ...kPodColumns.filter((each) => each.text && each.name !== "pod")
      .map((each) => [each.title, each.text(pod, rates)]), ["Swap", bytes(pod.swap)], ["Tasks", number(pod.tasks)], ["OOM kills", number(pod.oom_kills)]], ([name]) => name);
    this.draw(pod, history.of(pod), status);
    const waits = Object.entries(table(pod.stalls));
    if (pod.throttle_waits) waits.push(["throttled", pod.throttle_waits]);
    this.waits.show(waits.map(([cause, each]) => [cause, table(each)]), ([cause]) => cause);
    setHidden(byId("pod-waits-table"), !waits.length);
    setText(byId("pod-waits-note"), waits.length ? "Since headroomd started." : pod.stalls ? "It has not waited for memory or for a CPU quota." : "It is unknown whether it has waited for memory.");
    const mine = list(this.all).filter((record) => table(record.pod).uid === pod.uid || podName(record.pod) === podName(pod));
    this.records.show(mine, evictionKey);
    setText(byId("pod-records-note"), mine.length ? "" : "No record of an eviction among the latest.");
  }

  draw(pod, past, status) {
    if (!past) return;
    const began = past.memory.times[0], at = secondsOf(status.pods_at_ns);
    if (!isNumber(began) || !isNumber(at)) return;
    const [back, , ...rest] = spanSince(Math.min(kPast, at - began));
    this.time = this.time && this.time.span[0] === back ? {now: at, span: this.time.span} : {now: at, span: [back, 0, rest[0], "", rest[2]]};
    const limits = [["request", pod.request], ["limit", pod.limit]].filter(([, limit]) => limit > 0).map(([kind, limit]) => ({kind, limit}));
    this.memory.show(past.memory, limits.filter((each) => each.limit <= 4 * Math.max(past.memory.most(), 1)), [], this.time, true);
    this.cpu.show(past.cpu.past, [], [], this.time, false);
  }
}
