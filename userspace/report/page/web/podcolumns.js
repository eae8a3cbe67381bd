// SPDX-License-Identifier: Apache-2.0
// The columns of pods, and the rates that some of them show. A new column is a row of kPodColumns.

const state = (pod) => String(pod.state).replace("_", " ");
const perMille = (rate) => isNumber(rate) ? rate.toFixed(rate < 10 ? 1 : 0) : "–";

// `value`: sorted by it, the highest first and unknown values last; without it by the text.
const kPodColumns = [
  {name: "pod", title: "Pod", text: podName},
  {name: "bar", title: "Memory"},
  {name: "over", title: "Above request", value: (pod) => pod.over_request, text: (pod) => bytes(pod.over_request)},
  {name: "held", title: "Usage", value: (pod) => pod.working_set, text: (pod) => bytes(pod.working_set)},
  {name: "request", title: "Request", value: (pod) => pod.request, text: (pod) => bytes(pod.request)},
  {name: "limit", title: "Limit", value: (pod) => pod.limit, text: (pod) => isNumber(pod.limit) ? bytes(pod.limit) : "none"},
  {name: "cpus", title: "CPUs", value: (pod, rates) => rates.cpus, text: (pod, rates) => isNumber(rates.cpus) ? rates.cpus.toFixed(2) : "–"},
  {name: "waits", title: "Memory waits, ms/s", value: (pod, rates) => rates.waits, text: (pod, rates) => perMille(rates.waits)},
  {name: "throttled", title: "Throttled, ms/s", value: (pod, rates) => rates.throttled, text: (pod, rates) => perMille(rates.throttled)},
  {name: "disk", title: "Disk", value: (pod) => pod.disk, text: (pod) => bytes(pod.disk)},
  {name: "priority", title: "Priority", value: (pod) => pod.priority, text: (pod) => number(pod.priority)},
  {name: "order", title: "Eviction order", value: (pod) => isNumber(pod.eviction_order) ? -pod.eviction_order : null, text: (pod) => number(pod.eviction_order)},
  {name: "state", title: "State", text: state},
];

const podKey = (pod) => `${pod.uid} ${pod.cgroup}`;

// Of each pod that is listed: its rates, and its memory and CPUs over the last minutes.
class PodHistory {
  constructor() {
    this.pods = new Map();
  }

  add(status) {
    const at = secondsOf(status.pods_at_ns);
    if (!isNumber(at)) return;
    const kept = new Map();
    for (const pod of list(status.pods)) {
      const key = podKey(pod), one = this.pods.get(key) || {memory: new Past(), cpu: new Rate(), waited: new Rate(), throttle: new Rate()};
      one.memory.add(at, pod.working_set);
      one.cpu.add(at, isNumber(pod.cpu_ns) ? pod.cpu_ns / 1e9 : null);
      one.waited.add(at, isNumber(pod.memory_waiting_ns) ? pod.memory_waiting_ns / 1e6 : null);
      one.throttle.add(at, isNumber(pod.throttled_ns) ? pod.throttled_ns / 1e6 : null);
      kept.set(key, one);
    }
    this.pods = kept;
  }

  of(pod) { return this.pods.get(podKey(pod)); }
  rates(pod) {
    const one = this.of(pod);
    return one ? {cpus: one.cpu.now, waits: one.waited.now, throttled: one.throttle.now} : {};
  }
}
