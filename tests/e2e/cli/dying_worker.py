"""A worker that some files kill, to test the handling of the remaining files; processes import it by name."""

from __future__ import annotations

import os
from collections.abc import Sequence

from trainshift.cli.checks.check import Job, check_file
from trainshift.cli.checks.report import FileCheck
from trainshift.engine.verdicts import Verdicts
from trainshift.engine.workspace import Answers


def check_batch(jobs: Sequence[Job], answers: bytes) -> tuple[list[FileCheck], Verdicts]:
    """Check the jobs; a file called kill.py ends the process."""
    if any(job.name.endswith("kill.py") for job in jobs):
        os._exit(9)
    return [check_file(job) for job in jobs], Verdicts()


def looked_ahead(job: Job) -> Answers:
    """Find nothing ahead; a file called kill.py ends the process."""
    if job.name.endswith("kill.py"):
        os._exit(9)
    return {}
