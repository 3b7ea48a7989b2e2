"""Command line of the programs in this folder: device, number of steps, and seed."""

import argparse
import random

import torch


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """Returns a parser of the options that all programs have. The help is the first line of the documentation."""
    result = argparse.ArgumentParser(description=(documentation or "").splitlines()[0])
    result.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    result.add_argument("--steps", type=int, default=60, help="optimizer steps (default: %(default)s)")
    result.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: %(default)s)")
    return result


def start(options: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the command line and seeds the generators of random numbers."""
    arguments = options.parse_args()
    random.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    return arguments
