# SPDX-License-Identifier: Apache-2.0
"""make run on a host that can carry the main job: it observes that host, and leaves nothing behind."""

PATIENT = True
PLAY = "/opt/headroom/play/observe-host /opt/headroom/bin/headroomd /opt/headroom/bin/headroomctl --once"
TRACES = "ls /etc/dbus-1/system.d /run | grep headroom; pgrep headroomd"


def test_observing_a_host_shows_the_live_view_and_leaves_nothing(vm):
    result = vm.run(PLAY, timeout=60, check=True)
    assert "mode observe" in result.out, result.out
    assert any(line.startswith("memory.available") and " ok" in line for line in result.out.splitlines()), result.out
    assert vm.run(TRACES).out == ""
