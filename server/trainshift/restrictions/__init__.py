"""The restrictions (spec.md 3) and the hazards, in their order."""

from trainshift.core.rule import Restriction
from trainshift.restrictions.hazard import Hazard, InResult

HAZARDS: tuple[Hazard, ...] = (
    Hazard("HZ01", "horovod-not-started", "C", ("HV01",), InResult.AUDITED),
    Hazard("HZ02", "gpu-not-pinned", "C", ("HV01", "HV13")),
    Hazard("HZ03", "wrong-gpu", "C", ("HV11",)),
    Hazard("HZ04", "pinned-too-late", "C"),
    Hazard("HZ05", "rate-not-scaled", "W", ("HV02",)),
    Hazard("HZ06", "rate-lost", "D"),
    Hazard("HZ07", "optimizer-not-distributed", "D", ("HV03", "HV10", "HV12"), InResult.AUDITED),
    Hazard("HZ08", "tape-not-distributed", "D", ("HV04",), InResult.AUDITED),
    Hazard("HZ09", "distributed-twice", "CD", (), InResult.AUDITED),
    Hazard("HZ10", "not-broadcast", "D", ("HV05", "HV09", "HV12", "HV13", "HV14"), InResult.AUDITED),
    Hazard("HZ11", "broadcast-without-effect", "D", ("HV05",)),
    Hazard("HZ12", "collective-on-some-ranks", "H"),
    Hazard("HZ13", "ranks-decide-alone", "DH"),
    Hazard("HZ14", "unequal-batches", "H"),
    Hazard("HZ15", "same-batches", "D", ("HV16",), InResult.DOUBTED, said_by=("HV15",)),
    Hazard("HZ16", "overlapping-shards", "D", (), InResult.DOUBTED),
    Hazard("HZ17", "work-not-divided", "W", ("HV06", "HV15")),
    Hazard("HZ18", "divided-to-nothing", "D", (), InResult.DOUBTED),
    Hazard("HZ19", "batch-multiplied", "W"),
    Hazard("HZ20", "written-by-every-rank", "C", ("HV08", "HV09", "HV12", "HV14"), InResult.DOUBTED),
    Hazard("HZ21", "printed-by-every-rank", "W", ("HV07", "HV09")),
    Hazard("HZ22", "restored-on-some-ranks", "DH"),
    Hazard("HZ23", "not-in-horovod", "C"),
    Hazard("HZ24", "accumulation-summed", "D"),
    Hazard("HZ25", "rank-not-called", "D"),
)
"""The hazards of programs that already use Horovod."""

RESTRICTIONS: tuple[Restriction, ...] = (
    Restriction("TF01", "import-not-at-top"),
    Restriction("TF02", "tensorflow-rebound"),
    Restriction("TF03", "tensorflow-member-alias"),
    Restriction("TF04", "print-side-effect", seen_by_rules=True),
    Restriction("TF05", "dataset-or-optimizer-alias"),
    Restriction("TF06", "dataset-or-optimizer-reassigned", seen_by_rules=True),
    Restriction("TF07", "conditional-creation", seen_by_rules=True),
    Restriction("TF08", "apply-gradients-position"),
    Restriction("TF09", "global-optimizer-order"),
    Restriction("TF10", "checkpoint-alias"),
    Restriction("TL01", "loop-in-several-files"),
    Restriction("TL02", "loop-type", seen_by_rules=True),
    Restriction("TL03", "model-with-two-loops", seen_by_rules=True),
    Restriction("TL04", "function-value", seen_by_rules=True),
    Restriction("TL05", "conditional-loop"),
    *HAZARDS,
)
"""All restrictions of a check."""
