"""The main job in one go: `python -m landscape.tour DIR` maps both regimes, draws them, and says what was found."""

from __future__ import annotations

from pathlib import Path

import click

from landscape import basins, gallery
from landscape.chains import BinaryChain
from landscape.command import run_command
from landscape.critical import critical_sets

CHAINS = (BinaryChain(0.5, 0.8), BinaryChain(0.2, 0.3))
NODES = 2000
CHECKED = 51  # nodes of the grid whose flows are integrated too


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def main(folder):
    """Exact basin maps on |e|, |w| <= 2 on both sides of p + q = 1, the picture, and a summary."""
    written = []
    for chain in CHAINS:
        found = basins.basin_map(chain, e=(-2, 2, NODES), w=(-2, 2, NODES))
        path = folder / f"basins-p{chain.p:g}-q{chain.q:g}.nc"
        basins.write(found, path)
        written.append(path)
        click.echo("\n".join(summary(chain, basins.fractions(found))))
        click.echo(checked(chain) + "\n")
    written += gallery.draw("phase_portrait", folder)
    click.echo("At p + q < 1 the local basin is one of the canonical slice only: generic training leaves it (README.md).")
    for path in written:
        click.echo(f"written {path}")


def checked(chain: BinaryChain) -> str:
    """How exact labels compare with those of integrated flows, in a line."""
    box = (-2, 2, CHECKED)
    agreed = basins.compare(basins.basin_map(chain, e=box, w=box), basins.basin_map(chain, method="flow", e=box, w=box))
    return f"  followed by integration: {agreed['agreement']:.2%} of {CHECKED**2} starts have the exact label"


def summary(chain: BinaryChain, shares: dict[str, float]) -> list[str]:
    """What was found for one chain, a line each."""
    relation = "<" if chain.regime == "below" else ">"
    lines = [
        f"p = {chain.p:g}, q = {chain.q:g}   (p + q {relation} 1)",
        f"  loss of the unigram {chain.unigram_loss:.6f}, of the bigram {chain.bigram_loss:.6f} nats, "
        f"optimal gap kappa* = {chain.kappa_star:.6f}",
        f"  of the starts in |e|, |w| <= 2: {shares['global']:.4%} reach a global minimum, {shares['local']:.4%} a local one",
    ]
    lines += [f"  {found.name:<14} {found.equations}" for found in critical_sets(chain)]
    return lines


if __name__ == "__main__":
    run_command(main)
