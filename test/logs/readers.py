"""What the readers of others make of a folder that `campaign export --conversations` wrote.

`readers.py inspect FOLDER COPY`: Inspect reads each log, says what it found, and writes it again into COPY. `readers.py atif FOLDER COPY`: so do
Harbor's models. `readers.py many FILE ID`: Inspect reads the list of a log's samples, and one of them.
"""

import json
import sys
import warnings
from pathlib import Path


def inspect(folder: Path, copy: Path) -> list:
    from inspect_ai.log import (
        list_eval_logs,
        read_eval_log,
        read_eval_log_sample,
        read_eval_log_sample_summaries,
        write_eval_log,
    )

    found = []
    for info in sorted(list_eval_logs(str(folder)), key=lambda one: one.name):
        log = read_eval_log(info)
        for summary in read_eval_log_sample_summaries(info):
            sample = read_eval_log_sample(info, summary.id, summary.epoch)
            assert sample.uuid == summary.uuid
        write_eval_log(log, str(copy / Path(info.name).name))
        found.append(
            {
                "task": log.eval.task,
                "model": log.eval.model,
                "status": log.status,
                "metrics": {
                    name: metric.value
                    for name, metric in log.results.scores[0].metrics.items()
                },
                "usage": log.stats.model_usage[log.eval.model].total_tokens,
                "samples": [
                    {
                        "epoch": sample.epoch,
                        "messages": len(sample.messages),
                        "calls": sum(
                            len(getattr(one, "tool_calls", None) or [])
                            for one in sample.messages
                        ),
                        "score": sample.scores["reward"].as_float()
                        if sample.scores
                        else None,
                        "error": sample.error.message if sample.error else None,
                        "task": sample.metadata["task"],
                        "seed": sample.metadata["seed"],
                    }
                    for sample in log.samples
                ],
            }
        )
    return found


def atif(folder: Path, copy: Path) -> dict:
    from harbor.models.trajectories import Trajectory
    from harbor.utils.trajectory_validator import TrajectoryValidator

    validator = TrajectoryValidator()
    files = sorted(folder.rglob("[!.]*.json"))
    errors = []
    for n, file in enumerate(files):
        if not validator.validate(file):
            errors += validator.errors
        read = Trajectory.model_validate_json(file.read_bytes())
        (copy / f"{n}.json").write_text(json.dumps(read.to_json_dict()))
    return {"files": len(files), "errors": errors}


def many(file: Path, id: str) -> dict:
    from inspect_ai.log import (
        read_eval_log,
        read_eval_log_sample,
        read_eval_log_sample_summaries,
    )

    header = read_eval_log(str(file), header_only=True)
    return {
        "summaries": len(read_eval_log_sample_summaries(str(file))),
        "total": header.results.total_samples,
        "messages": len(read_eval_log_sample(str(file), id, 1).messages),
    }


warnings.simplefilter("error")
what, path, other = sys.argv[1:]
read = {"inspect": inspect, "atif": atif}.get(what)
print(json.dumps(read(Path(path), Path(other)) if read else many(Path(path), other)))
