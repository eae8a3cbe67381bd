# SPDX-License-Identifier: Apache-2.0
"""An enabled service in a slice: systemd keeps it while it is stopped, its slice, and what was set of them."""

from contextlib import contextmanager

UNIT = "again.service"
FILES = "/run/systemd/system"
WANTS = f"{FILES}/multi-user.target.wants"


@contextmanager
def enabled_service(vm, slice_name: str):
    """Its name. It is enabled and not started; at the end it and the slice are stopped."""
    try:
        vm.put(f"[Service]\nSlice={slice_name}\nExecStart=sleep infinity\n".encode(), f"{FILES}/{UNIT}")
        vm.run(f"mkdir -p {WANTS}; ln -s ../{UNIT} {WANTS}/; systemctl daemon-reload", check=True)
        yield UNIT
    finally:
        vm.run(f"systemctl stop {UNIT} {slice_name}; rm -f {FILES}/{UNIT} {WANTS}/{UNIT}; systemctl daemon-reload")
