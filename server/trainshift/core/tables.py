"""Names as data: the calls that print, write or otherwise concern one rank only.

Full names are as imported; names of methods stand for a receiver that is no object of a class of
the script's own which defines them.
"""

from __future__ import annotations

from trainshift.libraries.containers import MUTATING

RANGES = frozenset({"builtins.range", "numpy.arange", "tensorflow.range"})
"""Functions that count and give the numbers; so do bars such as `trange`."""
AROUND = frozenset({"builtins.enumerate", "builtins.iter", "builtins.list", "builtins.reversed"})
"""Functions that go through as many elements as their first argument has; so do bars."""

# Objects of Keras that every rank needs and that `verbose=0` silences; some are silent by default.
TALKING = frozenset(
    {
        "tensorflow.keras.utils.Progbar",
        "tensorflow.keras.callbacks.EarlyStopping",
        "tensorflow.keras.callbacks.LearningRateScheduler",
        "tensorflow.keras.callbacks.ReduceLROnPlateau",
    }
)
SILENT = TALKING - {"tensorflow.keras.utils.Progbar"}

# What every rank does where it stands in a training loop, and no rewrite keeps to one (spec.md 5.24).
ON_EVERY_RANK = {
    "builtins.input": "waits for input",
    "builtins.exit": "may end its script while the others train on",
    "builtins.quit": "may end its script while the others train on",
    "sys.exit": "may end its script while the others train on",
    "os._exit": "may end its script while the others train on",
    "matplotlib.pyplot.show": "shows the figure",
    "cv2.imshow": "shows the image",
    "cv2.waitKey": "waits for a key",
}

# Methods of TensorFlow's objects that write (or, for weights, load on one rank before the broadcast).
MODEL_WRITING = frozenset(
    {"save", "save_weights", "load_weights", "summary", "export", "save_pretrained", "push_to_hub"}
)
CHECKPOINT_WRITING = frozenset({"save", "write", "export_meta_graph"})

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
        "to_html",
        "to_latex",
        "to_markdown",
        "to_netcdf",
        "to_xml",
        "to_zarr",
        "to_json",
        "to_pickle",
        "to_excel",
        "to_feather",
        "to_hdf",
        "to_parquet",
        "save_to_preset",
        "save_pretrained",
        "save_to_disk",
        "push_to_hub",
        "tofile",
        "dump",
        "write_out",
        "write_text",
        "write_bytes",
        "mkdir",
    }
)

# Of those, the ones that only return text when they are given no path.
PATH_WRITING = frozenset(
    {
        "to_html",
        "to_latex",
        "to_markdown",
        "to_xml",
        "to_csv",
        "to_json",
        "to_excel",
        "to_parquet",
        "to_pickle",
    }
)

# Of those, the ones that are common names for other things too: a doubt where the object is unknown.
DOUBTFUL_METHODS = frozenset({"save", "summary", "write", "dump"})

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

# Functions that read a file or a directory: the name of their first argument, which is its path.
READING = {
    "tensorflow.keras.models.load_model": "filepath",
    "tensorflow.saved_model.load": "export_dir",
    "numpy.load": "file",
    "numpy.loadtxt": "fname",
    "numpy.genfromtxt": "fname",
    "pandas.read_csv": "filepath_or_buffer",
    "joblib.load": "filename",
    "matplotlib.pyplot.imread": "fname",
    "matplotlib.image.imread": "fname",
    "imageio.imread": "uri",
    "cv2.imread": "filename",
    "PIL.Image.open": "fp",
    "os.listdir": "path",
    "glob.glob": "pathname",
    "builtins.open": "file",
    "zipfile.ZipFile": "file",
    "tarfile.open": "name",
    "io.open": "file",
    "codecs.open": "filename",
    "gzip.open": "filename",
    "h5py.File": "name",
    "pandas.read_excel": "io",
    "pandas.read_hdf": "path_or_buf",
    "pandas.read_json": "path_or_buf",
    "pandas.read_parquet": "path",
    "pandas.read_pickle": "filepath_or_buffer",
    "pandas.read_table": "filepath_or_buffer",
    "tensorflow.data.TFRecordDataset": "filenames",
    "tensorflow.data.TextLineDataset": "filenames",
    "tensorflow.io.gfile.GFile": "name",
}

# Functions of TensorFlow that add nothing to a graph, by the beginning of their names.
NO_OPERATIONS = (
    "tensorflow.compat.as_",
    "tensorflow.as_string_",
    "tensorflow.executing_eagerly",
    "tensorflow.io.gfile.",
    "tensorflow.compat.v1.gfile.",
    "tensorflow.test.",
    "tensorflow.config.",
    "tensorflow.version.",
    "tensorflow.train.latest_checkpoint",
    "tensorflow.train.list_variables",
    "tensorflow.train.get_checkpoint_state",
    "tensorflow.train.SummaryWriter",
    "tensorflow.estimator.",
    "tensorflow.compat.v1.estimator.",
    "tensorflow.compat.v1.Session",
    "tensorflow.compat.v1.InteractiveSession",
    "tensorflow.compat.v1.ConfigProto",
    "tensorflow.compat.v1.GPUOptions",
    "tensorflow.compat.v1.RunOptions",
    "tensorflow.compat.v1.RunMetadata",
    "tensorflow.compat.v1.Summary",
    "tensorflow.compat.v1.get_collection",
    "tensorflow.compat.v1.get_default_",
    "tensorflow.compat.v1.get_variable_scope",
    "tensorflow.compat.v1.trainable_variables",
    "tensorflow.compat.v1.global_variables",
    "tensorflow.compat.v1.all_variables",
    "tensorflow.compat.v1.model_variables",
    "tensorflow.compat.v1.logging.",
    "tensorflow.compat.v1.flags.",
    "tensorflow.compat.v1.train.global_step",
    "tensorflow.compat.v1.train.get_checkpoint_state",
    "tensorflow.compat.v1.train.latest_checkpoint",
    "tensorflow.compat.v1.summary.FileWriter",
    "tensorflow.compat.v1.train.write_graph",
    "tensorflow.io.write_graph",
    "tensorflow.python.client.timeline",
    "tensorflow.keras.",
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

# Of those, and of other names, the calls that train.
TRAINING_METHODS = frozenset(
    {"fit", "fit_generator", "train_on_batch", "minimize", "apply_gradients", "partial_fit", "fit_transform"}
)

# Methods that take an element away from what they are called on.
TAKING_METHODS = frozenset({"get_next", "__next__", "next", "next_batch", "readline"})

# Other methods that change their object, whatever it is.
CHANGING_METHODS = MUTATING | {
    "batch_scatter_update", "fit_on_texts", "itemset", "load_state_dict", "merge_state", "put", "put_nowait",
    "reset", "reset_metrics", "scatter_add", "scatter_nd_add", "scatter_nd_update", "scatter_sub",
    "scatter_update", "set_value", "set_weights", "setflags", "step",
}  # fmt: skip

# Methods of TensorFlow's objects that change them.
TENSORFLOW_CHANGING = frozenset(
    {"adapt", "build", "compile", "load_weights", "set_weights", "reset_metrics", "set_state", "fit_on_texts"}
)

# Functions of libraries that make files which they name themselves.
MAKING_FILES = frozenset(
    f"tempfile.{name}"
    for name in ("mkdtemp", "mkstemp", "NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory")
)

# Functions of libraries that act, and what they do.
CALLS = {
    "builtins.next": "takes the next element",
    "builtins.anext": "takes the next element",
    "builtins.input": "waits for input",
    "builtins.exec": "runs code",
    "builtins.setattr": "sets an attribute",
    "builtins.delattr": "deletes an attribute",
    "builtins.exit": "ends the script",
    "builtins.quit": "ends the script",
    "builtins.breakpoint": "stops the script",
    "sys.exit": "ends the script",
    "os._exit": "ends the script",
    "sys.stdin.readline": "reads the input",
    "sys.stdin.read": "reads the input",
    "getpass.getpass": "waits for input",
    "random.shuffle": "changes a list",
    "numpy.random.shuffle": "changes an array",
    "numpy.put": "changes an array",
    "numpy.place": "changes an array",
    "numpy.putmask": "changes an array",
    "numpy.copyto": "changes an array",
    "numpy.fill_diagonal": "changes an array",
    "heapq.heappop": "changes a list",
    "heapq.heappush": "changes a list",
    "bisect.insort": "changes a list",
    "os.chdir": "changes the directory",
    "os.putenv": "changes the environment",
    "os.environ.pop": "changes the environment",
    "os.environ.update": "changes the environment",
    "os.environ.setdefault": "changes the environment",
    "os.environ.clear": "changes the environment",
    "tensorflow.estimator.train_and_evaluate": "trains the estimator",
    "tensorflow.compat.v1.estimator.train_and_evaluate": "trains the estimator",
}

# Functions of known libraries of which nobody sees what they do.
UNSEEN_CALLS = frozenset(
    {
        "builtins.eval", "builtins.__import__", "os.system", "os.popen", "os.kill", "os.fork",
        "tensorflow.keras.utils.get_file",
    }
)  # fmt: skip

# Libraries whose functions and objects only give values, but for what is named above and below.
PURE_LIBRARIES = frozenset(
    {
        "tensorflow", "keras", "builtins", "numpy", "math", "cmath", "statistics", "time", "datetime",
        "calendar", "json", "string", "re", "textwrap", "itertools", "functools", "operator", "collections",
        "platform", "sys", "os", "pathlib", "pprint", "traceback", "inspect", "decimal", "fractions",
        "numbers", "hashlib", "uuid", "glob", "fnmatch", "copy", "random", "argparse", "struct", "base64",
        "zlib", "locale", "enum", "typing", "types", "dataclasses", "bisect", "heapq", "secrets", "resource",
        "gc", "io", "csv", "pickle", "importlib", "reprlib", "html", "difflib", "unicodedata", "getpass",
        "pwd", "shutil", "tempfile", "logging", "warnings", "contextlib", "timeit", "socket", "ast",
        "configparser", "tracemalloc", "pandas", "scipy", "sklearn", "skimage", "tabulate", "psutil",
        "prettytable", "einops", "humanize", "packaging", "cv2", "PIL", "tensorflow_probability",
        "tensorflow_addons", "tqdm", "networkx", "yaml", "absl", "matplotlib", "termcolor", "colorama",
        "seaborn", "pkg_resources",
    }
)  # fmt: skip

# How the names of their functions begin, or what they are, where they change global state.
SETTING = ("set_", "enable_", "disable_", "initialize_", "reset_", "clear_")
SEEDING = frozenset({"seed", "set_seed", "clear_session", "set_state"})
ASSIGNING = frozenset(
    {
        "assign", "assign_add", "assign_sub", "update", "update_add", "update_sub", "batch_set_value",
        "scatter_update", "scatter_add", "scatter_sub", "scatter_nd_update",
    }
)  # fmt: skip

# Functions of `tf.summary` that write.
SUMMARIES = frozenset({"scalar", "image", "histogram", "text", "audio", "write", "graph", "flush"})
WRITER_METHODS = frozenset({"flush", "close", "add_summary", "add_graph", "add_event", "reopen"})

# Functions of Horovod that all ranks call together.
COLLECTIVE = frozenset(
    {
        "allreduce", "allreduce_", "allgather", "alltoall", "allgather_object", "barrier", "broadcast",
        "broadcast_", "broadcast_object", "broadcast_object_fn", "broadcast_variables",
        "broadcast_global_variables", "grouped_allreduce", "grouped_allgather", "init", "join",
        "reducescatter", "grouped_reducescatter", "shutdown",
    }
)  # fmt: skip

# Functions that run none of the functions that they are handed.
NOT_CALLING = frozenset(
    f"builtins.{name}"
    for name in (
        "type", "id", "repr", "str", "callable", "hasattr", "getattr", "isinstance", "issubclass", "len",
        "print", "hash", "dir", "vars", "help",
    )
)  # fmt: skip
NOT_CALLING_MODULES = ("inspect.", "tensorflow.data.", "functools.partial", "tensorflow.function")

# What takes an open file on to another place in it.
FILE_READING = frozenset({"read", "read1", "readinto", "readline", "readlines", "seek"})

# What a file tells of itself without being read.
FILE_QUESTIONS = frozenset({"fileno", "isatty", "readable", "writable", "seekable", "tell"})

# Containers of which methods with harmless names take something away.
QUEUES = frozenset({"queue", "multiprocessing", "asyncio"})
QUEUE_METHODS = frozenset({"get", "put", "get_nowait", "put_nowait", "recv", "send", "join", "start"})

# Methods of paths that change files.
PATH_CHANGING = frozenset(
    {"chmod", "hardlink_to", "mkdir", "rename", "replace", "rmdir", "symlink_to", "touch", "unlink"}
)

# Methods of NumPy's and `random`'s objects that change what they are given or are called on.
ARRAY_CHANGING = frozenset({"fill", "resize", "seed", "shuffle"})

# Methods that tell too little: they may keep a state that nobody sees.
UNSEEN_METHODS = frozenset(
    {
        "evaluate", "predict", "evaluate_generator", "predict_generator", "predict_on_batch", "test_on_batch",
        "train_and_evaluate",
    }
)  # fmt: skip

# Methods that only give a value, whatever their object is: of strings, containers, arrays, tensors, dates,
# tables, layers, metrics and optimizers.
PURE_METHODS = frozenset(
    {
        # Strings and bytes.
        "format", "format_map", "join", "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize",
        "swapcase", "casefold", "center", "ljust", "rjust", "zfill", "replace", "split", "rsplit",
        "splitlines", "partition", "rpartition", "startswith", "endswith", "find", "rfind", "index", "count",
        "encode", "decode", "expandtabs", "isdigit", "isalpha", "isnumeric", "isspace", "isupper", "islower",
        "removeprefix", "removesuffix", "translate", "hex", "hexdigest", "digest",
        # Containers.
        "keys", "values", "items", "get", "copy", "most_common", "elements", "union", "intersection",
        "difference", "issubset", "issuperset", "isdisjoint", "qsize", "empty", "full",
        # Arrays and tensors.
        "numpy", "item", "tolist", "mean", "sum", "min", "max", "std", "var", "prod", "argmax", "argmin",
        "argsort", "round", "astype", "reshape", "flatten", "ravel", "transpose", "squeeze", "dot", "any",
        "all", "cumsum", "nonzero", "clip", "get_shape", "as_list", "num_elements", "set_shape",
        "is_compatible_with", "to_tensor", "value", "read_value", "to_list", "row_lengths", "bounding_shape",
        "cpu", "tobytes", "conj", "trace", "diagonal", "repeat", "swapaxes", "nbytes",
        # Dates, paths, matches.
        "strftime", "isoformat", "total_seconds", "timestamp", "date", "ctime", "timetuple", "weekday",
        "exists", "is_file", "is_dir", "as_posix", "resolve", "absolute", "relative_to", "with_suffix",
        "joinpath", "stat", "group", "groups", "groupdict", "match", "fullmatch", "search", "findall", "span",
        # Tables.
        "head", "tail", "describe", "info", "isnull", "isna", "notnull", "notna", "value_counts", "groupby",
        "unique", "nunique", "to_string", "to_markdown", "to_dict", "to_numpy", "to_html", "corr", "median",
        "mode", "quantile", "sort_values", "sort_index", "nlargest", "nsmallest", "agg", "aggregate",
        "memory_usage", "reset_index", "set_index", "idxmax", "idxmin", "sample", "duplicated",
        # Models, layers, metrics, optimizers, datasets.
        "result", "count_params", "get_config", "get_weights", "get_layer", "get_value", "summary",
        "variables", "learning_rate", "lr", "_decayed_lr", "cardinality", "as_numpy_iterator", "to_json",
        "get_vocabulary", "vocabulary_size", "get_params", "get_feature_names", "get_feature_names_out",
        "compute_output_shape", "get_input_shape_at", "get_output_shape_at", "get_input_at", "get_output_at",
        "latest_checkpoint", "pretty_format", "as_dict", "bit_length", "is_integer", "as_integer_ratio",
        "_asdict", "hexversion", "format_help", "format_usage", "__init__", "__str__", "__repr__", "__len__",
        "__class__", "__getitem__", "__format__", "model_dump", "dict", "json",
    }
)  # fmt: skip

# The variables of the environment that hide GPUs from a process.
DEVICE_VARIABLES = frozenset({"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"})
# What chooses among the GPUs that are not hidden, what limits the memory of one, and what lists them all.
SETS_VISIBLE = "tensorflow.config.set_visible_devices"
LIMITS_MEMORY = "tensorflow.config.set_logical_device_configuration"
LISTS_DEVICES = "tensorflow.config.list_physical_devices"

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

# Hooks of sessions that only show or write something: rank 0 does it for all.
WRITING_HOOKS = frozenset(
    f"tensorflow.estimator.{name}"
    for name in (
        "LoggingTensorHook", "CheckpointSaverHook", "SummarySaverHook", "StepCounterHook", "ProfilerHook",
    )
)  # fmt: skip

# Objects of TensorFlow 1 that write files, by what makes them, and the methods by which they do.
WRITERS = {
    "tensorflow.compat.v1.summary.FileWriter": frozenset(
        {
            "add_summary", "add_graph", "add_event", "add_meta_graph", "add_run_metadata", "add_session_log",
            "flush", "close", "reopen",
        }
    ),
    **dict.fromkeys(
        (
            "tensorflow.saved_model.builder.SavedModelBuilder",
            "tensorflow.saved_model.Builder",
            "tensorflow.compat.v1.saved_model.builder.SavedModelBuilder",
            "tensorflow.compat.v1.saved_model.Builder",
        ),
        frozenset({"add_meta_graph", "add_meta_graph_and_variables", "save"}),
    ),
}  # fmt: skip
WRITER_METHODS = frozenset().union(*WRITERS.values())

# Methods of an Estimator that write what it has trained.
EXPORTING = frozenset({"export_saved_model", "export_savedmodel", "experimental_export_all_saved_models"})

# How much TensorFlow logs, and the levels at which every rank would tell its progress.
VERBOSITY = frozenset(
    {
        "tensorflow.logging.set_verbosity",
        "tensorflow.compat.v1.logging.set_verbosity",
        "absl.logging.set_verbosity",
    }
)
TALKATIVE = frozenset({"INFO", "DEBUG", "info", "debug"})
# What sets a level, whatever it is called on.
LEVELS = frozenset({"set_verbosity", "setLevel"})

# Methods that make operations of a graph which every rank must run, where some rank does.
GRAPH_ACTING = (
    "assign", "assign_add", "assign_sub", "get_next", "dequeue", "dequeue_many", "enqueue",
    "global_variables_initializer", "initialize_all_variables", "variables_initializer", "scatter_update",
    "scatter_add", "scatter_sub", "minimize", "apply_gradients", "make_initializer",
)  # fmt: skip

# Every method that may concern rank 0 only.
ROOT_ONLY_METHODS = (
    WRITING_METHODS
    | MODEL_WRITING
    | CHECKPOINT_WRITING
    | RESTORING
    | EXPORTING
    | WRITER_METHODS
    | LEVELS
    | {"evaluate", "predict", "evaluate_generator", "predict_generator"}
)

# Methods of models that draw a progress bar.
EVALUATING = frozenset({"evaluate", "predict", "evaluate_generator", "predict_generator"})

# Whatever a rewrite may put under a test of the rank, so that Horovod must be set up before it.
ROOT_ONLY_NAMES = frozenset(
    {name.rpartition(".")[2] for name in OPENING}
    | WRITING_METHODS
    | MODEL_WRITING
    | CHECKPOINT_WRITING
    | ROOT_ONLY_METHODS
    | {"create_file_writer", *(name.rpartition(".")[2] for name in (*TALKING, *WRITERS, *VERBOSITY))}
)
