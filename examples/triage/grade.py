"""Grades a ticket: a program that runs after the agent, in the same folder, with the same task on stdin.

It prints a reward in [0, 1] and its parts. With parts, a policy that is half right gets more than a wrong one.
"""

import json
import sys
from pathlib import Path


def grade(task: dict, actions: list[dict]) -> dict:
    """Returns the reward of a ticket and its parts.

    0.2 for looking up the customer first, 0.2 for ending the ticket, 0.2 for the right tool at its end, and 1 for the
    right tool with the right values: some tickets can be ended without the look-up, others only by luck.
    """
    expected = task["expected"]
    last = actions[-1] if actions else {"name": "", "arguments": {}}
    first = actions[0] if actions else last
    looked_up = first["name"] == "get_customer" and first["arguments"].get("email") == task["customer"]["email"]
    ended = last["name"] in {"route_ticket", "refund_invoice", "decline_refund"}
    right_tool = last["name"] == expected["name"]
    right_values = all(same(last["arguments"].get(key), value) for key, value in expected["arguments"].items())
    parts = {
        "looked_up": looked_up,
        "ended": ended,
        "right_tool": right_tool,
        "right_values": right_tool and right_values,
    }
    reward = 1 if parts["right_values"] else 0.2 * (looked_up + ended + right_tool)
    return {"reward": round(reward, 2), "breakdown": {key: int(value) for key, value in parts.items()}}


def same(given: object, wanted: str) -> bool:
    """Compares an argument with the expected text: 49.5, "$49.50" and "49.50" are the same amount."""
    text = str(given).strip().lstrip("$").lower()
    try:
        return abs(float(text) - float(wanted)) < 0.005
    except ValueError:
        return text == wanted


if __name__ == "__main__":
    print(json.dumps(grade(json.load(sys.stdin), json.loads(Path("actions.json").read_text()))))
