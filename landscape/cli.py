from __future__ import annotations
def run_command(command): command()
