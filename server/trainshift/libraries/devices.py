"""Devices: the names with which a program chooses among the GPUs of its machine."""

from __future__ import annotations

DEVICE_VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
"""The variables of the environment that hide GPUs from a process."""
SETS_VISIBLE = "tensorflow.config.set_visible_devices"
"""The functions that choose the visible GPUs."""
LIMITS_MEMORY = "tensorflow.config.set_logical_device_configuration"
"""The functions that limit the memory of a GPU."""
LISTS_DEVICES = "tensorflow.config.list_physical_devices"
"""The functions that list the GPUs."""
