"""What README.md shows works, and says what it is said to say."""

import re

import numpy as np
import pytest
from conftest import ROOT

import landscape

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_examples_run_and_say_what_is_written_beside_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what they write
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names = {"starts": np.array([(1.0, -1.0), (0.3, 0.5)])}
    import xarray

    for block in blocks:
        if "import torch" in block:
            pytest.importorskip("torch").manual_seed(0)
        if "label_starts" in block:
            names["starts"] = xarray.Dataset({"e": ("run", [1.0, 0.3]), "w": ("run", [-1.0, 0.5])})
        else:
            names["starts"] = np.array([(1.0, -1.0), (0.3, 0.5)])
        exec(compile(block, "README.md", "exec"), names)
    chain, untied, lazy = names["chain"], names["untied"], names["lazy"]
    assert landscape.flow(chain, [(1, 1, 0.5), (1, -1, 0.5)], untied).words == ["saddle", "global"]
    assert landscape.limit(lazy, [(1, -1)])[0] == landscape.Label.GLOBAL
    assert abs(landscape.fractions(names["basins"])["local"] - 0.558) < 5e-4
    assert names["found"].words == ["global", "local"]
    assert names["told"].words.startswith("It is at a global minimum.")
    assert {"path.png", "path.nc", "model.pt"} <= {path.name for path in tmp_path.iterdir()}


def test_every_file_that_the_readme_names_exists():
    named = re.findall(r"\]\(([a-z_/\-]+\.(?:md|png))\)|`((?:landscape|tests|validation|derivations|kernels)/[\w/]+\.(?:py|md))`", TEXT)
    assert len(named) > 15
    for link, path in named:
        place = link or path
        assert (ROOT / place).exists() or (ROOT / "landscape" / place).exists(), place
