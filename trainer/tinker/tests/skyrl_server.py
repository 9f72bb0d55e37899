"""Starts SkyRL's Tinker server without uv, by which it starts its engine, and on Python 3.11: pydantic wants the
TypedDict of typing_extensions before 3.12. Takes the options of `python -m skyrl.tinker.api`."""

import argparse
import sys
import typing

import typing_extensions

typing.TypedDict = typing_extensions.TypedDict

from skyrl.tinker import api, config  # noqa: E402

if __name__ == "__main__":
    if sys.argv[1] == "engine":
        del sys.argv[1]
        from skyrl.tinker import engine

        engine.main()
    else:
        import uvicorn

        api._build_uv_run_cmd_engine = lambda _parent, settings: [
            *(sys.executable, __file__, "engine"),
            *config.config_to_argv(settings),
        ]
        parser = argparse.ArgumentParser()
        config.add_model(parser, config.EngineConfig)
        parser.add_argument("--port", type=int)
        given = vars(parser.parse_args())
        port = given.pop("port")
        api.app.state.engine_config = config.EngineConfig.model_validate(given)
        uvicorn.run(api.app, host="127.0.0.1", port=port)
