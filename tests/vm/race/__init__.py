# SPDX-License-Identifier: Apache-2.0
"""A race between a filler and a daemon that should stop it, measured by the kernel's own trace."""
