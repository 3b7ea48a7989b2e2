"""Tensors of classes that wrap a plain tensor with the data."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def unwrap(tensor: Any) -> tuple[Any, Callable[[Any], Any]] | None:
    """Takes a tensor that an operator saves apart: into a plain tensor, and a function that wraps another like it.

    The function holds neither tensor. Of a DTensor, the plain tensor is the part of this rank. A tensor that waits for
    a collective is waited for: the operator is about to read it. Returns None for a plain tensor, and for one of
    another class.
    """
    distributed = sys.modules.get("torch.distributed.tensor")
    if distributed is None or not isinstance(tensor, distributed.DTensor):
        inner = _waited(tensor)
        return None if inner is tensor else (inner, lambda plain: plain)
    (name,), context = tensor.__tensor_flatten__()
    inner = _waited(getattr(tensor, name))
    if type(inner) is not sys.modules["torch"].Tensor:
        return None
    kind, sizes, strides = type(tensor), tensor.size(), tensor.stride()

    def wrap(plain: Any) -> Any:
        return kind.__tensor_unflatten__({name: plain}, context, sizes, strides)

    return inner, wrap


def _waited(tensor: Any) -> Any:
    """Returns the result of the collective that the tensor stands for, or the tensor itself if it is another one."""
    collectives = sys.modules.get("torch.distributed._functional_collectives")
    if collectives is None or not isinstance(tensor, collectives.AsyncCollectiveTensor):
        return tensor
    return tensor.trigger_wait()
