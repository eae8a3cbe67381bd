# SPDX-License-Identifier: Apache-2.0
"""What can be said of rules, dashboards and pages without a running daemon: by promtool and the man page."""

import json
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/vm"), str(ROOT / "tests/prometheus")]

import grafana_schema  # noqa: E402
import recorded_pages  # noqa: E402
from machine import prometheus  # noqa: E402

RULES = sorted((ROOT / "dashboards/prometheus").glob("*.yaml"))
BOARDS = sorted((ROOT / "dashboards/grafana").glob("*.json"))
NAME = re.compile(r"\b(?:headroom|kubelet|container|machine)_[a-z0-9_]+")
RECORDED = re.compile(r"\b[a-z_]+:(?:headroom|node)_[a-z0-9_]+:[a-z0-9_]+")
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def documented() -> set[str]:
    page = (ROOT / "docs/headroom-metrics.7").read_text()
    return set(re.findall(r"^\.TP\n\.B (\S+)$", page, re.M))


def undocumented(text: str) -> list[str]:
    # A histogram's parts are documented by its name; some gauges are called a count themselves.
    names, known = set(NAME.findall(RECORDED.sub("", text))), documented()
    return sorted(name for name in names if name not in known and SUFFIX.sub("", name) not in known)


def test_rules_are_good():
    checked = prometheus.promtool("check", "rules", *RULES)
    assert checked.returncode == 0, checked.stdout


def test_rules_fire_when_they_should_and_only_then():
    for file in sorted((ROOT / "tests/prometheus").glob("*.test.yaml")):
        tested = prometheus.promtool("test", "rules", file)
        assert tested.returncode == 0, tested.stdout


def test_every_alert_has_a_test():
    tests = "".join(file.read_text() for file in (ROOT / "tests/prometheus").glob("*.test.yaml"))
    alerts = re.findall(r"^ +- alert: (\w+)", "".join(file.read_text() for file in RULES), re.M)
    assert len(alerts) > 8 and not [alert for alert in alerts if alert not in tests], alerts


def alerts() -> list[dict]:
    rules = [rule for file in RULES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]
    return [rule for rule in rules if "alert" in rule]


def test_alerts_have_prefix_severity_and_runbook():
    for alert in alerts():
        name = alert["alert"]
        assert name.startswith("Headroom"), name
        assert alert["labels"]["severity"] in ("critical", "warning", "info"), name
        assert alert["annotations"]["runbook_url"] == f"docs/runbooks.md#{name.lower()}", name
        assert alert["annotations"]["summary"] and alert["annotations"]["description"], name


def test_runbooks_and_alerts_match_both_ways():
    sections = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/runbooks.md").read_text(), re.M | re.S))
    assert sorted(sections) == sorted(alert["alert"] for alert in alerts())
    for alert in alerts():
        text = sections[alert["alert"]]
        assert f"Severity: {alert['labels']['severity']}." in text, alert["alert"]
        for part in ("Meaning", "First command", "Usual causes", "What to do"):
            assert f"**{part}.** " in text, (alert["alert"], part)


def test_recording_rules_are_named_level_metric_operations():
    for file in RULES:
        for name in re.findall(r"^ +- record: (\S+)", file.read_text(), re.M):
            assert RECORDED.fullmatch(name), name


def test_rules_and_panels_are_about_metrics_that_exist():
    for file in [*RULES, *BOARDS]:
        assert not undocumented(file.read_text()), (file.name, undocumented(file.read_text()))


def test_dashboards_are_what_their_source_says():
    written = subprocess.run([ROOT / "dashboards/grafana.py", "--check"], text=True, stderr=subprocess.PIPE, check=False)
    assert written.returncode == 0, written.stderr


def test_dashboards_can_have_a_selector_of_ones_own():
    with tempfile.TemporaryDirectory(prefix="headroom-test-") as folder:
        subprocess.run([ROOT / "dashboards/grafana.py", "--out", folder, "--selector", 'job="other"'], check=True)
        boards = [json.loads(file.read_text()) for file in sorted(Path(folder).iterdir())]
    expressions = [target["expr"] for board in boards for panel in board["panels"] for target in panel["targets"]]
    without = [text for text in expressions if not text.count('{') == text.count('job="other"')]
    assert len(boards) == len(BOARDS) and len(expressions) > 60 and not without, without


def test_variables_are_in_every_query():
    for board in BOARDS:
        content = json.loads(board.read_text())
        names = [each["name"] for each in content["templating"]["list"]]
        assert names == ["datasource", "cluster", "instance", "namespace"], (board.name, names)
        for panel in content["panels"]:
            for target in panel["targets"]:
                assert 'cluster=~"$cluster",instance=~"$instance"' in target["expr"], (board.name, panel["title"])
                assert ("headroom_pod_" in target["expr"]) == ('namespace=~"$namespace"' in target["expr"]), (board.name, panel["title"])


def test_the_operators_rules_are_what_their_source_says():
    written = subprocess.run([ROOT / "dashboards/prometheus_rule.py", "--check"], text=True, stderr=subprocess.PIPE, check=False)
    assert written.returncode == 0, written.stderr
    generated = yaml.safe_load((ROOT / "kubernetes/components/prometheus-operator/rules.yaml").read_text())
    assert generated["spec"]["groups"] == [group for file in RULES for group in yaml.safe_load(file.read_text())["groups"]]


def test_dashboards_can_be_imported():
    seen = set()
    for file in BOARDS:
        board = json.loads(file.read_text())
        assert board["uid"] not in seen and board["title"] and board["panels"], file.name
        seen.add(board["uid"])
        numbers = [panel["id"] for panel in board["panels"]]
        assert len(set(numbers)) == len(numbers), (file.name, numbers)
        for panel in board["panels"]:
            assert panel["title"] and all(target["expr"] for target in panel["targets"]), (file.name, panel["title"])
            assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24, (file.name, panel["title"])


# What no fixture has: CPU time by thread is read from /proc at each scrape, and run times where the kernel counts them.
READ_AT_A_SCRAPE = """# TYPE headroom_thread_cpu_seconds_total counter
headroom_thread_cpu_seconds_total{thread="loop"} 1
# TYPE headroom_bpf_run_seconds_total counter
headroom_bpf_run_seconds_total{program="sweep"} 1
# TYPE headroom_http_requests_rejected_total counter
headroom_http_requests_rejected_total 0
"""


def page_beside_a_kubelet() -> str:
    """As served with compatibilityMetrics: false, which the DaemonSet ships."""
    pages = [(ROOT / "tests/fixtures/metrics" / name).read_text() for name in ("node.prom", "beside-a-kubelet.prom")]
    return "".join(line + "\n" for line in "".join(pages).splitlines() if not re.match(r"(# (HELP|TYPE) )?container_", line)) + READ_AT_A_SCRAPE


def cadvisor_page() -> str:
    """container_* of a kubelet, which has its own instance."""
    page = (ROOT / "tests/fixtures/metrics/containers.prom").read_text()
    return "".join(line + "\n" for line in page.splitlines() if re.match(r"(# (HELP|TYPE) )?container_", line))


def plain_page() -> str:
    """As a plain host serves it: with container_* of its own."""
    return page_beside_a_kubelet() + cadvisor_page()


# The three configurations that are shipped: [(page, instance)].
CONFIGURATIONS = {
    "a plain host": lambda: [(plain_page(), "node-1")],
    "a DaemonSet beside a kubelet that is scraped": lambda: [(page_beside_a_kubelet(), "node-1"), (cadvisor_page(), "10.0.0.7:10250")],
    "a DaemonSet alone, without compatibility metrics": lambda: [(page_beside_a_kubelet(), "node-1")],
}


def with_rules_put_in(expression: str) -> str:
    """The expression of a recording rule in place of its name: the past of this Prometheus has no series of rules."""
    rules = [rule for file in RULES for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"] if "record" in rule]
    for rule in rules:
        expression = re.sub(re.escape(rule["record"]) + r"(\{[^}]*\})?", lambda _, rule=rule: f"({rule['expr'].strip()})", expression)
    return expression


def panel_queries(board: Path) -> list[tuple[str, str]]:
    """[(panel, expression as Grafana sends it)]"""
    return [(panel["title"], with_rules_put_in(target["expr"].replace("$instance", "node-1").replace("$cluster", ".*").replace("$namespace", ".*").replace("$__rate_interval", "1m")))
            for panel in json.loads(board.read_text())["panels"] for target in panel["targets"]]


def test_every_panel_has_data_in_each_configuration_that_is_shipped():
    for name, pages in CONFIGURATIONS.items():
        with recorded_pages.recorded(*pages()) as (prom, end):
            silent = []
            for board in BOARDS:
                answers = {}
                for title, expression in panel_queries(board):
                    found = prom.get("query", query=expression, time=end)["result"]  # raises if it does not parse
                    values = [each["value"][1] for each in found]
                    if board.stem == "headroom-fleet":
                        assert values and "NaN" not in values, (name, title, expression, values)
                    answers.setdefault(title, []).extend(values)
                silent += [f"{board.stem}: {title}" for title, values in answers.items() if not [value for value in values if value != "NaN"]]
            assert not silent, (name, silent)


def test_the_descheduler_gets_one_share_of_time_for_each_node():
    policy = yaml.safe_load((ROOT / "kubernetes/descheduler-policy.yaml").read_text())
    [profile] = policy["profiles"]
    [arguments] = [each["args"] for each in profile["pluginConfig"] if each["name"] == "LowNodeUtilization"]
    low, high = arguments["thresholds"]["MetricResource"], arguments["targetThresholds"]["MetricResource"]
    assert 0 <= low < high <= 100 and profile["plugins"]["balance"]["enabled"] == ["LowNodeUtilization"]
    assert [each["source"] for each in policy["metricsProviders"]] == [arguments["metricsUtilization"]["source"]] == ["Prometheus"]
    query = arguments["metricsUtilization"]["prometheus"]["query"]
    assert set(RECORDED.findall(query)) <= {rule["record"] for file in RULES for group in yaml.safe_load(file.read_text())["groups"]
                                            for rule in group["rules"] if "record" in rule} and RECORDED.search(query), query
    pages = [(plain_page(), "node-1"), (plain_page(), "node-2")]
    with recorded_pages.recorded(*pages) as (prom, end):
        found = prom.get("query", query=with_rules_put_in(query), time=end)["result"]
    assert sorted(each["metric"]["instance"] for each in found) == ["node-1", "node-2"], found
    assert all(each["metric"].keys() == {"instance"} and 0 <= float(each["value"][1]) <= 1 for each in found), found


def test_conditions_are_state_timelines_with_the_node():
    for board in BOARDS:
        for panel in json.loads(board.read_text())["panels"]:
            if [target["expr"] for target in panel["targets"]] == ['headroom_condition{cluster=~"$cluster",instance=~"$instance"}']:
                assert panel["type"] == "state-timeline", (board.name, panel["title"])
                assert "{{instance}}" in panel["targets"][0]["legendFormat"], (board.name, panel["title"])


def test_dashboards_have_the_types_that_grafana_publishes():
    boards = [json.loads(file.read_text()) for file in BOARDS]
    assert not (found := grafana_schema.errors(boards)), found
    boards[0]["panels"][0]["gridPos"]["w"] = "wide"
    assert "not assignable" in grafana_schema.errors(boards), "a wrong type is not found"


def test_pages_please_the_linter():
    for file in sorted((ROOT / "tests/fixtures/metrics").glob("*.prom")):
        lines = prometheus.promtool("check", "metrics", data=file.read_text()).stdout.splitlines()
        # The kubelet's own names: counters without _total, and what ends with _count.
        ours = [line for line in lines if line and not line.startswith(
            ("kubelet_evictions ", "kubelet_cpu_manager_exclusive_cpu_allocation_count ",
             "kubelet_container_aligned_compute_resources_count ", "kubelet_container_aligned_compute_resources_failure_count "))]
        assert not ours, (file.name, ours)


def run() -> list[tuple[str, str, str]]:
    """[(name, status, reason)]"""
    rows = []
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        try:
            test()
            rows.append((name.removeprefix("test_"), "passed", ""))
        except grafana_schema.Unavailable as reason:
            rows.append((name.removeprefix("test_"), "skipped", str(reason)))
        except Exception:  # a test may fail in any way; the others still run
            rows.append((name.removeprefix("test_"), "failed", traceback.format_exc(limit=-1)))
    return rows
