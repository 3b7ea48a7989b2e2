"""Tensors that a program passes to its root modules."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest
import torch
from offprof.root_calls import RootCalls, inputs_of


class Calls:
    """Notes what is reported."""

    def __init__(self) -> None:
        self.inputs: list[torch.Tensor] = []
        self.outputs: list[torch.Tensor] = []
        self.watch = RootCalls(self.inputs.extend, self.outputs.extend)


@pytest.fixture
def calls() -> Iterator[Calls]:
    result = Calls()
    yield result
    result.watch.remove()


class Named(torch.nn.Module):
    """A module that takes its tensors by name, and returns them in containers."""

    def forward(self, *, batch: dict[str, torch.Tensor], mask: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        return {"results": [batch["features"] * 2, mask]}


def test_tensors_in_containers_and_keyword_arguments_are_reported(calls: Calls) -> None:
    module, features, mask = Named(), torch.ones(2), torch.zeros(3)
    calls.watch.install([module])
    result = module(batch={"features": features}, mask=mask)
    assert [id(tensor) for tensor in calls.inputs] == [id(features), id(mask)]
    assert [id(tensor) for tensor in calls.outputs] == [id(tensor) for tensor in result["results"]]


def test_a_tensor_with_a_history_is_no_input() -> None:
    leaf = torch.ones(2, requires_grad=True)
    assert [id(tensor) for tensor in inputs_of([leaf, leaf * 2, "text", None])] == [id(leaf)]


def test_a_removed_watch_reports_nothing(calls: Calls) -> None:
    module = torch.nn.Identity()
    calls.watch.install([module])
    calls.watch.remove()
    module(torch.ones(2))
    assert calls.inputs == []
    assert not module._forward_pre_hooks
    assert not module._forward_hooks


def test_a_watched_module_can_be_copied(calls: Calls) -> None:
    module = torch.nn.Linear(2, 2)
    calls.watch.install([module])
    copy.deepcopy(module)(torch.ones(1, 2))
    assert len(calls.inputs) == 1


def test_a_file_with_a_watched_module_has_no_watch(calls: Calls) -> None:
    module = torch.nn.Linear(2, 2)
    calls.watch.install([module])
    data = pickle.dumps(module)
    assert b"offprof" not in data
    restored = pickle.loads(data)
    restored(torch.ones(1, 2))
    assert calls.inputs == []


def test_a_module_that_is_compiled_as_a_whole_is_left_alone(calls: Calls) -> None:
    module = torch.nn.Identity()
    module._compiled_call_impl = module._call_impl
    calls.watch.install([module])
    assert not module._forward_pre_hooks
