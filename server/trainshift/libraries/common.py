"""Libraries: those that scripts import most, by the name of their first package."""

from __future__ import annotations

import sys

# The libraries whose members the rules know.
ROOTS = frozenset({"tensorflow", "keras"})
# Third-party libraries that scripts import most: none of them sets TensorFlow up.
_COMMON = frozenset(
    {
        "PIL", "absl", "albumentations", "boto3", "catboost", "cv2", "einops", "fastai", "gensim", "gym",
        "gymnasium", "h5py",
        "horovod", "imageio", "imblearn", "joblib", "keras", "lightgbm", "lightning", "matplotlib", "mpi4py",
        "networkx", "nltk", "numpy", "pandas", "psutil", "pylab", "pytorch_lightning", "sagemaker", "scipy",
        "seaborn",
        "skimage", "sklearn", "statsmodels", "tabulate", "tensorboard", "tensorflow", "tensorflow_addons",
        "tensorflow_datasets", "tensorflow_hub", "tensorflow_probability", "termcolor", "torch",
        "torchvision", "tqdm", "umap", "wandb", "xgboost", "yaml",
    }
)  # fmt: skip


# Functions that give a module, whose members are not those of their own library.
IMPORTERS = ("importlib.import_module", "importlib.__import__", "builtins.__import__")
_IMPORTED = tuple(f"{each}." for each in IMPORTERS)


def is_common(full_name: str) -> bool:
    """Return whether a module belongs to the standard library, or to a known library."""
    if full_name.startswith(_IMPORTED):
        return False
    root = full_name.partition(".")[0]
    return root in _COMMON or root in sys.stdlib_module_names or root == "builtins"
