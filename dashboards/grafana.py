#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the Grafana dashboards beside this file, from the panels below: `dashboards/grafana.py`, or --check.

    dashboards/grafana.py --out DIR --selector 'job="node-headroom"'    dashboards of one's own, whose every query has this selector

A panel is a row here, and a page of JSON there. The JSON is what a Grafana imports, so it is kept in the tree; a test
sees to it that the two agree.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A cluster is a label that the scrape or the remote write adds; without one, "All" matches.
ON = 'cluster=~"$cluster",instance=~"$instance"'
POD_SERIES = re.compile(r"((?:pod:)?headroom_pod_[a-z_]+(?::[a-z]+)?)\{")

# Pods and the node's own cgroups under headroom's names: a panel has data with and without compatibilityMetrics, and beside a kubelet
# whose container_* have another job and another instance.
POD_EVENTS = 'sum(rate(headroom_pod_memory_events_total{event="EVENT",@}[$__rate_interval]))'
POD_WAITS = 'topk(10, max by (namespace, pod) (rate(headroom_pod_pressure_waiting_seconds_total{resource="RESOURCE",@}[$__rate_interval])))'
NODE_WAITS = 'rate(headroom_node_cgroup_pressure_KIND_seconds_total{id="/",resource="RESOURCE",@}[$__rate_interval])'
QUANTILE = "histogram_quantile(SHARE, sum by (le) (rate(NAME_bucket{@}[$__rate_interval])))"
SWEEP = QUANTILE.replace("NAME", "headroom_sweep_duration_seconds")

REFAULTS = 'topk(5, max by (namespace, pod) (rate(headroom_pod_refaults_total{kind="KIND",@}[$__rate_interval])))'
RECLAIM = 'topk(5, max by (namespace, pod) (rate(headroom_pod_reclaim_pages_total{result="WHAT",@}[$__rate_interval])))'
DISK = 'topk(5, max by (namespace, pod) (rate(headroom_pod_io_bytes_total{direction="WHAT",@}[$__rate_interval])))'
SLICES = 'id=~"/[^/]+[.]slice",@'


@dataclass
class Panel:
    title: str
    targets: dict[str, str]  # legend → expression; ON is put in for @
    unit: str = "short"
    kind: str = "timeseries"  # or stat, state-timeline, table
    width: int = 12
    about: str = ""
    stacked: bool = False
    limits: list = field(default_factory=list)  # values at which it turns orange, then red


# Of all signals that have a capacity, the smallest share that is left.
LEAST_ROOM = "min by (instance) (" + " or ".join(
    f"headroom_signal_available_{unit}{{@}} / headroom_signal_capacity_{unit}{{@}}" for unit in ("bytes", "inodes", "tasks")) + ")"

DASHBOARDS = {
    "fleet": ("headroom / Fleet", [
        Panel("Nodes", {"scraped": 'count(up{job="headroom",@} == 1)', "down": 'count(up{job="headroom",@} == 0) or vector(0)'},
              kind="stat", width=6),
        Panel("Nodes by mode", {"{{mode}}": "sum by (mode) (headroom_mode{@})"}, kind="stat", width=6),
        Panel("Nodes by condition", {"{{condition}}": "sum by (condition) (headroom_condition{@})"}, kind="stat", width=6,
              limits=[1]),
        Panel("Nodes by version", {"{{version}}": "count by (version) (headroom_build_info{@})"}, kind="stat", width=6),
        Panel("Conditions by node", {"{{instance}} {{condition}}": "headroom_condition{@}"}, kind="state-timeline", width=24),
        Panel("Nodes with the least room", {"{{instance}}": f"bottomk(10, {LEAST_ROOM})"}, "percentunit",
              about="The smallest share that any eviction signal of the node has left."),
        Panel("Evictions by node", {"{{instance}} {{signal}}": "topk(10, sum by (instance, signal) "
              '(increase(headroom_evictions_total{outcome="done",@}[$__rate_interval])))'}, stacked=True),
        Panel("Pods that are being evicted", {"{{instance}}": "topk(10, headroom_victims{@})"}),
        Panel("CPU of headroomd", {"{{instance}}": "topk(10, sum by (instance) "
              "(rate(headroom_thread_cpu_seconds_total{@}[$__rate_interval])))"}, "percentunit", limits=[0.05]),
    ]),
    "node-pressure": ("headroom / Node pressure", [
        Panel("memory.available and its thresholds",
              {"available": 'headroom_signal_available_bytes{signal="memory.available",@}',
               "{{kind}} threshold": 'headroom_threshold_bytes{signal="memory.available",@}'}, "bytes",
              about="Below a hard threshold a pod is evicted at once, below a soft one when its grace is over."),
        Panel("Time to threshold", {"{{signal}} {{kind}}": "headroom_threshold_forecast_seconds{@}"}, "s",
              about="At the present trend. No line while nothing fills."),
        Panel("Room left, as a share",
              {"{{signal}}": "headroom_signal_available_bytes{@} / headroom_signal_capacity_bytes{@}",
               "{{signal}} ": "headroom_signal_available_inodes{@} / headroom_signal_capacity_inodes{@}",
               "{{signal}}  ": "headroom_signal_available_tasks{@} / headroom_signal_capacity_tasks{@}",
               "{{signal}}   ": "headroom_signal_available_ratio{@}"}, "percentunit"),
        Panel("Node conditions", {"{{instance}} {{condition}}": "headroom_condition{@}"}, kind="state-timeline"),
        Panel("Node: time waiting for memory, CPU and I/O", {
            f"{resource}, {some}": NODE_WAITS.replace("KIND", kind).replace("RESOURCE", resource)
            for resource, some, kind in (("memory", "some", "waiting"), ("memory", "all", "stalled"), ("cpu", "some", "waiting"),
                                         ("io", "some", "waiting"), ("io", "all", "stalled"))},
              "percentunit", about="A limited or throttled pod waits too: see whose waits they are below."),
        Panel("Waits for memory, by cause", {"{{cause}}":
              "sum by (cause) (rate(headroom_node_memory_stall_seconds_sum{@}[$__rate_interval]))"}, "percentunit", stacked=True,
              about="global is the node's own shortage; limit and high are a pod's own limits; refault is thrash."),
        Panel("A wait for memory, 99th percentile", {"{{cause}}":
              "histogram_quantile(0.99, sum by (le, cause) (rate(headroom_node_memory_stall_seconds_bucket{@}[5m]))) > 0"}, "s"),
        Panel("Pods waiting for memory", {"{{namespace}}/{{pod}}": POD_WAITS.replace("RESOURCE", "memory")}, "percentunit"),
        Panel("Limits that made cgroups wait", {
            "memory.high": POD_EVENTS.replace("EVENT", "high"),
            "memory.max": POD_EVENTS.replace("EVENT", "max"),
            "OOM at a limit": POD_EVENTS.replace("EVENT", "oom")},
              "ops", about="Pressure of a pod's own making: it does not count towards the node's."),
        Panel("Kernel OOM kills", {"{{scope}} {{agreed}}": "increase(headroom_kernel_oom_kills_total{@}[$__rate_interval])"},
              limits=[1], about="At a limit of a cgroup's own, or of the node: then the kernel was faster than headroom. True: "
                                "of the pod that headroom would have evicted."),
    ]),
    "evictions": ("headroom / Evictions", [
        Panel("Evictions", {"{{signal}} {{outcome}}":
              'sum by (signal, outcome) (increase(headroom_evictions_total{mode="enforce",@}[$__rate_interval]))'},
              stacked=True),
        Panel("Would have evicted (mode observe)",
              {"{{signal}}": "sum by (signal) (increase(headroom_would_evict_total{@}[$__rate_interval]))"}),
        Panel("On their way out", {"pods": "headroom_victims{@}"}),
        Panel("Completed evictions", {"{{outcome}}": "increase(headroom_eviction_completions_total{@}[$__rate_interval])"}),
        Panel("Memory returned", {"bytes": "increase(headroom_eviction_memory_returned_bytes_total{@}[$__rate_interval])"},
              "bytes"),
        Panel("How much later the kubelet would have acted", {
            "median": QUANTILE.replace("SHARE", "0.5").replace("NAME", "headroom_shadow_lead_seconds"),
            "90th percentile": QUANTILE.replace("SHARE", "0.9").replace("NAME", "headroom_shadow_lead_seconds")},
              "s", about="A model of its ten-second loop runs beside ours."),
        Panel("Choice of the modelled kubelet", {"{{choice}}":
              "increase(headroom_shadow_choices_total{@}[$__rate_interval])"}, stacked=True),
        Panel("How far off forecasts were", {"{{signal}}":
              "sum by (signal) (rate(headroom_forecast_error_seconds_sum{@}[1h])) / "
              "sum by (signal) (rate(headroom_forecast_error_seconds_count{@}[1h]))"}, "s",
              about="The mean over the minute before a threshold was crossed."),
        Panel("From crossing to exit, 99th percentile", {
            "last good sample to decision":
                "histogram_quantile(0.99, sum by (le) (rate(headroom_crossing_to_decision_seconds_bucket{@}[1h])))",
            "decision to signal":
                "histogram_quantile(0.99, sum by (le) (rate(headroom_decision_to_signal_seconds_bucket{@}[1h])))",
            "signal to exit":
                "histogram_quantile(0.99, sum by (le) (rate(headroom_signal_to_exit_seconds_bucket{@}[1h])))"}, "s"),
        Panel("Next to go: furthest above their request", {"{{namespace}}/{{pod}}":
              "topk(10, pod:headroom_pod_memory_over_request_bytes:difference{@})"}, "bytes",
              about="Those over their request are ranked before all others; among them, lower priority first."),
        Panel("Spared: the pods and their standing", {
            "": "headroom_pod_info{@} * on (instance, namespace, pod, uid) group_left () "
                "headroom_pod_memory_working_set_bytes{@}"},
              "bytes", "table", about="Critical pods are never evicted. Sort by priority class, QoS or use."),
    ]),
    "workloads": ("headroom / Workloads", [
        Panel("Working set by pod", {"{{namespace}}/{{pod}}":
              "topk(10, sum by (namespace, pod) (headroom_pod_memory_working_set_bytes{@}))"}, "bytes"),
        Panel("CPU by pod", {"{{namespace}}/{{pod}}":
              "topk(10, max by (namespace, pod) (rate(headroom_pod_cpu_usage_seconds_total{@}[$__rate_interval])))"}, "short",
              about="In CPUs."),
        Panel("Top stallers: waiting for memory", {"{{namespace}}/{{pod}}": POD_WAITS.replace("RESOURCE", "memory")}, "percentunit"),
        Panel("Top stallers: waiting for memory, by cause", {"{{id}} {{cause}}":
              "topk(10, rate(headroom_memory_stall_seconds_total{@}[$__rate_interval]) > 0)"}, "percentunit",
              about="A cgroup's own tasks; several at a time add up."),
        Panel("Top stallers: waiting for I/O", {"{{namespace}}/{{pod}}": POD_WAITS.replace("RESOURCE", "io")}, "percentunit"),
        Panel("Refaults: pages read again soon after they were reclaimed", {
            "file {{namespace}}/{{pod}}": REFAULTS.replace("KIND", "file"),
            "anon {{namespace}}/{{pod}}": REFAULTS.replace("KIND", "anon")}, "ops"),
        Panel("Reclaim: scanned, and taken", {
            "scanned {{namespace}}/{{pod}}": RECLAIM.replace("WHAT", "scanned"),
            "taken {{namespace}}/{{pod}}": RECLAIM.replace("WHAT", "freed")}, "ops"),
        Panel("Disk: bytes read and written", {
            "read {{namespace}}/{{pod}}": DISK.replace("WHAT", "read"),
            "written {{namespace}}/{{pod}}": DISK.replace("WHAT", "write")}, "Bps"),
        Panel("Top stallers: waiting for CPU", {"{{namespace}}/{{pod}}": POD_WAITS.replace("RESOURCE", "cpu")}, "percentunit"),
        Panel("Throttled: pods at their CPU quota", {"{{namespace}}/{{pod}}":
              "topk(10, max by (namespace, pod) (rate(headroom_pod_cpu_throttled_seconds_total{@}[$__rate_interval])))"}, "percentunit",
              about="Share of the time in which the pod's quota was used up."),
        Panel("A wait for CPU quota", {
            "median": QUANTILE.replace("SHARE", "0.5").replace("NAME", "headroom_node_cpu_throttle_seconds"),
            "99th percentile": QUANTILE.replace("SHARE", "0.99").replace("NAME", "headroom_node_cpu_throttle_seconds")}, "s"),
        Panel("Throttled: waits of run queues", {"{{id}}":
              "topk(10, rate(headroom_cpu_throttle_seconds_total{@}[$__rate_interval]) > 0)"}, "s",
              about="Of containers as well; the waits of several CPUs add up."),
        Panel("Swap by pod", {"{{namespace}}/{{pod}}": "topk(10, max by (namespace, pod) (headroom_pod_memory_swap_bytes{@}))"}, "bytes"),
        Panel("Killed by the kernel at a limit", {"{{namespace}}/{{pod}}":
              "topk(10, max by (namespace, pod) (increase(headroom_pod_oom_kills_total{@}[$__rate_interval])))"}),
    ]),
    "cpus": ("headroom / CPU sets and NUMA", [
        Panel("CPUs that containers have for themselves, by NUMA node",
              {"node {{numa_node}}": "kubelet_cpu_manager_allocation_per_numa{@}"}, stacked=True),
        Panel("Share of a NUMA node's CPUs that is taken", {"node {{numa_node}}":
              "kubelet_cpu_manager_allocation_per_numa{@} / on (instance, numa_node) headroom_numa_cpus{@}"},
              "percentunit"),
        Panel("Containers with exclusive CPUs", {"{{namespace}}/{{pod}} {{container}}": "headroom_container_exclusive_cpus{@}"},
              about="0: it was refused, and shares."),
        Panel("NUMA nodes a container is on", {"{{namespace}}/{{pod}} {{container}}":
              "headroom_container_numa_nodes{@} > 0"}, limits=[2]),
        Panel("The shared pool", {"CPUs": "headroom_shared_pool_cpus{@}",
                                  "requested by its pods": "headroom_shared_pool_requested_cpus{@}",
                                  "taken from it": "kubelet_cpu_manager_exclusive_cpu_allocation_count{@}"}),
        Panel("Asked for, and refused", {
            "asked": "increase(kubelet_cpu_manager_pinning_requests_total{@}[$__rate_interval])",
            "refused": "increase(kubelet_cpu_manager_pinning_errors_total{@}[$__rate_interval])",
            "short of CPUs": "headroom_containers_without_exclusive_cpus{@}"}, limits=[1]),
        Panel("CPU sets written, refused, and put right", {
            "written": "increase(headroom_cpuset_writes_total{@}[$__rate_interval])",
            "refused": "increase(headroom_cpuset_write_failures_total{@}[$__rate_interval])",
            "restored": "increase(headroom_cpuset_repairs_total{@}[$__rate_interval])"}),
        Panel("CPU state file", {"stale": "headroom_cpu_state_file_stale{@}"}, limits=[1]),
    ]),
    "reserves": ("headroom / Reserved slices", [
        Panel("Use of the slices headroom keeps, against their share", {"{{slice}} {{resource}}":
              "headroom_slice_usage{@} / on (instance, slice, resource) (headroom_slice_share{@} > 0)"}, "percentunit",
              limits=[0.9, 1]),
        Panel("Settings that differ from their desired value", {"{{slice}}": "headroom_slice_settings_differing{@}",
              "changed by another program: {{slice}} {{setting}}": "increase(headroom_slice_setting_drift_total{@}[$__rate_interval])"},
              limits=[1]),
        Panel("Working set of the top-level slices", {"{{id}}":
              f"max by (id) (headroom_node_cgroup_memory_working_set_bytes{{{SLICES}}})"}, "bytes", stacked=True),
        Panel("Use of what is reserved", {"{{id}}": "slice:headroom_memory_reserve_use:ratio{@}"}, "percentunit",
              limits=[0.9, 1], about="Against memory.min or memory.low, whichever is more. No line without either."),
        Panel("Limits of the top-level slices", {
            f"{{{{id}}}} {limit}": f"max by (id) (headroom_node_cgroup_memory_{limit}_bytes{{{SLICES}}} {known})"
            for limit, known in (("max", "< +Inf"), ("high", "< +Inf"), ("min", "> 0"))}, "bytes", about="No line without a limit."),
        Panel("CPU of the top-level slices", {"{{id}}":
              f"sum by (id) (rate(headroom_node_cgroup_cpu_usage_seconds_total{{{SLICES}}}[$__rate_interval]))"},
              stacked=True),
        Panel("Reclaimed although protected", {"{{id}}":
              f"increase(headroom_node_cgroup_memory_events_low_total{{{SLICES}}}[$__rate_interval])"},
              about="memory.low was not kept: more is promised than there is."),
        Panel("Tasks of the top-level slices", {"{{id}}":
              f"max by (id) (headroom_node_cgroup_tasks{{{SLICES}}})"}),
    ]),
    "self": ("headroom / The daemon's own cost", [
        Panel("CPU by thread", {"{{thread}}": "sum by (thread) (rate(headroom_thread_cpu_seconds_total{@}[$__rate_interval]))"},
              "percentunit", stacked=True, about="Of one CPU."),
        Panel("Resident memory", {"resident": "process_resident_memory_bytes{@}"}, "bytes"),
        Panel("A pass over every cgroup", {
            "median": SWEEP.replace("SHARE", "0.5"),
            "99th percentile": SWEEP.replace("SHARE", "0.99")},
              "s"),
        Panel("From one pass to the next", {"period": "headroom_sweep_period_seconds{@}"}, "s",
              about="Longer than sweepPeriod where the loop would take more than cpuBudget."),
        Panel("Cgroups", {"tracked": "headroom_cgroups_tracked{@}", "unresolved": "headroom_cgroups_unresolved{@}"}),
        Panel("Wake-ups", {"{{source}}": "sum by (source) (rate(headroom_wakeups_total{@}[$__rate_interval]))"}, "ops"),
        Panel("Snapshots", {"{{scope}}": "sum by (scope) (rate(headroom_snapshots_total{@}[$__rate_interval]))"}, "ops"),
        Panel("Age of the readings", {"age": "headroom_sweep_age_seconds{@}"}, "s", limits=[5, 15]),
        Panel("Lost, and not read", {
            "dropped: {{component}}": "increase(headroom_dropped_total{@}[$__rate_interval])",
            "not read": "increase(headroom_missing_readings_total{@}[$__rate_interval])",
            "scrapes refused": "increase(headroom_http_requests_rejected_total{@}[$__rate_interval])"}, limits=[1]),
        Panel("Run time of the BPF programs",
              {"{{program}}": "rate(headroom_bpf_run_seconds_total{@}[$__rate_interval])"}, "percentunit",
              about="While the sysctl kernel.bpf_stats_enabled is set."),
        Panel("Where readings come from", {"{{group}}: {{source}}": "headroom_source{@}"}, kind="table"),
    ]),
}


def expression(text: str, selector: str = "") -> str:
    """With the selectors of the variables: pods have a namespace."""
    return POD_SERIES.sub(r'\1{namespace=~"$namespace",', text).replace("@", f"{selector},{ON}" if selector else ON)


def variable(name: str, label: str, query: str) -> dict:
    return {"name": name, "type": "query", "label": label, "includeAll": True, "allValue": ".*", "multi": True, "query": query, "refresh": 2,
            "current": {"text": "All", "value": "$__all"}, "datasource": {"type": "prometheus", "uid": "${datasource}"}}


def panel_json(panel: Panel, number: int, x: int, y: int, selector: str) -> dict:
    source = {"type": "prometheus", "uid": "${datasource}"}
    steps = [{"color": "green", "value": None}] + [
        {"color": color, "value": value} for color, value in zip(("orange", "red"), panel.limits)]
    custom = {"fillOpacity": 20 if panel.stacked else 5, "lineWidth": 1, "showPoints": "never",
              "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"}}
    table = panel.kind == "table"
    if panel.limits:
        custom["thresholdsStyle"] = {"mode": "line"}
    options = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
    mappings = []
    if panel.kind == "state-timeline":
        custom, options = {"fillOpacity": 80, "lineWidth": 0}, {"showValue": "never", "mergeValues": True, **options}
        mappings = [{"type": "value", "options": {"0": {"text": "False", "color": "green", "index": 0},
                                                  "1": {"text": "True", "color": "red", "index": 1}}}]
    elif panel.kind == "stat":
        custom, options = {}, {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"}
    return {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.about, "datasource": source,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": 8},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": {} if table else custom, "mappings": mappings,
                                     "thresholds": {"mode": "absolute", "steps": steps}}, "overrides": []},
        "options": {} if table else options,
        "targets": [{"refId": chr(ord("A") + i), "datasource": source, "expr": expression(expr, selector),
                     "legendFormat": legend, "instant": table, "range": not table,
                     "format": "table" if table else "time_series"}
                    for i, (legend, expr) in enumerate(panel.targets.items())],
    }


def dashboard_json(slug: str, selector: str = "") -> dict:
    title, panels = DASHBOARDS[slug]
    placed, x, y = [], 0, 0
    for number, panel in enumerate(panels, 1):
        if x + panel.width > 24:
            x, y = 0, y + 8
        placed.append(panel_json(panel, number, x, y, selector))
        x += panel.width
    return {
        "uid": f"headroom-{slug}", "title": title, "tags": ["headroom"], "editable": True, "schemaVersion": 38,
        "timezone": "", "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "graphTooltip": 1, "panels": placed,
        "annotations": {"list": [{
            "name": "Evictions", "enable": True, "iconColor": "red",
            "datasource": {"type": "prometheus", "uid": "${datasource}"},
            "expr": expression('sum by (signal) (increase(headroom_evictions_total{outcome="done",@}[1m])) > 0', selector),
            "titleFormat": "Evicted for {{signal}}", "step": "30s"}]},
        "templating": {"list": [
            {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"},
            variable("cluster", "Cluster", "label_values(headroom_build_info, cluster)"),
            variable("instance", "Node", 'label_values(headroom_build_info{cluster=~"$cluster"}, instance)'),
            variable("namespace", "Namespace", 'label_values(headroom_pod_info{cluster=~"$cluster",instance=~"$instance"}, namespace)')]},
        "links": [{"type": "dashboards", "tags": ["headroom"], "asDropdown": True, "title": "headroom", "icon": "external link",
                   "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": ""}],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether the dashboards are what this program writes")
    parser.add_argument("--out", type=Path, default=HERE / "grafana", help="the folder to write to")
    parser.add_argument("--selector", default="", help="added to each query, such as job=\"headroom\"")
    options = parser.parse_args()
    check, wrong = options.check, []
    for slug in DASHBOARDS:
        file = options.out / f"headroom-{slug}.json"
        text = json.dumps(dashboard_json(slug, options.selector), indent=1) + "\n"
        if check and (not file.exists() or file.read_text() != text):
            wrong.append(file.name)
        if not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    if wrong:
        print(f"not what dashboards/grafana.py writes: {' '.join(wrong)}: run it", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
