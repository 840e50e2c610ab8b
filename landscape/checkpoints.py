"""Reads a checkpoint as tensors alone: nothing in the file is executed. Imports torch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import torch

from landscape.parameters import ParameterError

NESTED = ("state_dict", "model_state_dict", "model")


def read_checkpoint(path: str | Path) -> dict[str, torch.Tensor]:
    """The state dict in a file, on the CPU.

    A file of `torch.save` is read with ``weights_only=True``, which refuses whatever is not a tensor or plain data; one that ends
    in .safetensors by the safetensors package.

    Parameters
    ----------
    path : str or Path
        Holds a state dict, or a dict with one under "state_dict", "model_state_dict" or "model".

    Raises
    ------
    ParameterError
        If there are not tensors alone in it, or it cannot be read.
    ImportError
        For a .safetensors file without the safetensors package.
    OSError
        If the file cannot be opened.
    """
    path = Path(path)
    wanted = "a file of tensors alone, as torch.save(model.state_dict(), ...) or safetensors write it"
    with open(path, "rb"):
        pass  # what cannot be opened is no matter of its contents
    if path.suffix.lower() == ".safetensors":
        try:
            from safetensors.torch import load_file
        except ImportError:
            raise ImportError("reading .safetensors needs the safetensors package (the extra 'pytorch')") from None
        load = load_file
    else:
        def load(name):
            return torch.load(name, map_location="cpu", weights_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = load(path)
    except Exception:  # bytes of any kind: unpicklers raise nearly everything
        raise ParameterError("checkpoint", "read_checkpoint", wanted, str(path)) from None
    for key in NESTED:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    tensors = {str(name): value for name, value in found.items() if isinstance(value, torch.Tensor)} if isinstance(found, Mapping) else {}
    if not tensors:
        raise ParameterError("checkpoint", "read_checkpoint", wanted, str(path))
    return tensors
