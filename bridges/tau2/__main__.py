"""python -m bridges.tau2 DOMAIN... [--checkout FOLDER]: serves tau2-bench on stdin and stdout."""

import argparse
import gc
import sys

from ..rpc import protocol_streams, serve
from .library import load


def main() -> None:
    parser = argparse.ArgumentParser(prog="bridges.tau2", description="tau2-bench as an environment")
    parser.add_argument("domains", nargs="+", help="airline, retail, telecom, mock")
    parser.add_argument("--checkout", metavar="FOLDER", help="a clone of tau2-bench, in place of the installed package")
    options = parser.parse_args()
    with protocol_streams() as (requests, answers):
        try:
            version = load(options.checkout)
            from .server import methods_of

            methods = methods_of(options.domains, version)
        except ValueError as error:
            sys.exit(f"bridges.tau2: {error}")
        except ModuleNotFoundError as error:
            sys.exit(f"bridges.tau2: {version}: {error}; install it: {sys.executable} -m pip install {error.name}")
        # A database is 100,000 objects without cycles, freed by their counts: to look for cycles among those of all
        # open episodes again and again takes half of an evaluation.
        gc.set_threshold(1_000_000, 10, 10)
        serve(methods, requests, answers)


main()
