"""The restrictions (spec.md 3) and the hazards, in their order."""

from trainshift.restrictions import (
    tf01_import_not_at_top,
    tf02_tensorflow_rebound,
    tf03_tensorflow_member_alias,
    tf04_print_side_effect,
    tf05_dataset_or_optimizer_alias,
    tf06_dataset_or_optimizer_reassigned,
    tf07_conditional_creation,
    tf08_apply_gradients_position,
    tf09_global_optimizer_order,
    tf10_checkpoint_alias,
    tl01_loop_in_several_files,
    tl02_loop_type,
    tl03_model_with_two_loops,
    tl04_function_value,
    tl05_conditional_loop,
)
from trainshift.restrictions.restriction import Hazard, InResult, Restriction

HAZARDS: tuple[Hazard, ...] = (
    Hazard.of("HZ01", "horovod-not-started", "C", ("HV01",), InResult.AUDITED),
    Hazard.of("HZ02", "gpu-not-pinned", "C", ("HV01", "HV13")),
    Hazard.of("HZ03", "wrong-gpu", "C", ("HV11",)),
    Hazard.of("HZ04", "pinned-too-late", "C"),
    Hazard.of("HZ05", "rate-not-scaled", "W", ("HV02",)),
    Hazard.of("HZ06", "rate-lost", "D"),
    Hazard.of("HZ07", "optimizer-not-distributed", "D", ("HV03", "HV10", "HV12"), InResult.AUDITED),
    Hazard.of("HZ08", "tape-not-distributed", "D", ("HV04",), InResult.AUDITED),
    Hazard.of("HZ09", "distributed-twice", "CD", (), InResult.AUDITED),
    Hazard.of("HZ10", "not-broadcast", "D", ("HV05", "HV09", "HV12", "HV13", "HV14"), InResult.AUDITED),
    Hazard.of("HZ11", "broadcast-without-effect", "D", ("HV05",)),
    Hazard.of("HZ12", "collective-on-some-ranks", "H"),
    Hazard.of("HZ13", "ranks-decide-alone", "DH"),
    Hazard.of("HZ14", "unequal-batches", "H"),
    Hazard.of("HZ15", "same-batches", "D", ("HV16",), InResult.DOUBTED, said_by=("HV15",)),
    Hazard.of("HZ16", "overlapping-shards", "D", (), InResult.DOUBTED),
    Hazard.of("HZ17", "work-not-divided", "W", ("HV06", "HV15")),
    Hazard.of("HZ18", "divided-to-nothing", "D", (), InResult.DOUBTED),
    Hazard.of("HZ19", "batch-multiplied", "W"),
    Hazard.of("HZ20", "written-by-every-rank", "C", ("HV08", "HV09", "HV12", "HV14"), InResult.DOUBTED),
    Hazard.of("HZ21", "printed-by-every-rank", "W", ("HV07", "HV09")),
    Hazard.of("HZ22", "restored-on-some-ranks", "DH"),
    Hazard.of("HZ23", "not-in-horovod", "C"),
    Hazard.of("HZ24", "accumulation-summed", "D"),
    Hazard.of("HZ25", "rank-not-called", "D"),
)
"""What is asked of programs that use Horovod already."""

RESTRICTIONS: tuple[Restriction, ...] = (
    tf01_import_not_at_top.RULE,
    tf02_tensorflow_rebound.RULE,
    tf03_tensorflow_member_alias.RULE,
    tf04_print_side_effect.RULE,
    tf05_dataset_or_optimizer_alias.RULE,
    tf06_dataset_or_optimizer_reassigned.RULE,
    tf07_conditional_creation.RULE,
    tf08_apply_gradients_position.RULE,
    tf09_global_optimizer_order.RULE,
    tf10_checkpoint_alias.RULE,
    tl01_loop_in_several_files.RULE,
    tl02_loop_type.RULE,
    tl03_model_with_two_loops.RULE,
    tl04_function_value.RULE,
    tl05_conditional_loop.RULE,
    *HAZARDS,
)
"""All that a check asks."""
