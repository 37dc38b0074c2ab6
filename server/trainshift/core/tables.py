"""Names as data: the calls that print, write or otherwise concern one rank only.

Full names are as imported; names of methods stand for a receiver that is no object of a class of
the script's own which defines them.
"""

from __future__ import annotations

_LOG_LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception", "log", "fatal")

# Functions whose one effect is text on the terminal.
PRINTING = frozenset(
    {
        "builtins.print",
        "tensorflow.print",
        "pprint.pprint",
        "sys.stdout.write",
        "sys.stderr.write",
        "sys.stdout.flush",
        "tqdm.tqdm.write",
        "tqdm.auto.tqdm.write",
        "rich.print",
        "click.echo",
        *(f"{module}.{level}" for level in _LOG_LEVELS for module in ("logging", "absl.logging")),
        *(f"tensorflow.compat.v1.logging.{level}" for level in _LOG_LEVELS),
        *(f"tensorflow.logging.{level}" for level in _LOG_LEVELS),
    }
)

# Methods whose one effect is text on the terminal, by what made their object.
PRINTING_METHODS = {
    "logging.getLogger": frozenset(_LOG_LEVELS),
    "absl.logging.get_absl_logger": frozenset(_LOG_LEVELS),
    "tensorflow.get_logger": frozenset(_LOG_LEVELS),
    "tqdm.tqdm": frozenset({"write"}),
    "tqdm.auto.tqdm": frozenset({"write"}),
    "rich.console.Console": frozenset({"print", "log", "rule"}),
}

# Progress bars that a `disable` argument silences.
PROGRESS_BARS = frozenset(
    f"{module}.{name}"
    for module in ("tqdm", "tqdm.auto", "tqdm.std", "tqdm.notebook", "tqdm.asyncio", "tqdm.rich")
    for name in ("tqdm", "trange", "tqdm_notebook", "tnrange")
)

# Keras' own progress bar, which `verbose=0` silences.
KERAS_BAR = "tensorflow.keras.utils.Progbar"

# Functions that write, move or delete files.
WRITING = frozenset(
    {
        "tensorflow.saved_model.save",
        "tensorflow.keras.models.save_model",
        "tensorflow.keras.utils.plot_model",
        "tensorflow.keras.utils.save_img",
        "tensorflow.keras.preprocessing.image.save_img",
        "tensorflow.io.write_file",
        "tensorflow.io.write_graph",
        "tensorflow.io.gfile.makedirs",
        "tensorflow.io.gfile.mkdir",
        "tensorflow.io.gfile.remove",
        "tensorflow.io.gfile.rmtree",
        "tensorflow.io.gfile.rename",
        "tensorflow.io.gfile.copy",
        "tensorflow.summary.trace_on",
        "tensorflow.summary.trace_export",
        "tensorflow.profiler.experimental.start",
        "tensorflow.profiler.experimental.stop",
        "matplotlib.pyplot.savefig",
        "matplotlib.pyplot.imsave",
        "matplotlib.image.imsave",
        "numpy.save",
        "numpy.savez",
        "numpy.savez_compressed",
        "numpy.savetxt",
        "cv2.imwrite",
        "imageio.imwrite",
        "imageio.imsave",
        "imageio.mimsave",
        "imageio.mimwrite",
        "imageio.v2.imwrite",
        "imageio.v2.mimsave",
        "imageio.v3.imwrite",
        "skimage.io.imsave",
        "scipy.misc.imsave",
        "scipy.io.savemat",
        "scipy.io.wavfile.write",
        "soundfile.write",
        "joblib.dump",
        "pickle.dump",
        "json.dump",
        "yaml.dump",
        "os.makedirs",
        "os.mkdir",
        "os.remove",
        "os.unlink",
        "os.rename",
        "os.replace",
        "os.rmdir",
        "shutil.rmtree",
        "shutil.copy",
        "shutil.copy2",
        "shutil.copyfile",
        "shutil.copytree",
        "shutil.move",
        "logging.basicConfig",
    }
)

# Functions that only write when they are given this argument.
WRITING_IF_GIVEN = {"logging.basicConfig": "filename"}

# Functions that ranks may all call at once when they are given this argument.
HARMLESS_IF_GIVEN = {"os.makedirs": "exist_ok"}

# Methods of TensorFlow's objects that write (or, for weights, load on one rank before the broadcast).
MODEL_WRITING = frozenset({"save", "save_weights", "load_weights", "summary", "export"})
CHECKPOINT_WRITING = frozenset({"save", "write"})

# Methods of checkpoints that read back, on rank 0 with a broadcast once training has begun.
RESTORING = frozenset({"restore", "read", "restore_or_initialize"})

# Methods that write whatever their object is, unless the script defines them itself.
WRITING_METHODS = frozenset(
    {
        "save",
        "save_weights",
        "load_weights",
        "summary",
        "write",
        "writelines",
        "writerow",
        "writerows",
        "savefig",
        "imsave",
        "to_csv",
        "to_json",
        "to_pickle",
        "to_excel",
        "write_text",
        "write_bytes",
        "mkdir",
    }
)

# Of those, the ones that only return text when they are given no path.
PATH_WRITING = frozenset({"to_csv", "to_json", "to_excel", "to_pickle"})

# Of those, the ones that are common names for other things too: a doubt where the object is unknown.
DOUBTFUL_METHODS = frozenset({"save", "summary", "write"})

# Functions that open a file for writing: the place and name of the path, and of the mode, if any.
OPENING = {
    "builtins.open": ("file", "mode"),
    "io.open": ("file", "mode"),
    "codecs.open": ("filename", "mode"),
    "gzip.open": ("filename", "mode"),
    "tensorflow.io.gfile.GFile": ("name", "mode"),
    "tensorflow.io.TFRecordWriter": ("path", None),
    "logging.FileHandler": ("filename", None),
    "logging.handlers.RotatingFileHandler": ("filename", None),
    "logging.handlers.TimedRotatingFileHandler": ("filename", None),
}

# Context managers that write a file of their own: the whole `with` goes under the guard.
WRITING_CONTEXTS = frozenset(
    {"imageio.get_writer", "imageio.v2.get_writer", "h5py.File", "zipfile.ZipFile", "tarfile.open"}
)

# Calls that change what later steps see, so that every rank must make them.
ACTING = frozenset(
    {
        "next",
        "get_next",
        "input",
        "assign",
        "assign_add",
        "assign_sub",
        "pop",
        "popleft",
        "popitem",
        "append",
        "extend",
        "insert",
        "remove",
        "send",
        "update_state",
        "reset_state",
        "reset_states",
        "train_on_batch",
        "fit",
        "fit_generator",
        "seed",
        "set_seed",
        "minimize",
        "apply_gradients",
    }
)

# TensorFlow calls that may stand between imports: they run nothing on a device.
QUIET_TENSORFLOW = (
    "tensorflow.config.",
    "tensorflow.random.",
    "tensorflow.get_logger",
    "tensorflow.autograph.set_verbosity",
    "tensorflow.keras.utils.set_random_seed",
    "tensorflow.keras.backend.set_",
    "tensorflow.compat.v1.enable_",
    "tensorflow.compat.v1.disable_",
    "tensorflow.enable_",
    "tensorflow.executing_eagerly",
    "tensorflow.compat.v1.logging.set_verbosity",
    "tensorflow.compat.v1.set_random_seed",
)

# Context managers among them that may also read, told apart by their mode.
READING_TOO = frozenset({"h5py.File", "zipfile.ZipFile", "tarfile.open"})

# Every method that may concern rank 0 only.
ROOT_ONLY_METHODS = (
    WRITING_METHODS.union(*PRINTING_METHODS.values())
    | MODEL_WRITING
    | CHECKPOINT_WRITING
    | RESTORING
    | {"evaluate", "predict"}
)

# Whatever a rewrite may put under a test of the rank, so that Horovod must be set up before it.
ROOT_ONLY_NAMES = frozenset(
    {name.rpartition(".")[2] for name in (*PRINTING, *WRITING, *PROGRESS_BARS, *OPENING)}
    | WRITING_METHODS
    | MODEL_WRITING
    | CHECKPOINT_WRITING
    | ROOT_ONLY_METHODS
    | {"create_file_writer", "Progbar", *(name.rpartition(".")[2] for name in WRITING_CONTEXTS)}
)
