"""Operations: the effects of `tf.data`'s methods and functions on the number and order of elements."""

from __future__ import annotations

# The number of results depends only on the number of elements; each result comes from its own element.
ELEMENTWISE = frozenset(
    {"map", "prefetch", "enumerate", "with_options", "as_numpy_iterator", "make_one_shot_iterator"}
)
BATCHING = frozenset({"batch", "padded_batch", "ragged_batch", "sparse_batch", "dense_to_ragged_batch"})
SHUFFLING = frozenset({"shuffle", "shuffle_and_repeat"})
JOINING = frozenset({"zip", "concatenate"})
# For a share of the input, these return the same share of the output.
PASSABLE = ELEMENTWISE | BATCHING | JOINING | {"shuffle", "cache", "repeat", "iter", ""}
# The number of results depends on the elements themselves.
UNCOUNTED = frozenset(
    {
        "bucket_by_sequence_length", "choose_from_datasets", "dense_to_sparse_batch", "filter", "flat_map",
        "group_by_reducer", "group_by_window", "ignore_errors", "interleave",
        "parallel_interleave", "rejection_resample", "sample_from_datasets", "scan", "take_while", "unbatch",
        "unique",
    }
)  # fmt: skip
# The methods of a dataset that return another dataset (True), or an iterator.
METHODS: dict[str, bool] = {
    **dict.fromkeys(
        PASSABLE | UNCOUNTED | {"apply", "shard", "skip", "snapshot", "take", "window"} - {"", "iter"},
        True,
    ),
    "as_numpy_iterator": False,
    "make_one_shot_iterator": False,
    "make_initializable_iterator": False,
}
# Functions that read the files of a folder, in two parts on request.
DIRECTORIES = ("image_dataset_from_directory", "text_dataset_from_directory", "audio_dataset_from_directory")
# Functions that make datasets of known length, and those that make datasets of unknown length.
COUNTED = frozenset(
    {
        "from_tensor_slices", "from_tensors", "range", "list_files", "load", "as_dataset",
        "timeseries_dataset_from_array", *DIRECTORIES,
    }
)  # fmt: skip
# Functions that read files one after the other, and whether they shuffle by default.
FILES = {
    **dict.fromkeys(
        ("CsvDataset", "FixedLengthRecordDataset", "SqlDataset", "TFRecordDataset", "TextLineDataset"), False
    ),
    **dict.fromkeys(("make_batched_features_dataset", "make_csv_dataset"), True),
}
# Functions that mix datasets randomly.
MIXING = frozenset({"choose_from_datasets", "rejection_resample", "sample_from_datasets"})
ENDLESS = frozenset({"Counter", "counter", "random", "RandomDataset"})
SOURCES = frozenset(
    {
        "tensorflow_datasets.load",
        "tensorflow_datasets.as_dataset",
        *(f"tensorflow.keras.preprocessing.{name}" for name in DIRECTORIES),
        *(f"tensorflow.keras.utils.{name}" for name in DIRECTORIES),
    }
)
# Functions that draw an order unless an argument turns it off: the argument, and its default.
DRAWING = {
    "list_files": ("shuffle", True),
    **dict.fromkeys(DIRECTORIES, ("shuffle", True)),
    "timeseries_dataset_from_array": ("shuffle", False),
    "load": ("shuffle_files", False),
    "as_dataset": ("shuffle_files", False),
}
# Functions of Python, and of other libraries, that return their iterable argument.
WRAPPERS = frozenset(
    {
        "builtins.enumerate", "builtins.iter", "builtins.zip", "rich.progress.track",
        "tensorflow_datasets.as_numpy", "progressbar.progressbar", "alive_progress.alive_it",
    }
)  # fmt: skip
