# SPDX-License-Identifier: Apache-2.0
"""Node allocatable enforced on real slices through a real systemd: the tree and its values, drift, and the reserve."""

import json

from kubelet_numbers import page, weight
from node import ETC, Node, Pod, kubelet_configuration

CORE = True
PATIENT = True
MEMORY = "2G"
CPUS = 2
METRICS_PORT = 9750
ROOT = "/sys/fs/cgroup"
MIB = 1 << 20
PODS = "/kubepods.slice"
BURSTABLE = f"{PODS}/kubepods-burstable.slice"
BEST_EFFORT = f"{PODS}/kubepods-besteffort.slice"
KUBE = "/kubereserved.slice"
CONTROLLERS = {"cpu", "cpuset", "io", "memory", "pids"}


def configuration(mode="enforce", slices="enforce", enforce=("pods",), hard="100Mi", **keys):
    config = json.loads(kubelet_configuration(hard=hard, mode=mode, slices={"mode": slices}))
    return json.dumps(config | {"enforceNodeAllocatable": list(enforce)} | keys)


def read(vm, slice, knob):
    return vm.run(f"cat {ROOT}{slice}/{knob}", check=True).out.strip()


def values(vm, slice, knobs):
    """Knob by knob as the kernel has it, in one command."""
    text = vm.run(f"cd {ROOT}{slice} && for k in {' '.join(knobs)}; do echo $k=$(cat $k); done", check=True).out
    return dict(line.split("=", 1) for line in text.splitlines())


def memory_total(vm):
    return int(vm.run("awk '/^MemTotal/{print $2*1024}' /proc/meminfo", check=True).out)


def slices(node):
    return json.loads(node.vm.run("headroomctl slices --json").out)


def settled(vm):
    """All is as it should be, says the daemon."""
    vm.wait_until("headroomctl slices > /dev/null", timeout=30)


def counted(vm, what):
    """Wait until the daemon's view counts this of any slice: it is published up to a second after it happened."""
    vm.wait_until(f"headroomctl slices --json | tr -d ' \\n' | grep -q '\"{what}\":[1-9]'", timeout=15)


def clear(vm):
    """No slice of ours, and nothing set of any."""
    vm.run(f"""systemctl stop kubepods.slice {KUBE[1:]} 2>/dev/null
        rm -rf /run/systemd/system.control /etc/systemd/system.control; systemctl daemon-reload""", timeout=60)


def expected_tree(total, keys):
    """Slice to knobs, worked out from the configuration without any of our code."""
    kube, system = keys.get("kubeReserved", {}), keys.get("systemReserved", {})
    cpu = 1000 * CPUS - int(kube.get("cpu", "0m")[:-1]) - int(system.get("cpu", "0m")[:-1])
    memory = total - MIB * (int(kube.get("memory", "0Mi")[:-2]) + int(system.get("memory", "0Mi")[:-2]))
    enforced = "pods" in keys["enforce"]
    tree = {PODS: {"cpu.weight": weight(cpu if enforced else 1000 * CPUS),
                   "memory.max": page(memory if enforced else total)},
            BURSTABLE: {"cpu.weight": weight(keys.get("burstable_cpu", 0)), "memory.max": "max"},
            BEST_EFFORT: {"cpu.weight": "1", "memory.max": "max"}}
    if "qosReserved" in keys:
        share = int(keys["qosReserved"]["memory"][:-1])
        tree[BURSTABLE]["memory.max"] = page(memory - keys.get("guaranteed", 0) * share // 100)
        tree[BEST_EFFORT]["memory.max"] = page(memory - keys.get("guaranteed", 0) * share // 100
                                               - keys.get("burstable", 0) * share // 100)
    if "kube-reserved" in keys["enforce"]:
        tree[KUBE] = {"cpu.weight": weight(int(kube["cpu"][:-1])), "memory.max": page(int(kube["memory"][:-2]) * MIB),
                      "pids.max": kube.get("pid", "max")}
    if "kube-reserved-compressible" in keys["enforce"]:
        tree[KUBE] = {"cpu.weight": weight(int(kube["cpu"][:-1])), "memory.max": "max", "pids.max": "max"}
    if "pid" in kube and enforced:
        tree[PODS]["pids.max"] = None  # whatever the kernel's limit is, less this
    return tree


TABLE = [
    {"enforce": ["pods"]},
    {"enforce": ["none"], "kubeReserved": {"cpu": "500m", "memory": "256Mi"}},
    {"enforce": ["pods"], "kubeReserved": {"cpu": "500m", "memory": "256Mi"}, "systemReserved": {"memory": "128Mi"}},
    {"enforce": ["pods", "kube-reserved"], "kubeReserved": {"cpu": "250m", "memory": "200Mi", "pid": "500"},
     "kubeReservedCgroup": KUBE},
    {"enforce": ["pods", "kube-reserved-compressible"], "kubeReserved": {"cpu": "750m", "memory": "200Mi"},
     "kubeReservedCgroup": KUBE},
    {"enforce": ["pods"], "qosReserved": {"memory": "50%"}, "kubeReserved": {"memory": "128Mi"}},
]


def test_the_tree_and_every_value_are_the_kubelets(vm):
    total = memory_total(vm)
    with Node(vm) as node:
        for keys in TABLE:
            clear(vm)
            settings = {key: value for key, value in keys.items() if key != "enforce"}
            node.start(configuration(enforce=keys["enforce"], **settings))
            settled(vm)
            for slice, knobs in expected_tree(total, keys).items():
                has = values(vm, slice, knobs)
                wrong = {k: (has[k], v) for k, v in knobs.items() if v is not None and has[k] != v}
                assert not wrong, f"{keys}: {slice}: {wrong} (has, should have)"
                missing = CONTROLLERS - set(read(vm, slice, "cgroup.controllers").split())
                assert not missing, f"{slice} lacks {missing}"
            if "pid" in keys.get("kubeReserved", {}):
                limit = int(vm.run("sort -n /proc/sys/kernel/pid_max /proc/sys/kernel/threads-max | head -1").out)
                assert read(vm, PODS, "pids.max") == str(limit - 500)
            view = slices(node)
            assert not any(k["drift"] for s in view["slices"] for k in s["settings"]), view
            print(f"    {keys}: {len(view['slices'])} slices, {view['dbus_calls']['made']} bus calls")
            node.stop()
    clear(vm)


def test_tiers_follow_the_pods(vm):
    with Node(vm) as node:
        clear(vm)
        node.start(configuration(qosReserved={"memory": "100%"}))
        settled(vm)
        assert read(vm, BURSTABLE, "cpu.weight") == weight(0)
        node.run_pod(Pod("web", "burstable", {"cpu": "700m", "memory": "300Mi"}), "--hold 8M")
        node.run_pod(Pod("log", "burstable", {"cpu": "150m"}), "--hold 8M")
        bank = node.run_pod(Pod("bank", "guaranteed", {"cpu": "200m", "memory": "100Mi"},
                                {"cpu": "200m", "memory": "100Mi"}), "--hold 8M")
        total = memory_total(vm)
        vm.wait_until(f"grep -qx {weight(850)} {ROOT}{BURSTABLE}/cpu.weight", timeout=20)
        vm.wait_until(f"grep -qx {page(total - 400 * MIB)} {ROOT}{BEST_EFFORT}/memory.max", timeout=20)
        assert read(vm, BURSTABLE, "memory.max") == page(total - 100 * MIB)
        vm.stop(bank.unit)
        vm.wait_until(f"grep -qx {page(total)} {ROOT}{BURSTABLE}/memory.max", timeout=20)
        print(vm.run("headroomctl slices").out, end="")
    clear(vm)


def test_observing_says_what_differs_and_writes_nothing(vm):
    with Node(vm) as node:
        for mode, own in (("observe", "enforce"), ("enforce", "observe")):
            clear(vm)
            vm.run(f"systemctl start kubepods.slice && systemctl set-property --runtime kubepods.slice MemoryMax=1G", check=True)
            node.start(configuration(mode=mode, slices=own, kubeReserved={"memory": "256Mi"}))
            vm.wait_until("headroomctl slices --json | grep -q memory.max", timeout=20)
            vm.run("sleep 1.5")
            view = slices(node)
            pods, burstable = view["slices"][0], view["slices"][1]
            assert view["mode"] == "observe" and pods["exists"] and not burstable["exists"], view
            limit, = (k for k in pods["settings"] if k["setting"] == "memory.max")
            assert limit["differs"] and limit["actual"] == str(1 << 30), limit
            assert read(vm, PODS, "memory.max") == str(1 << 30) and view["dbus_calls"]["made"] == 0, view
            assert vm.run("headroomctl slices").code == 1
            assert 'headroom_slice_settings_differing{role="kubepods",slice="/kubepods.slice"}' in node.metrics()
            node.stop()
    clear(vm)


def test_what_cannot_be_is_refused_with_every_reason(vm):
    vm.run(f"mkdir -p {ETC}")
    for text, reasons in (
            (configuration(kubeReserved={"memory": "3Gi", "cpu": "3"}),
             ['Resource "cpu" has a reservation of 3 but capacity of 2', 'Resource "memory" has a reservation of']),
            (configuration(enforce=["pods", "kube-reserved", "system-reserved"]),
             ["kubeReservedCgroup (--kube-reserved-cgroup) must be specified",
              "systemReservedCgroup (--system-reserved-cgroup) must be specified"])):
        vm.put(text.encode(), "/tmp/bad.yaml")
        checked = vm.run("headroomd --check-config --config /tmp/bad.yaml")
        assert checked.code == 2, checked.out
        for reason in reasons:
            assert reason in checked.out, (reason, checked.out)


# What another writer does, the slice and setting that shows it, and the setting it is counted by.
DRIFT = [
    ("set-property of a limit", "systemctl set-property --runtime kubepods.slice MemoryMax=infinity", PODS, "memory.max"),
    ("a write to the file", f"echo 5000 > {ROOT}{PODS}/cpu.weight", PODS, "cpu.weight"),
    ("set-property for good", "systemctl set-property kubereserved.slice TasksMax=7", KUBE, "pids.max"),
    ("daemon-reload, which reads that", "systemctl daemon-reload", KUBE, "pids.max"),
    ("revert", "systemctl revert kubepods.slice kubereserved.slice", PODS, "memory.max"),
    ("the slice stopped", f"systemctl stop {KUBE[1:]}", KUBE, "pids.max"),
]
HEALED_WITHIN = 3.0  # seconds, the disturbing command's own time among them, in an emulated machine; natively 1


def disturb(vm, command, slice, knob):
    """Seconds from before the command until the knob is right again and stays so."""
    want = read(vm, slice, knob)
    took = vm.run(f"""began=$(date +%s%N); {{ {command}; }} > /dev/null 2>&1 || exit 1; done=$(date +%s%N)
        while [ "$(cat {ROOT}{slice}/{knob} 2>/dev/null)" != {want} ]; do sleep 0.01; done
        now=$(date +%s%N); sleep 0.7; [ "$(cat {ROOT}{slice}/{knob})" = {want} ] || exit 9
        echo $(( (done - began) / 1000000 )) $(( (now - began) / 1000000 ))""", check=True, timeout=60).out.split()
    return [int(ms) / 1000 for ms in took]


def test_drift_is_put_right_within_a_second_and_counted(vm):
    with Node(vm) as node:
        clear(vm)
        node.start(configuration(enforce=["pods", "kube-reserved"], kubeReservedCgroup=KUBE,
                                 kubeReserved={"cpu": "250m", "memory": "200Mi", "pid": "500"}))
        web = node.run_pod(Pod("web", "burstable", {"cpu": "200m", "memory": "64Mi"}), "--hold 8M")
        settled(vm)
        vm.run("sleep 1")  # what changes within half a second after slices were made does not count: it may be systemd's doing
        pid = vm.run(f"systemctl show -P MainPID {web.unit}", check=True).out
        calls = slices(node)["dbus_calls"]["made"]
        for what, command, slice, knob in DRIFT:
            command_took, healed = disturb(vm, command, slice, knob)
            print(f"    {what}: right again after {healed:.2f} s, of which the command took {command_took:.2f}")
            assert healed - command_took < HEALED_WITHIN, what
        counted(vm, "removed")
        settled(vm)
        view = {s["slice"]: s for s in slices(node)["slices"]}
        drift = {s: {k["setting"]: k["drift"] for k in view[s]["settings"]} for s in (PODS, KUBE)}
        assert drift[PODS]["memory.max"] >= 1 and drift[PODS]["cpu.weight"] >= 1, drift
        assert drift[KUBE]["pids.max"] >= 1 and view[KUBE]["removed"] == 1, (drift, view[KUBE])
        assert f'headroom_slice_setting_drift_total{{setting="slice",slice="{KUBE}"}} 1' in node.metrics()
        assert node.alive(web) and vm.run(f"systemctl show -P MainPID {web.unit}").out == pid, "nothing was killed"
        made = slices(node)["dbus_calls"]["made"] - calls
        print(f"    drift {drift}; {made} bus calls")
        assert made < 40, made
    clear(vm)


def test_the_reserve_keeps_its_share_and_pods_stay_below_their_limit(vm):
    burn = "for i in 1 2; do (while :; do :; done) & done; wait"
    with Node(vm) as node:
        clear(vm)
        node.start(configuration(enforce=["pods", "kube-reserved"], kubeReservedCgroup=KUBE, hard="200Mi",
                                 kubeReserved={"cpu": "500m", "memory": "300Mi"}))
        settled(vm)
        vm.spawn("exec /opt/headroom/bin/workload --hold 150M", unit="headroom-test-keeper.service", slice=KUBE[1:])
        vm.spawn(burn, unit="headroom-test-probe.service", slice=KUBE[1:])
        burning = [node.run_script(Pod(f"burn-{name}", "burstable", {"cpu": "500m"}), burn) for name in "abc"]
        usage = f"awk '/^usage_usec/{{print $2}}' {ROOT}{KUBE}/cpu.stat {ROOT}{PODS}/cpu.stat"
        text = vm.run(f"sleep 2; {usage}; sleep 8; {usage}", check=True).out.split()
        kube, pods = [(int(text[i + 2]) - int(text[i])) / 8e6 for i in (0, 1)]
        weights = [int(read(vm, slice, "cpu.weight")) for slice in (KUBE, PODS)]
        fair = weights[0] / sum(weights)
        print(f"    CPU: the reserve {kube:.2f}, pods {pods:.2f}; weights {weights}, so {fair:.0%} is its share")
        assert kube / (kube + pods) > 0.85 * fair, (kube, pods, weights)
        vm.stop("headroom-test-probe.service", *(pod.unit for pod in burning))
        hog = node.run_pod(Pod("hog", "besteffort"), "--hold 4M --after 1 --until 4G")
        vm.wait_until(f"! systemctl is-active --quiet {hog.unit}", timeout=60)
        peak, limit = int(read(vm, PODS, "memory.peak")), int(read(vm, PODS, "memory.max"))
        kept = vm.run("systemctl is-active headroom-test-keeper.service").out.strip()
        evicted = [record["pod"]["name"] for record in node.evictions()]
        print(f"    memory: pods peaked at {peak // MIB} of {limit // MIB} MiB, evicted {evicted}, the reserve's "
              f"150 MiB are {kept}, kernel OOM kills {node.kernel_oom_kills()}")
        assert evicted == ["hog"] and node.kernel_oom_kills() == 0, (evicted, node.kernel_oom_kills())
        assert peak <= limit and kept == "active", (peak, limit, kept)
        vm.stop("headroom-test-keeper.service")
    clear(vm)


def test_a_limit_below_what_is_in_use_is_lowered_without_a_stall_or_a_kernel_kill(vm):
    with Node(vm) as node:
        clear(vm)
        node.start(configuration())
        settled(vm)
        # Cache that can be had back, and memory that cannot.
        reader = node.run_script(Pod("reader", "burstable", {"memory": "600Mi"}),
                                 "truncate -s 500M /root/filler; cat /root/filler > /dev/null; sleep 1000")
        vm.wait_until(f"[ $(cat {ROOT}{BURSTABLE}/memory.current) -gt {450 * MIB} ]", timeout=60)
        total = memory_total(vm)
        reserved = (total >> 20) - 300
        limit = page(total - reserved * MIB)
        configured = configuration(kubeReserved={"memory": f"{reserved}Mi"}, hard="50Mi")
        node.configure(configured)
        began = vm.run("date +%s%N").out
        vm.run("systemctl kill -s HUP headroomd; systemctl show -p MainPID --value headroomd", check=True)
        vm.wait_until(f"[ $(cat {ROOT}{PODS}/memory.max) = {limit} ]")
        took = vm.run(f"echo $(( ($(date +%s%N) - {began.strip()}) / 1000000 ))").out.strip()
        counted(vm, "done")
        assert node.alive(reader), slices(node)
        print(f"    500 MiB of cache were taken and memory.max lowered to 300 MiB in {took} ms, nothing killed")
        vm.stop(reader.unit)
        vm.run("rm -f /root/filler")
        node.stop()

        node.start(configuration())
        settled(vm)
        keeper = node.run_pod(Pod("keeper", "burstable", {"memory": "120Mi"}), "--hold 80M")
        hog = node.run_pod(Pod("hog", "burstable", {"memory": "20Mi"}), "--hold 500M")
        vm.wait_until(f"[ $(cat {ROOT}{BURSTABLE}/memory.current) -gt {570 * MIB} ]", timeout=60)
        node.configure(configured)
        vm.run("systemctl reload headroomd", check=True)
        vm.wait_until(f"[ $(cat {ROOT}{PODS}/memory.max) = {limit} ]", timeout=60)
        counted(vm, "failed")
        view = slices(node)["slices"][0]
        evicted = [record["pod"]["name"] for record in node.evictions()]
        print(f"    500 MiB that are not given back: tried {view['limit_lowering']}, evicted {evicted}, "
              f"kernel OOM kills {node.kernel_oom_kills()}")
        assert evicted == ["hog"] and node.kernel_oom_kills() == 0 and node.alive(keeper) and not node.alive(hog)
        assert "memory.max cannot be lowered yet" in node.journal()
        assert f'headroom_slice_limit_lowerings_total{{outcome="failed",slice="{PODS}"}}' in node.metrics()
    clear(vm)
