# SPDX-License-Identifier: Apache-2.0
"""What kubernetes-mixin asks for has answers from headroomd alone: our example jobs and rules, on a real Prometheus."""

import time
from pathlib import Path

import yaml
from forwarded import forwarded
from kube_node import Authority, KubeNode, KubePod
from machine import prometheus
from node import PORT

KERNELS = ("6.12",)
PATIENT = True
MEMORY = "2G"
METRICS_PORT = PORT

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "kubernetes/prometheus-scrape.yaml"
RULES = [ROOT / "kubernetes/prometheus-rules.yaml"]
PROMETHEUS_PORT = 19091

# As they select: by job, metrics_path, container and image; joined by instance, namespace and pod; summed by the labels
# that are shown. Windows are shorter: the test is.
CADVISOR = 'job="kubelet",metrics_path="/metrics/cadvisor"'
NODE_OF = 'on(cluster,namespace,pod) group_left(node) topk by(cluster,namespace,pod)(1,max by(cluster,namespace,pod,node)(kube_pod_info{node!=""}))'
ALERTS = {
    "KubeNodeEviction": 'sum(rate(kubelet_evictions{job="kubelet"}[60s])) by(eviction_signal,instance) * on(instance) '
                        'group_left(node) max by(instance,node)(kubelet_node_name{job="kubelet"}) > 0',
    "CPUThrottlingHigh": f'sum(increase(container_cpu_cfs_throttled_periods_total{{container!="",{CADVISOR}}}[20s])) '
                         'by(container,pod,namespace) / '
                         f'sum(increase(container_cpu_cfs_periods_total{{{CADVISOR}}}[20s])) by(container,pod,namespace) > 0.25',
}
PANELS = {
    "CPU usage by pod": f'sum(sum by(cluster,namespace,pod,container)(rate(container_cpu_usage_seconds_total{{{CADVISOR},image!=""}}[20s])) * {NODE_OF}) by(pod,node)',
    "CPU throttling by container": 'sum(increase(container_cpu_cfs_throttled_periods_total{namespace="shop",pod="busy",container!=""}[20s])) by(container) / '
                                   'sum(increase(container_cpu_cfs_periods_total{namespace="shop",pod="busy",container!=""}[20s])) by(container)',
    "working set by container": f'sum(container_memory_working_set_bytes{{{CADVISOR},namespace="shop",pod="web",container!="",image!=""}}) by(container)',
    "working set by pod and node": f'sum(container_memory_working_set_bytes{{{CADVISOR},image!=""}} * {NODE_OF}) by(pod,node)',
    "RSS": f'sum(container_memory_rss{{{CADVISOR},namespace="shop",pod="web",container!="",container!="POD"}}) by(container)',
    "cache": f'sum(container_memory_cache{{{CADVISOR},namespace="shop",pod="web",container!="",container!="POD"}}) by(container)',
    "working set of the namespace": f'sum(container_memory_working_set_bytes{{{CADVISOR},namespace="shop",container!="",image!=""}}) by(namespace)',
}


def jobs(target: str, node: str) -> list[dict]:
    """The example's, with a static target in the cluster's stead."""
    jobs = yaml.safe_load(JOBS.read_text())
    for job in jobs:
        del job["kubernetes_sd_configs"]
        job["static_configs"] = [{"targets": [target], "labels": {"__meta_kubernetes_node_name": node,
                                                                  "__meta_kubernetes_node_address_InternalIP": "10.0.0.7"}}]
        address, *others = job["relabel_configs"]
        assert address["target_label"] == "__address__" and address["replacement"] == "${1}:9750", address
        job["relabel_configs"] = others
    return jobs


def test_the_mixins_alerts_and_panels_have_answers(vm):
    with KubeNode(vm) as node, forwarded(vm) as target:
        node.start_kubelet(Authority("first"))
        node.start(node.configuration(hard="300Mi", compatibilityMetrics=True))
        node.start_kube()
        folder = ROOT / "build/vm/prometheus-mixin" / str(time.time_ns())
        with prometheus.Prometheus(folder, target, RULES, PROMETHEUS_PORT, scrape=jobs(target, node.name)) as prom:
            node.run_pod(KubePod("web", "burstable", {"memory": "200Mi"}), "--hold 60M")
            node.run_script(KubePod("busy", "burstable", {"cpu": "50m"}), "while :; do :; done", "CPUQuota=10%")
            node.wait_for(node.known, lambda pods: {"shop/web", "shop/busy"} <= set(pods))
            time.sleep(26)
            answers = {name: prom.query(expression) for name, expression in (PANELS | ALERTS).items()}
            assert not answers.pop("KubeNodeEviction"), "nothing was evicted yet"
            silent = [name for name, answer in answers.items() if not answer]
            assert not silent, f"no answer: {silent}"

            def pods(name):
                return {each["metric"].get("pod"): each for each in answers[name]}

            assert set(pods("CPUThrottlingHigh")) == {"busy"}, answers["CPUThrottlingHigh"]
            for name in ("CPU usage by pod", "working set by pod and node"):
                assert {"web", "busy"} <= set(pods(name)), answers[name]
                assert all(each["metric"]["node"] == node.name for each in answers[name]), answers[name]
            held, = answers["working set by container"]
            assert held["metric"] == {"container": "main"} and 60 << 20 < float(held["value"][1]) < 90 << 20, held

            node.run_pod(KubePod("hog"), "--hold 1M --rate 250M --until 4G")
            record, = node.wait_for_evictions(1)
            assert record["pod"]["name"] == "hog", record
            seen = node.wait_for(lambda: prom.query(ALERTS["KubeNodeEviction"]), bool)
            assert seen[0]["metric"] == {"eviction_signal": "memory.available", "instance": node.name, "node": node.name}, seen
            # One series of each: nothing is counted twice.
            doubled = prom.query('count by(namespace,pod,container)(container_memory_working_set_bytes{container!=""}) > 1')
            assert not doubled, doubled
            print(f"    answers to {len(PANELS)} panels and {len(ALERTS)} alerts from {int(prom.value('sum(scrape_samples_scraped)'))} samples")


def test_beside_a_scraped_kubelet_the_names_are_left_to_it(vm):
    """Said nowhere, the page has no container_* when the pods are a kubelet's; /metrics/cadvisor has them for who asks."""
    with KubeNode(vm) as node:
        node.start_kubelet(Authority("first"))
        node.start(node.configuration(hard="300Mi"))
        node.start_kube()
        node.run_pod(KubePod("web", "burstable", {"memory": "64Mi"}), "--hold 8M")
        node.wait_for(node.known, lambda pods: "shop/web" in pods)
        assert "\ncontainer_" not in node.metrics()
        page = vm.run(f"curl -sS http://127.0.0.1:{PORT}/metrics/cadvisor", check=True).out
        assert "container_memory_working_set_bytes{" in page, page[:500]
