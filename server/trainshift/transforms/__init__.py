"""The rewrite rules, in the order in which their changes are listed and merged.

A change never builds on another rule's output: all are edits of one baseline text.  HV03, HV10 and
HV12 to HV14 are left out, because they concern `fit`, Estimators and sessions, whose loops are
refused until their rules are here.
"""

from __future__ import annotations

from trainshift.transforms import (
    hv01_import_horovod,
    hv02_scale_learning_rate,
    hv04_wrap_tape,
    hv05_broadcast_variables,
    hv06_divide_steps,
    hv07_print_on_root,
    hv08_write_on_root,
    hv09_fit_callbacks,
    hv11_drop_visible_devices,
)
from trainshift.transforms.rule import Transform

TRANSFORMS: tuple[Transform, ...] = (
    hv01_import_horovod.RULE,
    hv02_scale_learning_rate.RULE,
    hv04_wrap_tape.RULE,
    hv05_broadcast_variables.RULE,
    hv06_divide_steps.RULE,
    hv07_print_on_root.RULE,
    hv08_write_on_root.RULE,
    hv09_fit_callbacks.RULE,
    hv11_drop_visible_devices.RULE,
)
