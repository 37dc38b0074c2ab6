"""Shapes that layers return; unknown dimensions stay unknown."""

from __future__ import annotations

import re

from trainshift.static_graphs.domain.abstract_values import OPEN_SIZES, Dim, Shape, Size

# Layers by a part of their names.
_KEEPS = re.compile(
    r"(Sync)?BatchNorm(\dD)?|(Layer|Group|InstanceNorm\dD|Instance|LocalResponse)Norm|InstanceNorm\dD"
    r"|(Alpha|FeatureAlpha)?Dropout(\dD)?|Identity|(Leaky|P|R|Thresholded)?ReLU6?|C?ELU|SELU|GELU|Mish|Si[Ll][Uu]"
    r"|Swish|(Log)?(Sigmoid|Softmax)|Softmax2D|(Hard|Soft|Tanh)(sigmoid|swish|tanh|shrink|plus|sign)|Tanh"
)
_IMAGES = re.compile(r"(Conv|MaxPool|AvgPool|LPPool|MaxUnPool)(\d)[Dd](Transpose)?")
_LAST = frozenset({"Linear"})
_DEEPER = frozenset({"Embedding"})


def shape_after(layer: str, shape: Shape | None, *, options: frozenset[str] = frozenset()) -> Shape | None:
    """The output shape of a Paddle layer for an input shape; None if it is unknown.

    `options` are the names of its constructor arguments.
    """
    name = layer.rpartition(".")[2]
    if shape is None:
        return None
    if _KEEPS.fullmatch(name):
        return shape
    if name in _LAST:
        return (*shape[:-1], Dim.ANY) if shape else None
    if name in _DEEPER:
        return (*shape, Dim.ANY)
    image = _IMAGES.fullmatch(name)
    if image is not None and len(shape) == int(image[2]) + 2 and not options & {"data_format", "return_mask"}:
        return of_images(shape, channels=shape[1] if "Pool" in name else Dim.ANY)
    return None


def of_images(shape: Shape, channels: Size = Dim.ANY) -> Shape:
    """The shape of resized images: the batch stays, and unknown sizes stay unknown."""
    return (shape[0], channels, *(size if size in OPEN_SIZES else Dim.ANY for size in shape[2:]))
