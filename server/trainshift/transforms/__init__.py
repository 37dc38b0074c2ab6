"""The rewrite rules, in the order in which their changes are listed and merged.

A change never builds on another rule's output: all are edits of one baseline text.
"""

from __future__ import annotations

from trainshift.transforms import (
    hv01_import_horovod,
    hv02_scale_learning_rate,
    hv03_wrap_optimizer,
    hv04_wrap_tape,
    hv05_broadcast_variables,
    hv06_divide_steps,
    hv07_print_on_root,
    hv08_write_on_root,
    hv09_fit_callbacks,
    hv10_compile_optimizer,
    hv11_drop_visible_devices,
    hv12_estimator_hooks,
    hv13_session_broadcast,
    hv14_monitored_session_hooks,
    hv15_divide_data,
    hv16_seed_by_rank,
    hv17_leave_strategy,
    hv18_sync_batch_norm,
    hv19_agree_on_values,
)
from trainshift.transforms.rule import Transform

TRANSFORMS: tuple[Transform, ...] = (
    hv01_import_horovod.RULE,
    hv02_scale_learning_rate.RULE,
    hv03_wrap_optimizer.RULE,
    hv04_wrap_tape.RULE,
    hv05_broadcast_variables.RULE,
    hv06_divide_steps.RULE,
    hv07_print_on_root.RULE,
    hv08_write_on_root.RULE,
    hv09_fit_callbacks.RULE,
    hv10_compile_optimizer.RULE,
    hv11_drop_visible_devices.RULE,
    hv12_estimator_hooks.RULE,
    hv13_session_broadcast.RULE,
    hv14_monitored_session_hooks.RULE,
    hv15_divide_data.RULE,
    hv16_seed_by_rank.RULE,
    hv17_leave_strategy.RULE,
    hv18_sync_batch_norm.RULE,
    hv19_agree_on_values.RULE,
)
