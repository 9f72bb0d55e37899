"""python -m bridges.tau2 DOMAIN... [--checkout FOLDER]: serves tau2-bench on stdin and stdout."""

import argparse
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
        serve(methods, requests, answers)


main()
