# SPDX-License-Identifier: Apache-2.0
"""What the lab is made of: the image, the emulator, the agent's wire, and the payload."""
