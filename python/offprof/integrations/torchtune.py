"""Activation offloading in torchtune's recipes.

`OffloadActivations` is a component for a recipe's configuration:

::

    activation_offloading:
      _component_: offprof.integrations.torchtune.OffloadActivations
      policy: policy.json

The recipe then has one other line, in `_setup_model`:

::

    self.activations_handling_ctx = config.instantiate(cfg.activation_offloading)
"""

from __future__ import annotations

import contextlib
from typing import Any

from offprof.activations import OffloadActivations

__all__ = ["OffloadActivations", "get_act_offloading_ctx_manager"]


def get_act_offloading_ctx_manager(
    model: Any, enable_activation_offloading: bool, *policy: Any, **settings: Any
) -> contextlib.AbstractContextManager[Any]:
    """Returns the context that torchtune's function of that name returns, with offprof's engine.

    The output head is offloaded as the policy decides. torchtune keeps it on the device, as does the rule
    `{"module": "output", "placement": "device"}`.

    Args:
        model: not used: the policy's rules name modules.
        enable_activation_offloading: False: the context does nothing.
        policy, settings: the arguments of OffloadActivations.

    Raises:
        InputError, UnavailableError: see OffloadActivations.
    """
    return OffloadActivations(*policy, **settings) if enable_activation_offloading else contextlib.nullcontext()
