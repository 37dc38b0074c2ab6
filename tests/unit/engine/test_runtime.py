"""The versions that projects require, and conversions for them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainshift.core.choices import KERAS_3, KERAS_LEGACY, Choices
from trainshift.engine.conversion import Status, convert
from trainshift.engine.versions.demands import is_declaration, read_demands
from trainshift.engine.versions.runtime import Runtime, judge

FITS = Runtime()
SCRIPT = dedent(
    """\
    import tensorflow as tf

    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = loss_fn(y, model(x))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    """
)


def found(path: str, text: str) -> str | None:
    """The problem with a file's versions: too new; empty if they fit, None if they are open."""
    runtime = judge(read_demands(path, dedent(text)).demands)
    return None if runtime is None else runtime.too_new


def asked(requirement: str) -> str | None:
    """The problem of one requirement, without the place."""
    too_new = found("requirements.txt", requirement + "\n")
    return too_new.removeprefix("requirements.txt:1 asks for ") if too_new else too_new


@pytest.mark.parametrize(
    ("requirements", "is_paddle2"),
    [
        ("paddlepaddle==2.6.2", True),
        ("paddlepaddle-gpu~=2.5", True),
        ("paddlepaddle>=2.4,<3.0", True),
        ("tensorflow==2.15.1\npaddlepaddle==2.6.2", True),
        ("tensorflow==2.17.1\npaddlepaddle==2.6.2", True),
        ("paddlepaddle>=2.4", False),
        ("paddlepaddle==3.0.0", False),
        ("tensorflow==2.15.1", False),
    ],
)
def test_projects_that_allow_no_paddle_3(requirements: str, is_paddle2: bool) -> None:
    runtime = judge(read_demands("requirements.txt", f"{requirements}\n").demands)
    assert is_paddle2 is (runtime is not None and runtime.is_paddle2)
    assert runtime is None or runtime.is_open is ("tensorflow" not in requirements)


@pytest.mark.parametrize(
    ("requirement", "shown"),
    [
        ("tensorflow==2.17.1", "tensorflow 2.17.1"),
        ("tensorflow===2.17.1", "tensorflow 2.17.1"),
        ("tensorflow==2.16.*", "tensorflow ==2.16.*"),
        ("tensorflow==2.16.0rc0", "tensorflow 2.16.0rc0"),
        ("tensorflow==2.16.1+nv24.5", "tensorflow 2.16.1+nv24.5"),
        ("tensorflow>=2.16", "tensorflow >=2.16"),
        ("tensorflow >= 2.16, < 3", "tensorflow >= 2.16, < 3"),
        ("tensorflow>2.16,<2.17", "tensorflow >2.16,<2.17"),
        ("tensorflow~=2.16", "tensorflow ~=2.16"),
        ("tensorflow (>=2.18)", "tensorflow >=2.18"),
        ("tensorflow>=3", "tensorflow >=3"),
        ("tensorflow[and-cuda]==2.17", "tensorflow 2.17"),
        ("TensorFlow_CPU==2.17", "tensorflow-cpu 2.17"),
        ("tensorflow-intel==2.17", "tensorflow-intel 2.17"),
        ("tensorflow-gpu>=2.16", "tensorflow-gpu >=2.16"),
        ("tf.keras==2.16.0", "tf-keras 2.16.0"),
        ("tf-nightly", "tf-nightly"),
        ("tf-nightly-cpu", "tf-nightly-cpu"),
        ("tensorflow-rocm==2.18", "tensorflow-rocm 2.18"),
        ("keras-nightly", "keras-nightly"),
        ("tensorflow>=2.20; python_version >= '3.13'", "tensorflow >=2.20"),
        ("tf-nightly>=2.4", "tf-nightly >=2.4"),
        ("keras>=3", "keras >=3"),
        ("keras==3.3.3", "keras 3.3.3"),
        ("tensorflow==2.17 --hash=sha256:0af1", "tensorflow 2.17"),
        ("tensorflow==2.17  # the newest", "tensorflow 2.17"),
        ('tensorflow==2.17; python_version >= "3.9"', "tensorflow 2.17"),
        ("tensorflow==2.17; sys_platform == 'linux'", "tensorflow 2.17"),
        ("tensorflow==2.17; platform_machine == 'aarch64'", "tensorflow 2.17"),
        ("https://example.org/tensorflow-2.17.0-cp311-cp311-linux_x86_64.whl", "tensorflow 2.17.0"),
        (
            "tensorflow @ file:///wheels/tensorflow_cpu-2.17.0%2Bx-cp311-none-any.whl",
            "tensorflow-cpu 2.17.0+x",
        ),
    ],
)
def test_only_newer_versions_are_too_new(requirement: str, shown: str) -> None:
    assert asked(requirement) == shown


@pytest.mark.parametrize(
    "requirement",
    [
        "tensorflow==2.15.1",
        "tensorflow==2.15.0rc1",
        "tensorflow>=2.12,<2.16",
        "tensorflow~=2.15.0",
        "tensorflow<2.16",
        "tensorflow==1.15.5",
        "tensorflow<2",
        "tf-nightly==2.15.0.dev20231001",
        "keras<3",
        "keras==2.15.0",
    ],
)
def test_no_newer_version_fits(requirement: str) -> None:
    assert asked(requirement) == ""


@pytest.mark.parametrize(
    "requirement",
    [
        "tensorflow",
        "tensorflow>=2.4",
        "tensorflow!=2.16.0",
        "tensorflow<2.17",
        "tensorflow>=2.12,<3",
        "keras",
        "keras>=2.4",
        "tensorflow-datasets==4.9.6",
        "tensorflow_probability==0.24",
        "tensorflow-hub",
        "horovod[tensorflow]==0.28.1",
        "keras-tuner==3.0",
        "# tensorflow==2.17",
        "-e git+https://github.com/tensorflow/tensorflow#egg=tensorflow",
        "tensorflow @ https://example.org/tensorflow.tar.gz",
        "tensorflow==2.17; python_version >= '3.14'",
        "tensorflow==2.17; python_full_version < '3.9'",
        "tensorflow==2.17; sys_platform == 'darwin'",
        "tensorflow==2.17; sys_platform == 'darwin' and platform_machine == 'arm64'",
        "tensorflow==2.17; implementation_name == 'pypy'",
        "",
    ],
)
def test_anything_else_leaves_the_version_open(requirement: str) -> None:
    assert asked(requirement) is None


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("requirements-dev.txt", "numpy\n\ntensorflow==2.17\n", 3),
        ("requirements/gpu.txt", "numpy\r\ntensorflow==2.17\r\n", 2),
        ("anything.txt", "tensorflow==2.17\n", 1),
        ("requirements.txt", "numpy\ntensorflow\\\n  ==2.17 \\\n  --hash=sha256:00\n", 2),
        ("pyproject.toml", '[project]\ndependencies = [\n  "numpy",\n  "tensorflow>=2.17",\n]\n', 4),
        ("pyproject.toml", '[project]\n# tensorflow>=2.17\ndependencies = ["tensorflow>=2.17"]\n', 3),
        (
            "pyproject.toml",
            '[project]\ndependencies = ["tensorflow"]\n[project.optional-dependencies]\n'
            "gpu = [\"tensorflow[and-cuda]>=2.17; sys_platform == 'linux'\"]\n",
            4,
        ),
        ("pyproject.toml", '[dependency-groups]\ndev = [{include-group = "a"}, "tensorflow==2.17"]\n', 2),
        ("pyproject.toml", '[tool.pdm.dev-dependencies]\ndev = ["-e .", "tensorflow==2.17"]\n', 2),
        ("pyproject.toml", '[tool.uv]\ndev-dependencies = ["tensorflow==2.17"]\n', 2),
        ("pyproject.toml", '[tool.hatch.envs.default]\ndependencies = ["tensorflow==2.17"]\n', 2),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.9"\ntensorflow = "^2.16"\n', 3),
        ("pyproject.toml", '[tool.poetry.dev-dependencies]\nkeras = {version = "3.*"}\n', 2),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntensorflow = "*"\n[tool.poetry.group.gpu.dependencies]\n'
            'tensorflow = {version = "~2.16", extras = ["and-cuda"], python = ">=3.10,<3.13"}\n',
            4,
        ),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies.tensorflow]\nversion = "2.17.0"\nplatform = "linux"\n',
            1,
        ),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    tensorflow>=2.17\n", 4),
        ("setup.cfg", "[options.extras_require]\ntf = tensorflow>=2.17; python_version > '3.8'\n", 2),
        ("setup.py", "setup(\n  install_requires=[\n    'tensorflow>=2.17; python_version > \"3.8\"'])\n", 3),
        ("setup.py", "setup(extras_require={'gpu': ['numpy', 'tensorflow[and-cuda]==2.17']})\n", 1),
        ("requirements.in", "numpy\ntensorflow==2.17\n", 2),
        ("Pipfile", '[packages]\nnumpy = "*"\ntensorflow = "~=2.17"\n', 3),
        ("Pipfile", "[dev-packages]\ntensorflow = {version = '==2.17', sys_platform = \"== 'linux'\"}\n", 2),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - tensorflow=2.16\n", 3),
        ("environment-gpu.yaml", "dependencies:\n- conda-forge::tensorflow-gpu=2.16.1=cuda120py311\n", 2),
        (
            "conda.yml",
            "dependencies:\n  - pip\n  - pip:\n      - numpy\n      - tensorflow[and-cuda]==2.17\n",
            5,
        ),
    ],
)
def test_every_kind_of_file_is_read(path: str, text: str, line: int) -> None:
    too_new = found(path, text)
    assert too_new is not None
    assert too_new.startswith(f"{path}:{line} asks for ")
    assert is_declaration(path) is (path != "anything.txt")


@pytest.mark.parametrize(
    ("path", "text", "keras"),
    [
        (".env", "DEBUG=1\nTF_USE_LEGACY_KERAS=1\n", KERAS_LEGACY),
        (".env", "\nexport TF_USE_LEGACY_KERAS='True'\n", KERAS_LEGACY),
        ("environment.yml", "variables:\n  TF_USE_LEGACY_KERAS: 1\n", KERAS_LEGACY),
        ("environment.yml", "- tensorflow=2.17\nTF_USE_LEGACY_KERAS: 'true'\n", KERAS_LEGACY),
        (".env", "#TF_USE_LEGACY_KERAS=1\n", ""),
        (".env", "TF_USE_LEGACY_KERAS=0\n", ""),
        ("environment.yml", "- tensorflow=2.17\nTF_USE_LEGACY_KERAS: 0\n", KERAS_3),
    ],
)
def test_the_flag_of_a_file_of_an_environment(path: str, text: str, keras: str) -> None:
    runtime = judge(read_demands(path, text).demands)
    assert is_declaration(path)
    assert (runtime.keras if runtime is not None else "") == keras
    if keras == KERAS_LEGACY and "tensorflow" not in text:
        assert runtime is not None
        assert runtime.why == f"{path}:2 asks for tf-keras by TF_USE_LEGACY_KERAS"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = {version = "2.17", python = "^3.14"}\n'),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntensorflow = {version = "2.17", platform = "darwin"}\n',
        ),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = {version = "2.17", python = "later"}\n'),
        ("pyproject.toml", "[tool.poetry.dependencies]\ntensorflow = {path = '../tensorflow'}\n"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntensorflow = "later"\n'),
        ("pyproject.toml", '[project]\ndependencies = "tensorflow==2.17"\n'),
        ("pyproject.toml", '[project]\ndependencies = [3, "tensorflow==2.17"\n'),
        ("pyproject.toml", '[other]\ndependencies = ["tensorflow==2.17"]\n'),
        ("pyproject.toml", "project = 3 # tensorflow\n"),
        ("Pipfile", "[packages]\ntensorflow = {version = '==2.17', markers = \"python_version > '3.13'\"}\n"),
        ("Pipfile.lock", '{"default": {"tensorflow": 3, "keras": {}}, "develop": []}'),
        ("Pipfile.lock", '["tensorflow"]'),
        ("Pipfile.lock", '{"tensorflow":'),
        ("setup.cfg", "tensorflow==2.17\n"),
        ("setup.cfg", "[options\ninstall_requires = tensorflow==2.17\n"),
        ("poetry.lock", '[[package]]\nname = "tensorflow"\nversion = \n'),
        ("poetry.lock", '[[package]]\nname = "tensorflow"\n'),
        ("environment.yml", "dependencies:\n  - tensorflow=(2.16)\n  tensorflow=2.16\n"),
        ("environment.yml", "- tensorflow 2.15.*|2.16.*\n"),
        ("requirements.txt", "\0tensorflow==2.17\n"),
        ("setup.py", "setup(install_requires=['tensorflow==2.17'\n"),
        ("setup.py", "setup(keywords=['tensorflow==2.17'])\n"),
    ],
)
def test_what_does_not_apply_or_is_broken_is_left_out(path: str, text: str) -> None:
    assert found(path, text) is None


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ("^2.16", "too new"),
        ("^2.15", "open"),
        ("^2", "open"),
        ("^2.15.1", "open"),
        ("~2.16.1", "too new"),
        ("~2.15", "fits"),
        ("~2", "open"),
        ("2.17", "too new"),
        ("=2.15.0", "fits"),
        ("2.*", "open"),
        ("*", "open"),
        (">=2.16 <3", "too new"),
        ("^2.16 || ^3.0", "too new"),
        ("~2.15 || ^2.17", "open"),
        ("~2.14 | ~2.15", "fits"),
    ],
)
def test_the_syntax_of_poetry(constraint: str, expected: str) -> None:
    too_new = found("pyproject.toml", f'[tool.poetry.dependencies]\ntensorflow = "{constraint}"\n')
    assert too_new == {
        "too new": f"pyproject.toml:2 asks for tensorflow {constraint}",
        "fits": "",
        "open": None,
    }.get(expected)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("tensorflow=2.16", "too new"),
        ("tensorflow=2", "open"),
        ("tensorflow==2.16.1", "too new"),
        ("tensorflow 2.16.*", "too new"),
        ("tensorflow 2.16*", "too new"),
        ("tensorflow 2.15.0 cuda118py310", "fits"),
        ("tensorflow =2.15", "fits"),
        ("tensorflow>=2.16", "too new"),
        ("tensorflow >= 2.16, <3", "too new"),
        ("tensorflow >=2.12,<2.16", "fits"),
        ("tensorflow >=2.12", "open"),
        ("tensorflow 2.16.*|2.17.*", "too new"),
        ("tensorflow *", "open"),
        ("tensorflow=*=gpu*", "open"),
        ("tensorflow=2.17.0=gpu_py311", "too new"),
        ('"tensorflow=2.16"', "too new"),
        ("tensorflow=2.16  # [linux]", "too new"),
        ("tensorflow-probability=0.24", "open"),
    ],
)
def test_the_syntax_of_conda(item: str, expected: str) -> None:
    too_new = found("environment.yml", f"dependencies:\n  - pip:\n    - numpy\n  - {item}\n")
    verdict = "open" if too_new is None else "too new" if too_new else "fits"
    assert verdict == expected


@pytest.mark.parametrize("path", ["poetry.lock", "uv.lock", "pdm.lock"])
def test_lock_files_name_one_version(path: str) -> None:
    text = dedent(
        """\
        version = 1

        [[package]]
        name = "numpy"
        version = "2.0.0"
        dependencies = [{{ name = "tensorflow" }}]

        [[package]]
        name = "tensorflow"
        version = "{}"
        source = {{ registry = "https://pypi.org/simple" }}

        [package.dependencies]
        keras = ">=3.0.0"

        [metadata]
        lock-version = "2.0"
        """
    )
    assert found(path, text.format("2.17.0")) == f"{path}:9 asks for tensorflow 2.17.0"
    assert found(path, text.format("2.15.1").replace("\n", "\r\n")) == ""


def test_a_standard_lock_file() -> None:
    text = '[[packages]]\nname = "keras"\nversion = "3.1.0"\nwheels = [{ name = "a.whl" }]\n'
    assert found("pylock.toml", text) == "pylock.toml:2 asks for keras 3.1.0"


def test_a_lock_file_of_pipenv() -> None:
    package = {"hashes": [], "index": "pypi", "version": "==2.17.0"}
    text = json.dumps({"_meta": {}, "default": {"tensorflow": package}}, indent=1)
    assert found("Pipfile.lock", text) == "Pipfile.lock:4 asks for tensorflow 2.17.0"


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("resolution-markers = [\"python_full_version >= '3.14'\"]", None),
        (
            "resolution-markers = [\"python_full_version >= '3.14'\", \"python_full_version < '3.14'\"]",
            "uv.lock:2 asks for tensorflow 2.17.0",
        ),
        ("markers = \"python_version >= '3.14'\"", None),
        ("markers = { main = \"python_version >= '3.14'\" }", None),
        ('markers = ""', "uv.lock:2 asks for tensorflow 2.17.0"),
        ("marker = \"sys_platform == 'darwin'\"", None),
    ],
)
def test_the_markers_of_a_locked_package(marker: str, expected: str | None) -> None:
    text = f'[[package]]\nname = "tensorflow"\nversion = "2.17.0"\n{marker}\n'
    assert found("uv.lock", text) == expected


def test_alternatives_of_which_one_fits() -> None:
    assert found("uv.lock", _locked("2.15.1") + _locked("2.17.0")) == ""
    assert found("requirements.txt", "tensorflow>=2.16\ntensorflow-cpu==2.15\n") == ""
    assert found("requirements.txt", "tensorflow>=2.4\nkeras>=3\n") == "requirements.txt:2 asks for keras >=3"


def test_a_lock_file_decides_over_a_range() -> None:
    ranged = read_demands("pyproject.toml", '[project]\ndependencies = ["tensorflow>=2.16"]\n').demands
    older = read_demands("uv.lock", _locked("2.15.1")).demands
    newer = read_demands("uv.lock", _locked("2.17.0")).demands
    assert judge([*ranged, *older]) == FITS
    assert judge([*read_demands("requirements.txt", "tensorflow<2.16").demands, *newer]) == Runtime(
        "uv.lock:2 asks for tensorflow 2.17.0"
    )


@pytest.mark.parametrize(
    "filler", ["\n", " ", "a", "-", "\\\n", "[[package]]\n", '"', "- tensorflow\n", "tensorflow "]
)
@pytest.mark.parametrize(
    "path", ["requirements.txt", "environment.yml", "uv.lock", "setup.cfg", "pyproject.toml"]
)
@pytest.mark.sampled
def test_a_long_file_takes_no_longer_than_its_length(path: str, filler: str) -> None:
    text = f"tensorflow{filler * 20_000}keras\n"
    started = time.process_time()
    read_demands(path, text)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "path", ["requirements.txt", "environment.yml", "Pipfile", "setup.cfg", "poetry.lock"]
)
@given(text=st.text(st.sampled_from("tensorflow=<>~^|*.,;@-[]{}()'\"\\#: \n\r\t\0é1230")))
def test_any_text_is_read(path: str, text: str) -> None:
    for each in (text, f"tensorflow{text}", f'[packages]\ntensorflow = "{text}"\n', f"[options]\n{text}"):
        judge(read_demands(path, each).demands)


def test_the_files_that_a_list_includes() -> None:
    text = "-r base.txt\n--requirement=more.txt  # these too\n-c constraints.txt\n-rlast.txt\n--pre\n"
    assert read_demands("requirements.txt", text).includes == (
        "base.txt",
        "more.txt",
        "constraints.txt",
        "last.txt",
    )
    assert read_demands("environment.yml", "- pip:\n  - -r a.txt\n").includes == ("a.txt",)


class TestConvert:
    NEW = Runtime("requirements.txt:3 asks for tensorflow 2.17.1")

    KERAS_2 = Choices(keras="2")

    def test_is_refused_where_it_would_convert(self) -> None:
        result = convert(SCRIPT, runtime=self.NEW, choices=self.KERAS_2)
        assert (result.status, result.text) == (Status.REFUSED, SCRIPT)
        assert result.reason == (
            "requirements.txt:3 asks for tensorflow 2.17.1; Horovod 0.28.1 works with TensorFlow 2.12 to "
            "2.15 (from 2.16 on, Keras 3 breaks its tape and its callbacks)"
        )
        assert convert(SCRIPT, line=4, runtime=self.NEW, choices=self.KERAS_2).status is Status.REFUSED

    def test_is_written_for_the_keras_that_is_asked_for(self) -> None:
        result = convert(SCRIPT, runtime=self.NEW)
        assert "tf.Variable(False, trainable=False)" in result.text
        (told,) = (each.text for each in result.decisions if each.rule == "HV01")
        assert told == "written for Keras 3, because requirements.txt:3 asks for tensorflow 2.17.1"
        legacy = replace(self.NEW, is_legacy=True)
        assert (self.NEW.keras, FITS.keras, legacy.keras) == ("3", "2", "tf_keras")
        assert replace(self.NEW, is_ignored=True).keras == ""
        result = convert(SCRIPT, runtime=legacy)
        assert 'os.environ["TF_USE_LEGACY_KERAS"] = "1"' in result.text
        assert "hvd.DistributedGradientTape" in result.text
        (told,) = (each.text for each in result.decisions if each.rule == "HV01")
        assert (
            told == "written for Keras 2 by tf_keras, because requirements.txt:3 asks for tensorflow 2.17.1"
        )

    def test_what_a_person_chose_or_the_versions_ask_for_is_before_the_signs(self) -> None:
        signed = SCRIPT + "print(tf.keras.ops.zeros(1))\n"
        assert "tf.Variable(False" in convert(signed).text
        assert "tf.Variable(False" not in convert(signed, choices=self.KERAS_2).text
        assert "tf.Variable(False" not in convert(signed, runtime=FITS).text
        legacy = signed + "tf.keras.optimizers.legacy.Adam()\n"
        assert "tf.Variable(False" not in convert(legacy).text
        (doubt,) = (each.text for each in convert(legacy, choices=Choices(keras="3")).doubts)
        assert doubt.startswith("written for Keras 3, but line ")

    def test_names_the_way_out(self) -> None:
        runtime = Runtime(self.NEW.too_new, "--force converts anyway")
        reason = convert(SCRIPT, runtime=runtime, choices=self.KERAS_2).reason
        assert reason.endswith("; --force converts anyway")

    def test_a_fit_is_refused_also_where_versions_are_ignored(self) -> None:
        runtime = Runtime(self.NEW.too_new, asks="tensorflow 2.17.1", is_ignored=True)
        assert runtime.refusal(fit=True).endswith(
            "; there, Horovod would silently train fit without averaging"
        )
        assert runtime.refusal() == ""
        assert replace(runtime, is_legacy=True).refusal(fit=True) == ""
        assert self.NEW.refusal(newer=True) == ""

    @pytest.mark.parametrize("runtime", [None, FITS])
    def test_converts_where_the_versions_fit(self, runtime: Runtime | None) -> None:
        assert convert(SCRIPT, runtime=runtime).status is Status.CONVERTED

    def test_other_answers_stay(self) -> None:
        converted = convert(SCRIPT).text
        assert convert(converted, runtime=self.NEW, choices=self.KERAS_2) == convert(converted)
        assert convert(converted).status is Status.ALREADY_DISTRIBUTED
        for text in ("x = 1\n", "x = (\n", SCRIPT + "tf.distribute.TPUStrategy()\n"):
            assert convert(text, runtime=self.NEW, choices=self.KERAS_2) == convert(text)

    def test_says_what_becomes_of_an_estimator(self) -> None:
        assert self.NEW.refusal(estimator=True).endswith(
            "callbacks), and tf.estimator was removed after TensorFlow 2.15"
        )


def _locked(version: str) -> str:
    return f'[[package]]\nname = "tensorflow"\nversion = "{version}"\n'
