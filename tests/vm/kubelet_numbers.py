# SPDX-License-Identifier: Apache-2.0
"""The kubelet's arithmetic, worked out once more without any of our code (kubelet: cm/helpers_linux.go, KEP-2570)."""

MIB = 1 << 20


def weight(milli):
    """milliCPU to shares to weight."""
    shares = max(2, milli * 1024 // 1000)
    return str(1 + (shares - 2) * 9999 // 262142)


def quota(milli, period=100000):
    """cpu.max of a limit; no limit: max."""
    return f"{max(1000, milli * period // 1000) if milli else 'max'} {period}"


def page(count):
    return str(count // 4096 * 4096)


def memory_high(request, limit, allocatable, factor):
    if limit and limit == request:
        return "max"
    high = int((request + factor * ((limit or allocatable) - request)) // 4096) * 4096
    return str(high) if high > request else "max"
