"""The desk under stress: no wake-up is lost, every question is answered, nothing goes backwards."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from random import Random
from typing import Any

import pytest

from e2e.lsp.session import PATIENCE
from perf.script import script
from support.fixtures import SCRIPTS
from support.typist import Typist
from trainshift.engine.analysis import analyze_script
from trainshift.engine.checking import CheckReport, Demanded, Weigh, check
from trainshift.engine.conversion import carry_out
from trainshift.engine.incremental import Live
from trainshift.engine.settings import Settings, read_settings
from trainshift.engine.workspace import files_in_memory
from trainshift.lsp import scheduler
from trainshift.lsp.answers.summary import conversion_of
from trainshift.lsp.options import Rules
from trainshift.lsp.scheduler import Desk, OpenProgram, Outdated, State, Superseded
from trainshift.lsp.snapshot import whole_of
from trainshift.lsp.snapshot_cache import Wholes
from trainshift.lsp.text.documents import Paper, paper_of, plain
from trainshift.python.names.script import Script, read_script
from trainshift.python.names.values import ANYTHING
from trainshift.python.source.source import Source

RULES = (Rules(), Rules(read_settings({"ignore": ["TF03", "TF05"]}, "test")))
LONG = script(300)
TEXTS = [(folder / "before.py").read_text(encoding="utf-8-sig") for folder in SCRIPTS[:4]] + [LONG, "x = 1\n"]
ENOUGH: tuple[Callable[[State], bool], ...] = (
    lambda state: True,
    lambda state: state.is_full,
    lambda state: state.is_settled,
)


def paper(text: str, version: int) -> Paper:
    """A version of a plain document."""
    return paper_of(plain("file:///nowhere/a.py", version, text, "utf-16"))


def version_of(state: State) -> int:
    """The version of a state."""
    return state.paper.parts[0].version or 0


class Office:
    """A desk and its messages, in order; `wait` waits for a condition."""

    def __init__(self) -> None:
        self.told: dict[str, list[State]] = defaultdict(list)
        self.heard = threading.Condition()
        wholes = Wholes(files_in_memory({}), lambda path: RULES[0])
        self.desk = Desk(self._hear, lambda: None, wholes.outline)

    def _hear(self, program: OpenProgram, state: State) -> None:
        with self.heard:
            self.told[program.uri].append(state)
            self.heard.notify_all()

    def open(self, name: str, text: str, live: Live | None = None) -> OpenProgram:
        """A program that the desk judges."""
        program = OpenProgram(name, paper(text, 1), live or Live(), RULES[0])
        self.desk.put(program)
        return program

    def wait(self, holds: Callable[[], bool], note: str) -> None:
        """Wait until something holds, which only a message can cause."""
        with self.heard:
            assert self.heard.wait_for(holds, PATIENCE), note


def is_settled(program: OpenProgram) -> bool:
    """Return whether all is known of the newest version."""
    return program.state is not None and program.state.paper is program.paper and program.state.is_settled


@pytest.mark.parametrize("seed", range(6))
def test_stress(seed: int, quick: bool) -> None:
    """Calls from one thread in any order, like from the event loop, end with the report of `check`."""
    random = Random(seed)
    office = Office()
    desk = office.desk
    programs = [office.open(f"{number}", text) for number, text in enumerate(random.sample(TEXTS, 3))]
    typists = [Typist(program.paper.text, seed) for program in programs]
    versions = [typist.versions(10_000) for typist in typists]
    asked: list[tuple[OpenProgram, Paper, Future[State]]] = []
    done = threading.Event()
    for _ in range(60 if quick else 250):
        at = random.randrange(len(programs))
        program = programs[at]
        deed = random.randrange(10)
        if deed < 5:
            desk.touch(program, paper(next(versions[at]), (program.paper.parts[0].version or 0) + 1))
            if random.random() < 0.9:
                state = desk.at_once(program)
                assert state is None or state.paper is program.paper
                desk.go_on()
            else:  # Two messages came together.
                desk.touch(program, paper(next(versions[at]), (program.paper.parts[0].version or 0) + 1))
                desk.at_once(program)
        elif deed < 8:
            future = desk.known(program, random.choice(ENOUGH))
            asked.append((program, program.paper, future))
            if random.random() < 0.2:
                future.cancel()
        elif deed < 9:
            desk.renew(program, random.choice((*RULES, None)), soon=random.random() < 0.5)
        else:
            steps = iter(range(random.randrange(5)))

            def work(pause: Callable[[], None], steps: Any = steps) -> bool:
                pause()
                return next(steps, None) is not None

            desk.in_background(work)
        if random.random() < 0.3:  # A pause in which the desk may or may not make progress.
            done.wait(random.random() * 0.02)
    for program in programs:
        desk.at_once(program)
        desk.go_on()
        office.wait(partial(is_settled, program), f"seed {seed}: {program.uri} is never settled")
    finished, open_ = wait([future for _, _, future in asked], PATIENCE)
    assert not open_, f"seed {seed}: {len(open_)} questions of {len(finished)} are never answered"
    for program, paper_, future in asked:
        if future.cancelled():
            continue
        error = future.exception()
        if error is None:
            assert future.result().paper is paper_, f"seed {seed}: an answer is of another version"
        else:
            assert isinstance(error, Outdated), f"seed {seed}: {error!r}"
            assert program.paper is not paper_, f"seed {seed}: the newest version is called outdated"
    for program in programs:
        told = office.told[program.uri]
        order = [version_of(state) for state in told]
        assert order == sorted(order), f"seed {seed}: {program.uri} went back: {order}"
        assert program.state is not None
        expected = check(program.paper.text, program.rules.settings)
        assert program.state.report == expected, f"seed {seed}: {program.uri}"
    desk.end()


def test_many_threads_may_ask() -> None:
    """Questions from several threads while another edits are all answered."""
    office = Office()
    program = office.open("a", LONG)
    over = threading.Event()
    lost: list[str] = []

    def ask(seed: int) -> None:
        random = Random(seed)
        while not over.is_set():
            at_least = random.choice(ENOUGH)
            try:
                office.desk.known(program, at_least).result(PATIENCE)
            except Outdated:
                continue
            except TimeoutError:
                lost.append(f"seed {seed}")
                return

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for number, text in enumerate(Typist(LONG, 5).versions(80), 2):
        office.desk.touch(program, paper(text, number))
        office.desk.at_once(program)
        office.desk.go_on()
    office.wait(lambda: is_settled(program), "never settled")
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert not lost
    office.desk.end()


class Slow(Live):
    """A script whose full check takes arbitrarily long."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Semaphore(0)
        self.go_on = threading.Semaphore(0)
        self.checked: list[Settings] = []

    def in_full(
        self,
        source: Source,
        settings: Settings,
        pause: Callable[[], None] = lambda: None,
        demanded: Demanded = lambda: None,
        weigh: Weigh | None = None,
    ) -> CheckReport:
        self.began.release()
        while not self.go_on.acquire(timeout=0.001):
            pause()
        self.checked.append(settings)
        return super().in_full(source, settings)


def test_rules_that_change_at_the_end_of_a_check_are_not_lost() -> None:
    """The running check does not count, even if it can no longer be aborted."""
    office = Office()
    live = Slow()
    text = "import tensorflow as tf\nadam = tf.keras.optimizers.Adam\nopt = adam(0.1)\n"

    def last_moment(source: Source, settings: Settings, *others: object) -> CheckReport:
        report = Live.in_full(live, source, settings)
        live.checked.append(settings)
        if len(live.checked) == 1:
            office.desk.renew(program, RULES[1])
        return report

    live.in_full = last_moment  # type: ignore[assignment, method-assign]
    program = OpenProgram("a", paper(text, 1), live, RULES[0])
    office.desk.put(program)
    office.wait(lambda: is_settled(program), "never settled")
    assert live.checked == [RULES[0].settings, RULES[1].settings]
    assert program.state is not None
    assert program.state.report == check(text, RULES[1].settings)
    assert len(check(text, RULES[0].settings).diagnostics) > len(program.state.report.diagnostics)
    office.desk.end()


def test_questions_in_a_row_let_a_check_end() -> None:
    """Requests about the version being checked do not restart the check."""
    office = Office()
    live = Slow()
    program = office.open("a", "import tensorflow as tf\n", live)
    assert live.began.acquire(timeout=PATIENCE)
    futures = [office.desk.known(program, lambda state: state.is_full) for _ in range(20)]
    assert not live.began.acquire(timeout=0.05), "the check was started anew"
    live.go_on.release()
    assert not wait(futures, PATIENCE).not_done
    assert len(live.checked) == 1
    office.desk.end()


def test_an_edit_ends_the_check_of_the_version_before() -> None:
    office = Office()
    live = Slow()
    program = office.open("a", "import tensorflow as tf\n", live)
    assert live.began.acquire(timeout=PATIENCE)
    outdated = office.desk.known(program, lambda state: True)
    office.desk.touch(program, paper("import tensorflow as tf\nx = 1\n", 2))
    office.desk.at_once(program)
    assert isinstance(outdated.exception(PATIENCE), Outdated)
    assert live.began.acquire(timeout=PATIENCE)
    live.go_on.release()
    office.wait(lambda: is_settled(program), "never settled")
    assert {version_of(state) for state in office.told["a"]} == {2}
    office.desk.end()


def test_a_step_that_fails_is_not_tried_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    """The conversion fails, but everything else works."""

    def runtime() -> None:
        raise ValueError("no such thing")

    office = Office()
    program = OpenProgram("a", paper("import tensorflow as tf\n", 1), Live(), Rules(runtime=runtime))
    office.desk.put(program)
    office.wait(lambda: is_settled(program), "never settled")
    failures = [each for each in caplog.records if "conversion of an open program failed" in each.message]
    assert len(failures) == 1
    office.desk.end()


def test_work_in_the_background_gives_way_and_comes_back() -> None:
    office = Office()
    began, calls = threading.Semaphore(0), []

    def work(pause: Callable[[], None]) -> bool:
        calls.append(time.monotonic())
        began.release()
        while len(calls) < 2:
            pause()
        return False

    office.desk.in_background(work)
    assert began.acquire(timeout=PATIENCE)
    program = office.open("a", "import tensorflow as tf\n")
    office.wait(lambda: is_settled(program), "never settled")
    assert began.acquire(timeout=PATIENCE)
    assert len(calls) == 2
    office.desk.end()


def test_a_closed_program_is_nobodys_business() -> None:
    office = Office()
    live = Slow()
    program = office.open("a", "import tensorflow as tf\n", live)
    waiting = office.desk.known(program, lambda state: True)
    office.desk.close(program)
    assert isinstance(waiting.exception(PATIENCE), Outdated)
    assert isinstance(office.desk.known(program, lambda state: True).exception(PATIENCE), Outdated)
    live.go_on.release()
    other = office.open("b", "x = 1\n")
    office.wait(lambda: is_settled(other), "never settled")
    assert office.told["a"] == []
    office.desk.end()


def test_what_is_asked_of_an_outline_later_is_not_given_up() -> None:
    """Only the desk's own steps are aborted, not an answer computed on another thread."""
    is_urgent = False

    def pause() -> None:
        if is_urgent:
            raise Superseded

    read = read_script(LONG)
    assert isinstance(read, Script)
    whole = whole_of(read, lambda script: analyze_script(script, pause), files_in_memory({}))
    is_urgent = True
    assert whole.analysis is not None
    whole.analysis.program.names.memo.ask((), lambda: ANYTHING)
    assert carry_out(whole.analysis).plan is not None


def test_what_a_conversion_needs_goes_with_its_version() -> None:
    office = Office()
    program = office.open("a", LONG)
    office.wait(lambda: is_settled(program), "never settled")
    state = program.state
    assert state is not None
    assert state.outline is not None
    assert conversion_of(state).plan is not None
    office.desk.touch(program, paper(LONG + "x = 1\n", 2))
    assert state.outline.changes
    with pytest.raises(Outdated):
        conversion_of(state)
    office.desk.go_on()
    office.wait(lambda: is_settled(program), "never settled again")
    assert program.state is not None
    assert conversion_of(program.state).plan is not None
    office.desk.end()


def test_a_short_program_is_told_of_when_all_is_known() -> None:
    office = Office()
    short, long = office.open("short", TEXTS[0]), office.open("long", LONG + "\n" * scheduler._SHORT)
    office.wait(lambda: is_settled(short) and is_settled(long), "never settled")
    assert [state.is_settled for state in office.told["short"]] == [True]
    assert [state.is_settled for state in office.told["long"]] == [False, True]
    office.desk.end()
