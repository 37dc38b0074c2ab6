"""The rewrite rules, in the order in which their changes are listed and merged.

A change never builds on another rule's output: all are edits of one baseline text.
"""

from __future__ import annotations

from trainshift.transforms.rule import Consequence, Guard, Transform, relying_on

TRANSFORMS: tuple[Transform, ...] = (
    Transform("HV01", "import-horovod", guards=relying_on("TF01", "TF02", "TF03", "TL01"), sets_up=True),
    Transform("HV02", "scale-learning-rate", guards=relying_on("TF03", "TF05", "TF06", "TF07"), asks=True),
    Transform(
        "HV03", "wrap-optimizer", guards=relying_on("TF03", "TF05", "TF06", "TF07", "TL03"), essential=True
    ),
    Transform("HV04", "wrap-tape", guards=relying_on("TF03", "TL02", "TL03", "TL04"), essential=True),
    Transform(
        "HV05",
        "broadcast-variables",
        guards=(
            *relying_on("TF08", "TF09", "TL02", "TL04"),
            Guard("TL03", unknown=Consequence.DOUBT),
            Guard("TL05", violated=Consequence.DOUBT),
        ),
        essential=True,
    ),
    Transform("HV06", "divide-steps", guards=relying_on("TF03", "TF05", "TF06", "TF07"), asks=True),
    Transform(
        "HV07",
        "print-on-root",
        guards=(Guard("TF04", unknown=Consequence.DOUBT),),
        harmless=True,
        is_sure=True,
    ),
    Transform("HV08", "write-on-root", guards=relying_on("TF03", "TF10"), harmless=True, is_sure=True),
    Transform("HV09", "fit-callbacks", guards=relying_on("TF03", "TL02", "TL03", "TL05")),
    Transform("HV10", "compile-optimizer", guards=relying_on("TF03", "TF05", "TL03"), essential=True),
    Transform("HV11", "drop-visible-devices", guards=relying_on("TF01", "TF03")),
    Transform("HV12", "estimator-hooks", guards=relying_on("TF03", "TL05"), essential=True),
    Transform("HV13", "session-broadcast", guards=relying_on("TF03", "TL01", "TL05"), essential=True),
    Transform("HV14", "monitored-session-hooks", guards=relying_on("TF03", "TL05"), essential=True),
    Transform(
        "HV15",
        "divide-data",
        guards=relying_on("TF03", "TF05", "TF06", "TF07"),
        choice="divide_data",
        asks=True,
    ),
    Transform("HV16", "seed-by-rank", asks=True),
    Transform("HV17", "leave-strategy"),
    Transform("HV18", "sync-batch-norm", guards=relying_on("TF03")),
    Transform("HV19", "agree-on-values", essential=True, meets=True),
)
